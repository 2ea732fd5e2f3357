//! Constraints, in front of every writer.
//!
//! One place brings source rows to the table's columns and enforces, in this order: assignment casts, defaults, generated columns,
//! CHAR and VARCHAR lengths, NOT NULL at every level, CHECK and invariants. A CHECK that is NULL is violated, as in Delta and unlike the SQL
//! standard. Identity columns number rows as they pass. What asof cannot do
//! right is refused by the column's name before any row is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::datasource::empty::EmptyTable;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::sql::sqlparser::ast;

use super::Target;
use super::assign::{assign, check};
use super::layout::relaxed;
use crate::error::{Error, Result};
use crate::plan::{Planner, Relation, placeholder};
use crate::statement::types::CHAR_VARCHAR;
use crate::statement::{self, Kind};

/// Field metadata: SQL of the default value.
pub(crate) const CURRENT_DEFAULT: &str = "CURRENT_DEFAULT";
/// Field metadata: SQL of a generated column.
pub(crate) const GENERATION: &str = "delta.generationExpression";
/// Field metadata: an invariant in the old form.
const INVARIANTS: &str = "delta.invariants";
/// Field metadata: first value of an identity column.
pub(crate) const IDENTITY_START: &str = "delta.identity.start";
/// Field metadata: difference between two values of an identity column.
pub(crate) const IDENTITY_STEP: &str = "delta.identity.step";
/// Field metadata: the last value given by an identity column.
pub(crate) const IDENTITY_HIGH_WATER: &str = "delta.identity.highWaterMark";
/// Field metadata: may an identity column be given values.
pub(crate) const IDENTITY_EXPLICIT: &str = "delta.identity.allowExplicitInsert";
/// Table property: a CHECK constraint, by name.
pub(crate) const CONSTRAINTS: &str = "delta.constraints.";

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This column of the source.
    Source(usize),
    /// This column of the source, which holds what the table held already.
    Kept(usize),
    /// The column's default, or NULL.
    Default,
    /// Nobody gave it: a generated column is computed (an update); anything else is an internal error.
    Computed,
}

#[derive(Debug)]
enum Value {
    Source(usize),
    Expression(Arc<dyn PhysicalExpr>),
    Identity(Arc<Identity>),
    Null,
}

/// An identity column that numbers the rows of one statement, whichever encoder they go to.
#[derive(Debug)]
pub struct Identity {
    /// The column.
    pub column: usize,
    first: i64,
    step: i64,
    given: AtomicI64,
}

impl Identity {
    fn new(column: usize, field: &Field) -> Result<Self> {
        let number = |key: &str| field.metadata().get(key).map(|text| text.parse::<i64>());
        let malformed = |_| Error::Invalid { message: format!("the identity of column {} is no number", field.name()), location: None };
        let start = number(IDENTITY_START).unwrap_or(Ok(1)).map_err(malformed)?;
        let step = number(IDENTITY_STEP).unwrap_or(Ok(1)).map_err(malformed)?;
        let first = match number(IDENTITY_HIGH_WATER) {
            Some(last) => last.map_err(malformed)?.checked_add(step).ok_or_else(|| exhausted(field))?,
            None => start,
        };
        Ok(Self { column, first, step, given: AtomicI64::new(0) })
    }

    fn values(&self, rows: usize, field: &Field) -> Result<ArrayRef> {
        let count = i64::try_from(rows).unwrap_or(i64::MAX);
        let from = self.given.fetch_add(count, Ordering::Relaxed);
        let value = |row: i64| from.checked_add(row).and_then(|n| n.checked_mul(self.step)).and_then(|n| n.checked_add(self.first));
        let values = (0..count).map(|row| value(row).ok_or_else(|| exhausted(field))).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(Int64Array::from(values)))
    }

    /// The last value given, if any was.
    #[must_use]
    pub fn last(&self) -> Option<i64> {
        let given = self.given.load(Ordering::Relaxed);
        (given > 0).then(|| self.first + (given - 1) * self.step)
    }
}

fn exhausted(field: &Field) -> Error {
    Error::Constraint(format!("identity column {} has no numbers left", field.name()))
}

#[derive(Debug)]
struct Generated {
    column: usize,
    /// The source gave values, which must agree.
    given: bool,
    expression: Arc<dyn PhysicalExpr>,
}

#[derive(Debug)]
struct Check {
    name: String,
    sql: String,
    expression: Arc<dyn PhysicalExpr>,
}

#[derive(Debug)]
struct Length {
    column: usize,
    limit: usize,
    pad: bool,
}

/// What every row of one statement goes through.
#[derive(Debug)]
pub struct Rules {
    table: String,
    /// The table's columns, nullable at every level.
    schema: SchemaRef,
    /// The table's columns as they must be.
    strict: SchemaRef,
    values: Vec<Value>,
    generated: Vec<Generated>,
    lengths: Vec<Length>,
    checks: Vec<Check>,
    enforce: bool,
    zone: String,
}

impl Rules {
    /// For rows that are in the table already and only move to another file: types only.
    #[must_use]
    pub fn copy(target: &Target) -> Self {
        let values = (0..target.schema.fields().len()).map(Value::Source).collect();
        Self::bare(target, values, "UTC", false)
    }

    fn bare(target: &Target, values: Vec<Value>, zone: &str, enforce: bool) -> Self {
        let schema = Arc::new(Schema::new(target.schema.fields().iter().map(|f| relaxed(f)).collect::<Vec<_>>()));
        Self {
            table: target.name.clone(),
            schema,
            strict: Arc::clone(&target.schema),
            values,
            generated: vec![],
            lengths: vec![],
            checks: vec![],
            enforce,
            zone: zone.to_owned(),
        }
    }

    /// For rows of a source with these columns; `origins` has an entry for each column of the table. `planner` plans the constraints' SQL.
    ///
    /// # Errors
    /// Types that cannot be assigned; a constraint that asof cannot evaluate; an identity column without a value.
    pub async fn new(planner: &Planner, target: &Target, source: &Schema, origins: &[Origin], zone: &str) -> Result<Self> {
        let mut rules = Self::bare(target, vec![], zone, true);
        let expressions = Expressions { planner, schema: Arc::clone(&rules.schema) };
        for (column, (field, origin)) in target.schema.fields().iter().zip(origins).enumerate() {
            let generation = field.metadata().get(GENERATION);
            if let Some(sql) = generation {
                let expression = expressions.physical(sql, &format!("generated column {}", field.name())).await?;
                rules.generated.push(Generated { column, given: matches!(origin, Origin::Source(_)), expression });
            }
            let value = match origin {
                Origin::Kept(at) => Value::Source(*at),
                Origin::Source(at) => {
                    refuse_explicit_identity(field)?;
                    check(source.field(*at).data_type(), field)?;
                    Value::Source(*at)
                }
                _ if generation.is_some() => Value::Null,
                _ if field.metadata().contains_key(IDENTITY_START) => Value::Identity(Arc::new(Identity::new(column, field)?)),
                Origin::Computed => return Err(Error::Internal(format!("no values for column {}", field.name()))),
                Origin::Default => match field.metadata().get(CURRENT_DEFAULT) {
                    Some(sql) => Value::Expression(expressions.physical(sql, &format!("default of column {}", field.name())).await?),
                    None => Value::Null,
                },
            };
            rules.values.push(value);
            rules.lengths.extend(length(column, field));
            if let Some(text) = field.metadata().get(INVARIANTS) {
                let sql = invariant(field, text)?;
                rules.checks.push(expressions.check(&format!("invariant of column {}", field.name()), &sql).await?);
            }
        }
        for (name, sql) in &target.properties {
            if let Some(name) = name.strip_prefix(CONSTRAINTS) {
                rules.checks.push(expressions.check(&format!("CHECK constraint {name}"), sql).await?);
            }
        }
        Ok(rules)
    }

    /// One more condition that must be true of every row, of this statement alone.
    ///
    /// # Errors
    /// A condition that cannot be evaluated.
    pub async fn must_hold(&mut self, planner: &Planner, name: &str, sql: &str) -> Result<()> {
        let expressions = Expressions { planner, schema: Arc::clone(&self.schema) };
        self.checks.push(expressions.check(name, sql).await?);
        Ok(())
    }

    /// The columns of the source that become the target's partition columns, if the source has them all.
    #[must_use]
    pub fn partition_sources(&self, target: &Target) -> Option<Vec<usize>> {
        let source = |column: &String| match self.values.get(target.schema.index_of(column).ok()?)? {
            Value::Source(at) => Some(*at),
            Value::Expression(_) | Value::Identity(_) | Value::Null => None,
        };
        target.partition_columns.iter().map(source).collect()
    }

    /// The identity columns that number rows; ask them for the last number when all rows are written.
    #[must_use]
    pub fn identities(&self) -> Vec<Arc<Identity>> {
        let identity = |value: &Value| match value {
            Value::Identity(identity) => Some(Arc::clone(identity)),
            _ => None,
        };
        self.values.iter().filter_map(identity).collect()
    }

    /// Source rows as rows of the table.
    ///
    /// # Errors
    /// `Constraint` naming the constraint and a row that breaks it; `Execution` naming the column whose value does not fit.
    pub fn apply(&self, source: &RecordBatch) -> Result<RecordBatch> {
        let rows = source.num_rows();
        let mut columns = Vec::with_capacity(self.values.len());
        for (field, value) in self.schema.fields().iter().zip(&self.values) {
            columns.push(match value {
                Value::Source(at) => assign(source.column(*at), field, &self.zone)?,
                Value::Null => new_null_array(field.data_type(), rows),
                Value::Identity(identity) => identity.values(rows, field)?,
                Value::Expression(expression) => assign(&evaluate(expression, &nothing(rows)?)?, field, &self.zone)?,
            });
        }
        if !self.enforce {
            return self.batch(columns, rows);
        }
        for length in &self.lengths {
            columns[length.column] = length.apply(columns[length.column].as_string(), self.schema.field(length.column))?;
        }
        if !self.generated.is_empty() {
            let batch = self.batch(columns.clone(), rows)?;
            for generated in &self.generated {
                columns[generated.column] = self.generate(generated, &batch)?;
            }
        }
        let batch = self.batch(columns, rows)?;
        for (field, values) in self.strict.fields().iter().zip(batch.columns()) {
            not_null(&self.table, field.name(), field, values.as_ref(), None)?;
        }
        for check in &self.checks {
            check.hold(&self.table, &batch)?;
        }
        Ok(batch)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(|e| Error::Internal(e.to_string()))
    }

    fn generate(&self, generated: &Generated, batch: &RecordBatch) -> Result<ArrayRef> {
        let field = self.schema.field(generated.column);
        let computed = assign(&evaluate(&generated.expression, batch)?, field, &self.zone)?;
        if generated.given {
            let given = batch.column(generated.column);
            let same = arrow::compute::kernels::cmp::not_distinct(given, &computed).map_err(|e| Error::Internal(e.to_string()))?;
            if let Some(row) = first_false(&same) {
                let message = format!(
                    "generated column {} of table {} is given a value that its expression does not give: {}",
                    field.name(),
                    self.table,
                    shown(batch, row)
                );
                return Err(Error::Constraint(message));
            }
        }
        Ok(computed)
    }
}

/// Plans SQL that the table's metadata holds, over the table's columns.
struct Expressions<'a> {
    planner: &'a Planner,
    schema: SchemaRef,
}

impl Expressions<'_> {
    async fn physical(&self, sql: &str, what: &str) -> Result<Arc<dyn PhysicalExpr>> {
        self.plan(sql).await.map_err(|error| match error {
            Error::Internal(_) => error,
            error => Error::Unsupported { message: format!("{what} ({sql}) cannot be evaluated here: {error}"), location: None },
        })
    }

    async fn plan(&self, sql: &str) -> Result<Arc<dyn PhysicalExpr>> {
        let parsed = statement::parse(&format!("SELECT {sql}"))?;
        let Kind::Query(mut query) = parsed.kind else { return Err(Error::Internal(format!("{sql} is no expression"))) };
        let ast::SetExpr::Select(select) = query.body.as_mut() else { return Err(Error::Internal(format!("{sql} is no expression"))) };
        let rows = Arc::new(EmptyTable::new(Arc::clone(&self.schema)));
        let number = self.planner.bind(Relation::Rows { name: "row".into(), rows });
        select.from = vec![ast::TableWithJoins { relation: placeholder(number, None), joins: vec![] }];
        let plan = self.planner.logical(&query).await?;
        let LogicalPlan::Projection(projection) = plan else { return Err(Error::Internal(format!("{sql} is no projection"))) };
        let [expression] = projection.expr.as_slice() else { return Err(Error::Internal(format!("{sql} is not one expression"))) };
        let expression: Expr = expression.clone().unalias();
        Ok(self.planner.state().create_physical_expr(expression, projection.input.schema())?)
    }

    async fn check(&self, name: &str, sql: &str) -> Result<Check> {
        Ok(Check { name: name.to_owned(), sql: sql.to_owned(), expression: self.physical(sql, name).await? })
    }
}

impl Check {
    fn hold(&self, table: &str, batch: &RecordBatch) -> Result<()> {
        let held = evaluate(&self.expression, batch)?;
        let held = match held.data_type() {
            DataType::Null => BooleanArray::new_null(batch.num_rows()),
            _ => held
                .as_boolean_opt()
                .ok_or_else(|| Error::Invalid { message: format!("{} ({}) is no condition", self.name, self.sql), location: None })?
                .clone(),
        };
        match first_false(&held) {
            None => Ok(()),
            Some(row) => {
                Err(Error::Constraint(format!("{} of table {table} ({}) is violated by row {}", self.name, self.sql, shown(batch, row))))
            }
        }
    }
}

impl Length {
    /// Spark's rule: what is too long may lose trailing blanks; CHAR is filled up with blanks.
    fn apply(&self, values: &StringArray, field: &Field) -> Result<ArrayRef> {
        let fit = |value: &str| -> Result<String> {
            let count = value.chars().count();
            if count > self.limit {
                let length = value.trim_end_matches(' ').chars().count();
                if length > self.limit {
                    let message = format!("column {} holds at most {} characters, the value has {length}", field.name(), self.limit);
                    return Err(Error::Constraint(message));
                }
                return Ok(value.chars().take(self.limit).collect());
            }
            Ok(if self.pad { format!("{value}{}", " ".repeat(self.limit - count)) } else { value.to_owned() })
        };
        let fitted = values.iter().map(|value| value.map(&fit).transpose()).collect::<Result<StringArray>>()?;
        Ok(Arc::new(fitted))
    }
}

/// The limit of a CHAR(n) or VARCHAR(n) column.
fn length(column: usize, field: &Field) -> Option<Length> {
    if *field.data_type() != DataType::Utf8 {
        return None;
    }
    let declared = field.metadata().get(CHAR_VARCHAR)?.trim().to_ascii_lowercase();
    let (name, limit) = declared.strip_suffix(')')?.split_once('(')?;
    Some(Length { column, limit: limit.trim().parse().ok()?, pad: name.trim() == "char" })
}

/// SQL of an invariant: `{"expression": {"expression": "x > 3"}}`.
fn invariant(field: &Field, text: &str) -> Result<String> {
    let parsed: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let sql = parsed.as_ref().and_then(|json| json.pointer("/expression/expression")).and_then(serde_json::Value::as_str);
    sql.map(str::to_owned).ok_or_else(|| Error::Unsupported {
        message: format!("the invariant of column {} is not understood: {text}", field.name()),
        location: None,
    })
}

fn refuse_explicit_identity(field: &Field) -> Result<()> {
    let explicit = field.metadata().get(IDENTITY_EXPLICIT).is_some_and(|e| e == "true");
    if field.metadata().contains_key(IDENTITY_START) && !explicit {
        return Err(Error::Invalid {
            message: format!("column {} is GENERATED ALWAYS AS IDENTITY and takes no values; leave it out", field.name()),
            location: None,
        });
    }
    Ok(())
}

fn evaluate(expression: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ArrayRef> {
    Ok(expression.evaluate(batch)?.into_array(batch.num_rows())?)
}

/// Rows without columns.
fn nothing(rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).map_err(|e| Error::Internal(e.to_string()))
}

fn first_false(values: &BooleanArray) -> Option<usize> {
    if values.null_count() == 0 && values.true_count() == values.len() {
        return None;
    }
    values.iter().position(|value| value != Some(true))
}

/// A row for a message.
fn shown(batch: &RecordBatch, row: usize) -> String {
    let options = arrow::util::display::FormatOptions::new().with_null("NULL");
    let values = batch.schema_ref().fields().iter().zip(batch.columns()).map(|(field, values)| {
        let value = arrow::util::display::ArrayFormatter::try_new(values.as_ref(), &options).map(|f| f.value(row).to_string());
        format!("{} = {}", field.name(), value.unwrap_or_else(|_| "?".to_owned()))
    });
    let text = values.take(8).collect::<Vec<_>>().join(", ");
    format!("({text}{})", if batch.num_columns() > 8 { ", …" } else { "" })
}

/// No NULL where `field`, or a field inside it, must not be NULL; values inside a NULL parent do not count.
fn not_null(table: &str, path: &str, field: &FieldRef, values: &dyn Array, parent: Option<&NullBuffer>) -> Result<()> {
    let own = values.logical_nulls();
    if !field.is_nullable() {
        let missing = match (&own, parent) {
            (None, _) => 0,
            (Some(own), None) => own.null_count(),
            (Some(own), Some(parent)) => own.iter().zip(parent.iter()).filter(|(own, parent)| !own && *parent).count(),
        };
        if missing > 0 {
            return Err(Error::Constraint(format!(
                "column {path} of table {table} is NOT NULL, and {missing} row(s) have no value for it"
            )));
        }
    }
    match field.data_type() {
        DataType::Struct(fields) => {
            let nulls = NullBuffer::union(own.as_ref(), parent);
            let Some(values) = values.as_struct_opt() else { return Ok(()) };
            for (field, values) in fields.iter().zip(values.columns()) {
                not_null(table, &format!("{path}.{}", field.name()), field, values.as_ref(), nulls.as_ref())?;
            }
        }
        DataType::List(element) => {
            if let Some(values) = values.as_list_opt::<i32>() {
                not_null(table, &format!("{path}.element"), element, values.values().as_ref(), None)?;
            }
        }
        DataType::Map(entries, _) => {
            let (DataType::Struct(pair), Some(values)) = (entries.data_type(), values.as_map_opt()) else { return Ok(()) };
            for (field, values) in pair.iter().zip(values.entries().columns()) {
                not_null(table, &format!("{path}.{}", field.name()), field, values.as_ref(), None)?;
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::array::{Int32Array, StructArray};

    use super::*;

    #[test]
    fn not_null_holds_inside_structs_but_not_inside_missing_ones() {
        let inner = Arc::new(Field::new("a", DataType::Int32, false));
        let field = Arc::new(Field::new("s", DataType::Struct(vec![Arc::clone(&inner)].into()), true));
        let check = |valid: [bool; 2], holds: bool| {
            let values = StructArray::new(
                vec![relaxed(&inner)].into(),
                vec![Arc::new(Int32Array::from(vec![Some(1), None]))],
                Some(NullBuffer::from(valid.to_vec())),
            );
            let outcome = not_null("t", "s", &field, &values, None);
            assert_eq!(outcome.is_ok(), holds, "{outcome:?}");
        };
        check([true, false], true);
        check([true, true], false);
    }

    #[test]
    fn lengths_of_char_and_varchar() {
        let check = |declared: &str, value: &str, expect: Option<&str>| {
            let field =
                Field::new("c", DataType::Utf8, true).with_metadata(HashMap::from([(CHAR_VARCHAR.to_owned(), declared.to_owned())]));
            let fitted = length(0, &field).unwrap().apply(&StringArray::from(vec![value]), &field);
            assert_eq!(fitted.ok().map(|f| f.as_string::<i32>().value(0).to_owned()).as_deref(), expect, "{declared} {value:?}");
        };
        check("varchar(3)", "abc", Some("abc"));
        check("varchar(3)", "abcd", None);
        check("varchar(3)", "ab   ", Some("ab "));
        check("char(5)", "ü", Some("ü    "));
        check("char(2)", "abc", None);
    }
}
