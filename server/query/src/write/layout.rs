//! How a table's columns lie in its data files.
//!
//! Files hold every column but the partition columns, under their physical names, with Parquet field ids where the table maps columns.
//! Every field is optional in files whatever the table says (NOT NULL is enforced before encoding), so that a relaxed constraint needs no
//! rewrite. Lists and maps are named as the Parquet standard wants them (`element`, `key_value`, `key`, `value`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use asof_storage::snapshot::ColumnMapping;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::error::{Error, Result};

/// Delta's key of a field's physical name.
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
/// Delta's key of a field's id.
const FIELD_ID: &str = "delta.columnMapping.id";
/// Marks a variant (see `Snapshot::schema`).
const ASOF_TYPE: &str = "asof.type";

/// The name of a field in data files, statistics and partition values.
#[must_use]
pub fn physical_name(field: &Field, mapping: ColumnMapping) -> &str {
    match mapping {
        ColumnMapping::None => field.name(),
        ColumnMapping::Name | ColumnMapping::Id => field.metadata().get(PHYSICAL_NAME).map_or(field.name(), |name| name),
    }
}

/// The schema of a table's data files.
///
/// # Errors
/// `Unsupported` for a column whose type asof cannot write, by name.
pub fn file_schema(schema: &Schema, partition_columns: &[String], mapping: ColumnMapping) -> Result<SchemaRef> {
    let columns = schema.fields().iter().filter(|f| !partition_columns.contains(f.name()));
    let fields = columns.map(|f| file_field(f, mapping)).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

fn file_field(field: &Field, mapping: ColumnMapping) -> Result<Field> {
    if field.metadata().contains_key(ASOF_TYPE) {
        return Err(Error::Unsupported {
            message: format!("column {} is a {}: writing it", field.name(), field.metadata()[ASOF_TYPE]),
            location: None,
        });
    }
    let data_type = file_type(field.name(), field.data_type(), mapping)?;
    let mut metadata = HashMap::new();
    if mapping != ColumnMapping::None
        && let Some(id) = field.metadata().get(FIELD_ID)
    {
        metadata.insert(PARQUET_FIELD_ID_META_KEY.to_owned(), id.clone());
    }
    Ok(Field::new(physical_name(field, mapping), data_type, true).with_metadata(metadata))
}

fn file_type(column: &str, data_type: &DataType, mapping: ColumnMapping) -> Result<DataType> {
    Ok(match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| file_field(f, mapping)).collect::<Result<Vec<_>>>()?.into()),
        DataType::List(element) | DataType::LargeList(element) => {
            DataType::List(Arc::new(file_field(element, mapping)?.with_name("element")))
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { return Err(unwritable(column, data_type)) };
            let [key, value] = pair.as_ref() else { return Err(unwritable(column, data_type)) };
            let key = file_field(key, mapping)?.with_name("key").with_nullable(false);
            let value = file_field(value, mapping)?.with_name("value");
            DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(Fields::from(vec![key, value])), false)), false)
        }
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Decimal128(..)
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Timestamp(TimeUnit::Microsecond, _) => data_type.clone(),
        other => return Err(unwritable(column, other)),
    })
}

fn unwritable(column: &str, data_type: &DataType) -> Error {
    Error::Unsupported {
        message: format!("column {column} has type {data_type}, which a Delta table cannot hold; cast it to a type that it can"),
        location: None,
    }
}

/// The same type with every field nullable at every level (except a map's keys) and without metadata: what rows look like before NOT NULL
/// is checked, and the types that scans present.
#[must_use]
pub(crate) fn relaxed(field: &Field) -> FieldRef {
    Arc::new(Field::new(field.name(), relaxed_type(field.data_type()), true))
}

fn relaxed_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| relaxed(f)).collect()),
        DataType::List(element) => DataType::List(relaxed(element)),
        DataType::Map(entries, sorted) => {
            let pair = match entries.data_type() {
                DataType::Struct(pair) => pair.iter().enumerate().map(|(i, f)| match i {
                    0 => Arc::new(Field::new(f.name(), relaxed_type(f.data_type()), false)),
                    _ => relaxed(f),
                }),
                _ => return data_type.clone(),
            };
            let pair = DataType::Struct(pair.collect());
            DataType::Map(Arc::new(Field::new(entries.name(), pair, false)), *sorted)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(name: &str, id: &str) -> HashMap<String, String> {
        HashMap::from([(PHYSICAL_NAME.to_owned(), name.to_owned()), (FIELD_ID.to_owned(), id.to_owned())])
    }

    #[test]
    fn mapped_columns_lie_under_their_physical_names_with_ids() {
        let inner = Field::new("x", DataType::Int32, false).with_metadata(mapped("col-x", "3"));
        let schema = Schema::new(vec![
            Field::new("a", DataType::Utf8, false).with_metadata(mapped("col-a", "1")),
            Field::new("p", DataType::Utf8, true).with_metadata(mapped("col-p", "4")),
            Field::new("l", DataType::List(Arc::new(Field::new("item", DataType::Struct(vec![inner].into()), true))), true)
                .with_metadata(mapped("col-l", "2")),
        ]);
        let file = file_schema(&schema, &["p".to_owned()], ColumnMapping::Name).unwrap();
        let names: Vec<_> = file.fields().iter().map(|f| f.name().as_str()).collect();
        assert_eq!(names, ["col-a", "col-l"]);
        assert!(file.field(0).is_nullable());
        assert_eq!(file.field(0).metadata()[PARQUET_FIELD_ID_META_KEY], "1");
        let DataType::List(element) = file.field(1).data_type() else { panic!() };
        assert_eq!(element.name(), "element");
        let DataType::Struct(fields) = element.data_type() else { panic!() };
        assert_eq!((fields[0].name().as_str(), fields[0].metadata()[PARQUET_FIELD_ID_META_KEY].as_str()), ("col-x", "3"));
        assert_eq!(file_schema(&schema, &[], ColumnMapping::None).unwrap().field(0).name(), "a");
    }

    #[test]
    fn types_a_table_cannot_hold_are_refused_by_name() {
        let schema = Schema::new(vec![Field::new("u", DataType::UInt64, true)]);
        let error = file_schema(&schema, &[], ColumnMapping::None).unwrap_err().to_string();
        assert!(error.contains("column u has type UInt64"), "{error}");
    }
}
