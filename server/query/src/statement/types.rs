//! Type names of Spark, the standard and their relatives, as Arrow types.
//!
//! | name | Arrow |
//! |---|---|
//! | BOOLEAN, BOOL | Boolean |
//! | TINYINT, BYTE · SMALLINT, SHORT, INT2 · INT, INTEGER, INT4 · BIGINT, LONG, INT8 | Int8 · Int16 · Int32 · Int64 |
//! | FLOAT, REAL, FLOAT4 · DOUBLE [PRECISION], FLOAT8, FLOAT64 | Float32 · Float64 |
//! | DECIMAL, DEC, NUMERIC `[(p[, s])]` | Decimal128, (10, 0) when not given, as Spark has it |
//! | STRING, TEXT, VARCHAR`[(n)]`, CHAR`[(n)]` … | Utf8 |
//! | BINARY, VARBINARY, BYTEA, BLOB | Binary |
//! | DATE | Date32 |
//! | TIMESTAMP [WITH TIME ZONE], TIMESTAMP_LTZ, TIMESTAMPTZ | microseconds, "UTC": an instant, as Spark's TIMESTAMP is |
//! | TIMESTAMP_NTZ, TIMESTAMP WITHOUT TIME ZONE, DATETIME | microseconds, no zone |
//! | ARRAY<t>, t[] · MAP<k, v> · STRUCT<a: t, …> | List("element") · Map("key_value") · Struct |
//!
//! Tables hold neither unsigned numbers, nor times of day, nor intervals: those are errors that say what to use.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType as Arrow, Field, Fields, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, ColumnDef, ColumnOption, DataType, ExactNumberInfo, StructField, TimezoneInfo,
};

use super::position;
use crate::error::{Error, Location, Result};

/// Metadata key under which Spark keeps `varchar(n)` and `char(n)` of a text column.
pub const CHAR_VARCHAR: &str = "__CHAR_VARCHAR_TYPE_STRING";
/// Metadata key of a column's comment.
pub const COMMENT: &str = "comment";

/// The Arrow type that a type name stands for.
///
/// # Errors
/// `Unsupported` for a type that tables do not hold, `Invalid` for precision and scale out of range.
pub fn arrow_type(data_type: &DataType) -> Result<Arrow> {
    Ok(match data_type {
        DataType::Boolean | DataType::Bool => Arrow::Boolean,
        DataType::TinyInt(_) => Arrow::Int8,
        DataType::SmallInt(_) | DataType::Int2(_) | DataType::Int16 => Arrow::Int16,
        DataType::Int(_)
        | DataType::Integer(_)
        | DataType::Int4(_)
        | DataType::MediumInt(_)
        | DataType::Int32
        | DataType::SignedInteger => Arrow::Int32,
        DataType::BigInt(_) | DataType::Int8(_) | DataType::Int64 => Arrow::Int64,
        DataType::Float(_) | DataType::Real | DataType::Float4 | DataType::Float32 => Arrow::Float32,
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float64 => Arrow::Float64,
        DataType::Decimal(info) | DataType::Dec(info) | DataType::Numeric(info) => decimal(*info)?,
        DataType::String(_)
        | DataType::Text
        | DataType::TinyText
        | DataType::MediumText
        | DataType::LongText
        | DataType::Varchar(_)
        | DataType::Nvarchar(_)
        | DataType::Char(_)
        | DataType::Character(_)
        | DataType::CharVarying(_)
        | DataType::CharacterVarying(_)
        | DataType::Clob(_) => Arrow::Utf8,
        DataType::Binary(_) | DataType::Varbinary(_) | DataType::Blob(_) | DataType::Bytes(_) | DataType::Bytea => Arrow::Binary,
        DataType::Date | DataType::Date32 => Arrow::Date32,
        DataType::Timestamp(precision, zone) => timestamp(*precision, !matches!(zone, TimezoneInfo::WithoutTimeZone))?,
        DataType::TimestampNtz(precision) | DataType::Datetime(precision) => timestamp(*precision, false)?,
        DataType::Array(element) => list(element)?,
        DataType::Map(key, value) => map(key, value)?,
        DataType::Struct(fields, _) => {
            Arrow::Struct(fields.iter().enumerate().map(|(n, f)| struct_field(n, f)).collect::<Result<Fields>>()?)
        }
        DataType::Custom(name, modifiers) => custom(&name.to_string(), modifiers)?,
        other => return Err(unknown(other)),
    })
}

/// A column as Arrow's field: nullable unless NOT NULL; its comment, and the length of VARCHAR and CHAR, in the metadata.
///
/// # Errors
/// As [`arrow_type`].
pub fn field(column: &ColumnDef) -> Result<Field> {
    let data_type = arrow_type(&column.data_type).map_err(|error| located(error, position::of(column.name.span)))?;
    let not_null = column.options.iter().any(|option| option.option == ColumnOption::NotNull);
    let mut metadata = HashMap::new();
    for option in &column.options {
        if let ColumnOption::Comment(text) = &option.option {
            metadata.insert(COMMENT.to_owned(), text.clone());
        }
    }
    if let Some(length) = text_length(&column.data_type) {
        metadata.insert(CHAR_VARCHAR.to_owned(), length);
    }
    Ok(Field::new(column.name.value.clone(), data_type, !not_null).with_metadata(metadata))
}

/// Check a type where it is declared.
pub(super) fn check(data_type: &DataType, location: Option<Location>) -> Result<()> {
    arrow_type(data_type).map(drop).map_err(|error| located(error, location))
}

fn located(error: Error, place: Option<Location>) -> Error {
    match error {
        Error::Unsupported { message, location } => Error::Unsupported { message, location: location.or(place) },
        Error::Invalid { message, location } => Error::Invalid { message, location: location.or(place) },
        other => other,
    }
}

/// `varchar(10)`, `char(5)`; none without a length.
fn text_length(data_type: &DataType) -> Option<String> {
    let (name, length) = match data_type {
        DataType::Varchar(length) | DataType::Nvarchar(length) | DataType::CharVarying(length) | DataType::CharacterVarying(length) => {
            ("varchar", length)
        }
        DataType::Char(length) | DataType::Character(length) => ("char", length),
        _ => return None,
    };
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(format!("{name}({length})")),
        _ => None,
    }
}

fn decimal(info: ExactNumberInfo) -> Result<Arrow> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s @ 0..)) if i16::from(s) <= i16::from(p) => Ok(Arrow::Decimal128(p, s)),
        _ => Err(position::invalid(
            format!("DECIMAL({precision}, {scale}): the precision goes from 1 to 38, the scale from 0 to the precision"),
            None,
        )),
    }
}

fn timestamp(precision: Option<u64>, zoned: bool) -> Result<Arrow> {
    if let Some(precision) = precision.filter(|p| *p > 6) {
        return Err(position::invalid(format!("TIMESTAMP({precision}): tables hold microseconds, that is at most TIMESTAMP(6)"), None));
    }
    Ok(Arrow::Timestamp(TimeUnit::Microsecond, zoned.then(|| "UTC".into())))
}

fn list(element: &ArrayElemTypeDef) -> Result<Arrow> {
    match element {
        ArrayElemTypeDef::AngleBracket(inner) | ArrayElemTypeDef::SquareBracket(inner, _) | ArrayElemTypeDef::Parenthesis(inner) => {
            Ok(Arrow::List(Arc::new(Field::new("element", arrow_type(inner)?, true))))
        }
        ArrayElemTypeDef::None => Err(position::invalid("ARRAY needs the type of its elements: ARRAY<STRING>", None)),
    }
}

fn map(key: &DataType, value: &DataType) -> Result<Arrow> {
    let entry = Fields::from(vec![Field::new("key", arrow_type(key)?, false), Field::new("value", arrow_type(value)?, true)]);
    Ok(Arrow::Map(Arc::new(Field::new("key_value", Arrow::Struct(entry), false)), false))
}

fn struct_field(number: usize, field: &StructField) -> Result<Field> {
    let Some(name) = &field.field_name else {
        return Err(position::invalid(format!("field {} of a STRUCT has no name: STRUCT<name: TYPE>", number + 1), None));
    };
    Ok(Field::new(name.value.clone(), arrow_type(&field.field_type)?, true))
}

/// Names that sqlparser does not know.
fn custom(name: &str, modifiers: &[String]) -> Result<Arrow> {
    let simple = match name.to_ascii_uppercase().as_str() {
        "BYTE" => Arrow::Int8,
        "SHORT" => Arrow::Int16,
        "LONG" => Arrow::Int64,
        "TIMESTAMP_LTZ" => return timestamp(None, true),
        "DATETIME2" => return timestamp(None, false),
        _ => {
            return Err(unknown(&DataType::Custom(
                datafusion::sql::sqlparser::ast::ObjectName::from(vec![name.into()]),
                modifiers.to_vec(),
            )));
        }
    };
    Ok(simple)
}

fn unknown(data_type: &DataType) -> Error {
    let instead = match data_type {
        DataType::Time(..) => "keep a time of day as STRING or as a number",
        DataType::Interval { .. } => "keep an interval as a number",
        DataType::Uuid | DataType::JSON | DataType::JSONB => "use STRING",
        _ => {
            "there are BOOLEAN, TINYINT to BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY, MAP, STRUCT"
        }
    };
    position::unsupported(format!("the type {data_type}; {instead}"), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Kind, parse};

    fn typed(name: &str) -> String {
        match parse(&format!("CREATE TABLE t (c {name})")) {
            Ok(statement) => match statement.kind {
                Kind::CreateTable(table) => field(&table.columns[0]).map_or_else(|e| format!("! {e}"), |f| f.data_type().to_string()),
                other => format!("{other:?}"),
            },
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn names() {
        let check = |name: &str, expect: &str| assert_eq!(typed(name), expect, "{name}");
        for (name, expect) in [
            ("BOOLEAN", "Boolean"),
            ("tinyint", "Int8"),
            ("BYTE", "Int8"),
            ("SMALLINT", "Int16"),
            ("short", "Int16"),
            ("INT", "Int32"),
            ("INTEGER", "Int32"),
            ("BIGINT", "Int64"),
            ("LONG", "Int64"),
            ("FLOAT", "Float32"),
            ("REAL", "Float32"),
            ("DOUBLE", "Float64"),
            ("DOUBLE PRECISION", "Float64"),
            ("DECIMAL", "Decimal128(10, 0)"),
            ("DECIMAL(38,10)", "Decimal128(38, 10)"),
            ("NUMERIC(5)", "Decimal128(5, 0)"),
            ("STRING", "Utf8"),
            ("VARCHAR(10)", "Utf8"),
            ("CHAR(5)", "Utf8"),
            ("BINARY", "Binary"),
            ("DATE", "Date32"),
            ("TIMESTAMP", "Timestamp(µs, \"UTC\")"),
            ("TIMESTAMP(6) WITH TIME ZONE", "Timestamp(µs, \"UTC\")"),
            ("TIMESTAMP_LTZ", "Timestamp(µs, \"UTC\")"),
            ("TIMESTAMP_NTZ", "Timestamp(µs)"),
            ("TIMESTAMP WITHOUT TIME ZONE", "Timestamp(µs)"),
            ("ARRAY<INT>", "List(Int32, field: 'element')"),
            ("ARRAY<ARRAY<INT>>", "List(List(Int32, field: 'element'), field: 'element')"),
            (
                "MAP<STRING, ARRAY<INT>>",
                "Map(\"key_value\": non-null Struct(\"key\": non-null Utf8, \"value\": List(Int32, field: 'element')), unsorted)",
            ),
            ("STRUCT<d: INT, e: STRING>", "Struct(\"d\": Int32, \"e\": Utf8)"),
            ("STRUCT<a: STRUCT<b: INT>>", "Struct(\"a\": Struct(\"b\": Int32))"),
        ] {
            check(name, expect);
        }
        for (name, part) in [
            ("TIME", "keep a time of day"),
            ("DECIMAL(39)", "the precision goes from 1 to 38"),
            ("DECIMAL(5, 6)", "the scale from 0"),
            ("TIMESTAMP(9)", "microseconds"),
            ("frob", "the type frob"),
            ("VARIANT", "the type VARIANT"),
        ] {
            let got = typed(name);
            assert!(got.starts_with('!') && got.contains(part) && got.contains("line 1, column 17"), "{name}: {got}");
        }
    }

    #[test]
    fn fields_keep_what_arrow_has_no_type_for() {
        let Ok(statement) = parse("CREATE TABLE t (Id INT NOT NULL COMMENT 'key', v VARCHAR(10))") else { panic!("parses") };
        let Kind::CreateTable(table) = statement.kind else { panic!("a table") };
        let fields: Vec<Field> = table.columns.iter().filter_map(|column| field(column).ok()).collect();
        assert_eq!((fields[0].name().as_str(), fields[0].is_nullable()), ("Id", false));
        assert_eq!(fields[0].metadata()[COMMENT], "key");
        assert_eq!(fields[1].metadata()[CHAR_VARCHAR], "varchar(10)");
    }
}
