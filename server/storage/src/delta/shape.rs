//! What the index's columns are typed by: a snapshot's schema, its partition columns and how its columns are mapped.

use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use super::schema::{ASOF_TYPE, PHYSICAL_NAME, TYPE_CHANGES};
use crate::snapshot::ColumnMapping;

/// What the index's columns are typed by.
#[derive(Clone, Debug)]
pub struct IndexShape {
    /// Partition columns.
    pub partitions: Vec<Named>,
    /// Columns that may have statistics.
    pub columns: Vec<Named>,
    schema: SchemaRef,
}

/// A column of the table.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name in files and in the log.
    pub physical: String,
    /// Its type at this version.
    pub data_type: DataType,
    /// Its bounds cannot be trusted for older files.
    pub no_bounds: bool,
}

impl IndexShape {
    /// For a snapshot's schema.
    pub fn new(schema: &Schema, partition_columns: &[String], mapping: ColumnMapping) -> Self {
        let named = |f: &Field| Named {
            physical: physical_name(f, mapping).to_owned(),
            data_type: f.data_type().clone(),
            // A FLOAT's bound in decimal text is not the DOUBLE that the widened value is.
            no_bounds: *f.data_type() == DataType::Float64 && f.metadata().contains_key(TYPE_CHANGES),
        };
        let is_partition = |f: &Field| partition_columns.contains(f.name());
        let with_stats = |f: &Field| !is_partition(f) && !f.data_type().is_nested() && !f.metadata().contains_key(ASOF_TYPE);
        let partition_fields: Vec<&Field> = partition_columns.iter().filter_map(|n| schema.field_with_name(n).ok()).collect();
        let stats_fields: Vec<&Field> = schema.fields().iter().map(AsRef::as_ref).filter(|f| with_stats(f)).collect();
        let typed = |fields: &[&Field]| fields.iter().map(|f| Field::new(f.name(), f.data_type().clone(), true)).collect::<Fields>();
        let counts = stats_fields.iter().map(|f| Field::new(f.name(), DataType::Int64, true)).collect::<Fields>();
        let index_schema = index_schema(typed(&partition_fields), typed(&stats_fields), counts);
        Self {
            partitions: partition_fields.into_iter().map(named).collect(),
            columns: stats_fields.into_iter().map(named).collect(),
            schema: Arc::new(index_schema),
        }
    }

    /// The schema of its chunks.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// A column's name in data files and in the log.
pub fn physical_name(field: &Field, mapping: ColumnMapping) -> &str {
    match mapping {
        ColumnMapping::None => field.name(),
        ColumnMapping::Name | ColumnMapping::Id => field.metadata().get(PHYSICAL_NAME).map_or(field.name(), String::as_str),
    }
}

/// The fields of a deletion vector's descriptor.
pub fn vector_fields() -> Fields {
    Fields::from(vec![
        Field::new("storage_type", DataType::Utf8, false),
        Field::new("path_or_inline", DataType::Utf8, false),
        Field::new("offset", DataType::Int32, true),
        Field::new("size_in_bytes", DataType::Int32, false),
        Field::new("cardinality", DataType::Int64, false),
    ])
}

/// The type of the raw partition values.
pub fn map_entries() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)])
}

/// A struct column of the index.
pub fn struct_of(shape: &IndexShape, name: &str, arrays: Vec<ArrayRef>, len: usize) -> Result<ArrayRef, String> {
    match shape.schema.field_with_name(name).map(Field::data_type) {
        Ok(DataType::Struct(fields)) => {
            let built = StructArray::try_new_with_length(fields.clone(), arrays, None, len);
            built.map(|s| Arc::new(s) as ArrayRef).map_err(|e| e.to_string())
        }
        _ => Err(format!("the index has no struct {name}")),
    }
}

fn index_schema(partition: Fields, bounds: Fields, counts: Fields) -> Schema {
    let map = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(map_entries()), false)), false);
    Schema::new(vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("size", DataType::Int64, false),
        Field::new("modification_time", DataType::Int64, false),
        Field::new("rows", DataType::Int64, true),
        Field::new("tight_bounds", DataType::Boolean, false),
        Field::new("partition", DataType::Struct(partition), false),
        Field::new("min", DataType::Struct(bounds.clone()), false),
        Field::new("max", DataType::Struct(bounds), false),
        Field::new("null_count", DataType::Struct(counts), false),
        Field::new("deletion_vector", DataType::Struct(vector_fields()), true),
        Field::new("partition_values", map, false),
    ])
}
