//! Columns of a table: from CREATE TABLE, from a query, by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use datafusion::sql::sqlparser::ast;

use super::invalid;
use crate::error::{Error, Result};
use crate::statement::{self, Kind, types};
use crate::write::assign::sql_type;
use crate::write::rules::{CONSTRAINTS, CURRENT_DEFAULT, GENERATION, IDENTITY_EXPLICIT, IDENTITY_START, IDENTITY_STEP};

/// Property: how columns are mapped.
const MAPPING_MODE: &str = "delta.columnMapping.mode";

/// The column of that name: exactly, else in any case.
pub(super) fn position(schema: &Schema, name: &str) -> Option<usize> {
    let fields = schema.fields();
    let any_case = || fields.iter().position(|f| f.name().eq_ignore_ascii_case(name));
    fields.iter().position(|f| f.name() == name).or_else(any_case)
}

/// The column of that name, or an error that says which there are.
pub(super) fn required(schema: &Schema, name: &str, table: &str) -> Result<usize> {
    position(schema, name).ok_or_else(|| {
        let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        invalid(format!("table {table} has no column {name}: it has {}", names.join(", ")))
    })
}

/// The word DEFAULT in place of a value.
pub(super) fn is_default(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Identifier(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
}

/// What DEFAULT stands for in a column.
pub(super) fn default_value(field: &Field) -> Result<ast::Expr> {
    let Some(sql) = field.metadata().get(CURRENT_DEFAULT) else {
        return Ok(ast::Expr::Value(ast::Value::Null.with_empty_span()));
    };
    let parsed = statement::parse(&format!("SELECT {sql}"))?;
    if let Kind::Query(query) = parsed.kind
        && let ast::SetExpr::Select(select) = *query.body
        && let [ast::SelectItem::UnnamedExpr(value)] = select.projection.as_slice()
    {
        return Ok(ast::Expr::Nested(Box::new(value.clone())));
    }
    Err(Error::Unsupported { message: format!("the default of column {} is no expression: {sql}", field.name()), location: None })
}

/// The columns of a CREATE TABLE; CHECK constraints and what defaults need go into the properties.
pub(super) fn declared(
    columns: &[ast::ColumnDef],
    constraints: &[ast::TableConstraint],
    properties: &mut BTreeMap<String, String>,
) -> Result<Vec<Field>> {
    let fields = columns.iter().map(|column| field(column, properties)).collect::<Result<Vec<_>>>()?;
    for constraint in constraints {
        match constraint {
            ast::TableConstraint::Check(check) => add_check(check, properties),
            other => return Err(unsupported(format!("constraint {other}"))),
        }
    }
    Ok(fields)
}

fn field(column: &ast::ColumnDef, properties: &mut BTreeMap<String, String>) -> Result<Field> {
    let declared = types::field(column)?;
    let name = declared.name().clone();
    let mut metadata = declared.metadata().clone();
    for option in &column.options {
        match &option.option {
            ast::ColumnOption::Null | ast::ColumnOption::NotNull | ast::ColumnOption::Comment(_) => {}
            ast::ColumnOption::Default(value) => {
                metadata.insert(CURRENT_DEFAULT.to_owned(), value.to_string());
            }
            ast::ColumnOption::Check(check) => add_check(check, properties),
            ast::ColumnOption::Generated { generation_expr: Some(expr), .. } => {
                metadata.insert(GENERATION.to_owned(), expr.to_string());
            }
            ast::ColumnOption::Generated { generated_as, sequence_options, .. } => {
                let explicit = *generated_as == ast::GeneratedAs::ByDefault;
                identity(&declared, explicit, sequence_options.as_deref().unwrap_or_default(), &mut metadata)?;
            }
            other => return Err(unsupported(format!("column {name}: {other}"))),
        }
    }
    Ok(declared.with_metadata(metadata))
}

/// GENERATED ALWAYS|BY DEFAULT AS IDENTITY [(START WITH n INCREMENT BY m)].
fn identity(field: &Field, explicit: bool, options: &[ast::SequenceOptions], metadata: &mut HashMap<String, String>) -> Result<()> {
    let name = field.name();
    if *field.data_type() != DataType::Int64 {
        return Err(invalid(format!("identity column {name} must be BIGINT, and is {}", sql_type(field.data_type()))));
    }
    let (mut start, mut step) = ("1".to_owned(), "1".to_owned());
    for option in options {
        match option {
            ast::SequenceOptions::StartWith(value, _) => start = value.to_string(),
            ast::SequenceOptions::IncrementBy(value, _) => step = value.to_string(),
            other => return Err(unsupported(format!("column {name}: {other} of an identity"))),
        }
    }
    let number = |text: &str| text.replace(' ', "").parse::<i64>();
    let (Ok(start), Ok(step @ (..=-1 | 1..))) = (number(&start), number(&step)) else {
        return Err(invalid(format!(
            "identity column {name}: START WITH {start} INCREMENT BY {step}: both are whole numbers, the step is not 0"
        )));
    };
    metadata.insert(IDENTITY_START.to_owned(), start.to_string());
    metadata.insert(IDENTITY_STEP.to_owned(), step.to_string());
    metadata.insert(IDENTITY_EXPLICIT.to_owned(), explicit.to_string());
    Ok(())
}

fn add_check(check: &ast::CheckConstraint, properties: &mut BTreeMap<String, String>) {
    let name = check.name.as_ref().map_or_else(
        || {
            let taken = |n: &u32| !properties.contains_key(&format!("{CONSTRAINTS}check_{n}"));
            format!("check_{}", (1..).find(taken).unwrap_or(0))
        },
        |name| name.value.to_lowercase(),
    );
    properties.insert(format!("{CONSTRAINTS}{name}"), check.expr.to_string());
}

/// The columns of CREATE TABLE AS: a query's, in types that a table can hold.
pub(super) fn of_query(schema: &Schema) -> Result<Vec<Field>> {
    schema.fields().iter().map(|field| Ok(Field::new(field.name(), stored_type(field.name(), field.data_type())?, true))).collect()
}

/// The type in which a table holds values of a type, everything inside it nullable unless it is declared otherwise.
fn stored_type(column: &str, data_type: &DataType) -> Result<DataType> {
    let nested = |field: &FieldRef, name: &str| -> Result<FieldRef> {
        Ok(Arc::new(Field::new(name, stored_type(column, field.data_type())?, field.is_nullable())))
    };
    Ok(match data_type {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Decimal128(precision, scale) if *scale >= 0 => DataType::Decimal128(*precision, *scale),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => DataType::Decimal128(*precision, *scale),
        DataType::Dictionary(_, values) => stored_type(column, values)?,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| nested(f, f.name())).collect::<Result<Vec<_>>>()?.into()),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => DataType::List(nested(element, "element")?),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let key = nested(&pair[0], "key")?.as_ref().clone().with_nullable(false);
                let pair = Fields::from(vec![Arc::new(key), nested(&pair[1], "value")?]);
                DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(pair), false)), false)
            }
            other => return Err(unholdable(column, other)),
        },
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32 => data_type.clone(),
        DataType::Null => {
            return Err(invalid(format!("column {column} is NULL in every row and has no type: give it one with CAST(NULL AS …)")));
        }
        other => return Err(unholdable(column, other)),
    })
}

fn unholdable(column: &str, data_type: &DataType) -> Error {
    Error::Unsupported {
        message: format!("column {column}: a table cannot hold values of type {}; CAST them", sql_type(data_type)),
        location: None,
    }
}

/// Refuse names that Delta's other engines refuse, and names that differ in case only.
pub(super) fn check_names(fields: &[Field], mapped: bool) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for field in fields {
        let name = field.name();
        if name.is_empty() {
            return Err(invalid("a column has an empty name: give it an alias".to_owned()));
        }
        if !mapped && let Some(c) = name.chars().find(|c| " ,;{}()\n\t=".contains(*c)) {
            return Err(invalid(format!(
                "column name {name:?} contains {c:?}, which a Delta table takes only with column mapping: give the column an alias, \
                 or set TBLPROPERTIES ('{MAPPING_MODE}' = 'name')"
            )));
        }
        if !seen.insert(name.to_lowercase()) {
            return Err(invalid(format!("column {name} is there twice: names must differ in more than case")));
        }
    }
    Ok(())
}

/// Whether the properties ask for mapped columns.
pub(super) fn mapped(properties: &BTreeMap<String, String>) -> bool {
    properties.get(MAPPING_MODE).is_some_and(|mode| mode != "none")
}

fn unsupported(message: String) -> Error {
    Error::Unsupported { message, location: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_queries_become_types_of_tables() {
        let check = |from: DataType, expect: Option<DataType>| assert_eq!(stored_type("c", &from).ok(), expect, "{from}");
        check(DataType::UInt64, Some(DataType::Decimal128(20, 0)));
        check(DataType::Utf8View, Some(DataType::Utf8));
        check(
            DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into())),
            Some(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        );
        check(DataType::Null, None);
        check(DataType::Time64(TimeUnit::Nanosecond), None);
        check(
            DataType::LargeList(Arc::new(Field::new("item", DataType::Utf8View, true))),
            Some(DataType::List(Arc::new(Field::new("element", DataType::Utf8, true)))),
        );
    }

    #[test]
    fn names_that_no_table_takes() {
        let check = |names: &[&str], mapped: bool, sound: bool| {
            let fields: Vec<_> = names.iter().map(|n| Field::new(*n, DataType::Int32, true)).collect();
            assert_eq!(check_names(&fields, mapped).is_ok(), sound, "{names:?}");
        };
        check(&["a", "b"], false, true);
        check(&["a", "A"], false, false);
        check(&["count(*)"], false, false);
        check(&["a b"], true, true);
        check(&[""], true, false);
    }
}
