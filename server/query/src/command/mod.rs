//! Statements that look at the catalog and at history: SHOW, DESCRIBE, DESCRIBE DETAIL, DESCRIBE HISTORY.
//!
//! Each gives a batch of a fixed schema, which is the same whether it is only described or read.

mod describe;
mod detail;
pub(crate) mod history;
mod properties;
mod show;

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, TimeUnit};

use crate::error::{Error, Result};
use crate::plan::StatementContext;
use crate::statement::{Kind, Statement};

/// The rows of a looking statement; `None` when the statement is not one.
///
/// # Errors
/// Unknown names and versions.
pub async fn rows(ctx: &StatementContext, statement: &Statement) -> Result<Option<RecordBatch>> {
    let rows = match &statement.kind {
        Kind::Describe => describe::table(ctx, statement).await?,
        Kind::DescribeDetail => detail::rows(ctx, statement).await?,
        Kind::DescribeHistory { limit } => history::rows(ctx, statement, *limit).await?,
        Kind::ShowCatalogs => show::catalogs(ctx)?,
        Kind::ShowSchemas { catalog, like } => show::schemas(ctx, catalog.as_deref(), like.as_deref()).await?,
        Kind::ShowTables { schema, like } => show::tables(ctx, schema.as_deref(), like.as_deref()).await?,
        Kind::ShowViews { like } => show::views(ctx, like.as_deref())?,
        Kind::ShowColumns => show::columns(ctx, statement).await?,
        Kind::ShowProperties { key } => properties::show(ctx, statement, key.as_deref()).await?,
        Kind::ShowCreateTable => properties::create(ctx, statement).await?,
        Kind::ShowSetting(name) => show::setting(ctx, name.as_deref())?,
        _ => return Ok(None),
    };
    Ok(Some(rows))
}

/// A batch of text columns.
fn text(columns: Vec<(&str, Vec<Option<String>>)>) -> Result<RecordBatch> {
    let columns = columns.into_iter().map(|(name, values)| (name, Arc::new(StringArray::from(values)) as ArrayRef, true));
    RecordBatch::try_from_iter_with_nullable(columns).map_err(|e| Error::Internal(e.to_string()))
}

/// A column's type as SQL spells it: `bigint`, `decimal(10,2)`, `array<string>`, `struct<a:int>`.
#[must_use]
pub fn type_name(field: &Field) -> String {
    if field.metadata().get("asof.type").is_some_and(|t| t == "variant") {
        return "variant".to_owned();
    }
    if let Some(declared) = field.metadata().get("__CHAR_VARCHAR_TYPE_STRING") {
        return declared.clone();
    }
    sql_type(field.data_type())
}

fn sql_type(data_type: &DataType) -> String {
    use DataType as T;
    let plain = match data_type {
        T::Boolean => "boolean",
        T::Int8 => "tinyint",
        T::Int16 => "smallint",
        T::Int32 => "int",
        T::Int64 => "bigint",
        T::Float32 => "float",
        T::Float64 => "double",
        T::Utf8 | T::LargeUtf8 | T::Utf8View => "string",
        T::Binary | T::LargeBinary | T::BinaryView => "binary",
        T::Date32 => "date",
        T::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp",
        T::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz",
        T::Decimal128(precision, scale) => return format!("decimal({precision},{scale})"),
        T::List(item) => return format!("array<{}>", type_name(item)),
        T::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}:{}", f.name(), type_name(f))).collect();
            return format!("struct<{}>", fields.join(","));
        }
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(fields) if fields.len() == 2 => return format!("map<{},{}>", type_name(&fields[0]), type_name(&fields[1])),
            _ => "map",
        },
        other => return other.to_string().to_lowercase(),
    };
    plain.to_owned()
}

/// Does a name match a LIKE pattern (`%`, `_`, `\` escapes; Hive's `*` and `|` too, without regard to case)?
fn like(name: &str, pattern: Option<&str>) -> bool {
    let Some(pattern) = pattern else { return true };
    let name: Vec<char> = name.to_lowercase().chars().collect();
    pattern.to_lowercase().split('|').any(|p| matches(&name, &p.chars().collect::<Vec<_>>()))
}

fn matches(name: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['%' | '*', rest @ ..] => (0..=name.len()).any(|skip| matches(&name[skip..], rest)),
        ['_', rest @ ..] => !name.is_empty() && matches(&name[1..], rest),
        ['\\', c, rest @ ..] | [c, rest @ ..] => name.first() == Some(c) && matches(&name[1..], rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |name: &str, pattern: &str, expect: bool| assert_eq!(like(name, Some(pattern)), expect, "{name} like {pattern}");
        check("orders", "ord%", true);
        check("orders", "ORD*", true);
        check("orders", "o_ders", true);
        check("orders", "order", false);
        check("abc", r"a\_c", false);
        check("a_c", r"a\_c", true);
        check("b", "a|b", true);
        assert!(like("x", None));
    }

    #[test]
    fn type_names() {
        let check = |t: DataType, expect: &str| assert_eq!(sql_type(&t), expect);
        check(DataType::Int64, "bigint");
        check(DataType::Decimal128(10, 2), "decimal(10,2)");
        let item = Field::new_struct("element", vec![Field::new("a", DataType::Int32, true)], true);
        check(DataType::List(Arc::new(item)), "array<struct<a:int>>");
        check(DataType::Timestamp(TimeUnit::Microsecond, None), "timestamp_ntz");
    }
}
