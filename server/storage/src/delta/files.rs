//! Building a chunk of the file index row by row: from commit files, and from the kernel's replay.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Builder, Int64Builder, MapBuilder, MapFieldNames, StringBuilder, StructArray};
use arrow::buffer::NullBuffer;
use arrow::record_batch::RecordBatch;

use super::actions::Add;
use super::shape::{IndexShape, struct_of, vector_fields};
use super::statistics::StatisticsBuilder;
use super::values::ValueColumn;
use crate::deletes::DeletionVector;
use crate::index::FileKey;

fn map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    let names = MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() };
    MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new())
}

/// One live file, borrowed from whatever it was read from.
pub struct Entry<'a> {
    pub path: &'a str,
    pub size: i64,
    pub modification_time: i64,
    pub stats: Option<&'a str>,
    pub deletion_vector: Option<DeletionVector>,
    pub partition_values: BTreeMap<&'a str, Option<&'a str>>,
}

impl Entry<'_> {
    /// What identifies it.
    pub fn key(&self) -> FileKey {
        FileKey { path: self.path.to_owned(), deletion_vector: self.deletion_vector.as_ref().map(DeletionVector::unique_id) }
    }
}

impl<'a> From<&'a Add> for Entry<'a> {
    fn from(add: &'a Add) -> Self {
        Self {
            path: &add.path,
            size: add.size,
            modification_time: add.modification_time,
            stats: add.stats.as_deref(),
            deletion_vector: add.deletion_vector.clone().map(DeletionVector::from),
            partition_values: add.partition_values.iter().map(|(k, v)| (k.as_str(), v.as_deref())).collect(),
        }
    }
}

/// Builds one chunk.
pub struct ChunkBuilder<'s> {
    shape: &'s IndexShape,
    path: StringBuilder,
    size: Int64Builder,
    modification_time: Int64Builder,
    statistics: StatisticsBuilder<'s>,
    partition: Vec<ValueColumn>,
    vectors: VectorColumns,
    raw: MapBuilder<StringBuilder, StringBuilder>,
    len: usize,
}

#[derive(Default)]
struct VectorColumns {
    storage_type: StringBuilder,
    path: StringBuilder,
    offset: Int32Builder,
    size: Int32Builder,
    cardinality: Int64Builder,
    valid: Vec<bool>,
}

impl<'s> ChunkBuilder<'s> {
    /// An empty chunk.
    pub fn new(shape: &'s IndexShape) -> Self {
        Self {
            shape,
            path: StringBuilder::new(),
            size: Int64Builder::new(),
            modification_time: Int64Builder::new(),
            statistics: StatisticsBuilder::new(shape),
            partition: shape.partitions.iter().map(|c| ValueColumn::new(&c.data_type)).collect(),
            vectors: VectorColumns::default(),
            raw: map_builder(),
            len: 0,
        }
    }

    /// Appends a file; what is wrong with its entry otherwise.
    pub fn push(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        for (column, named) in self.partition.iter_mut().zip(&self.shape.partitions) {
            let value = entry.partition_values.get(named.physical.as_str()).copied().flatten();
            if !column.push_partition(value) {
                let value = value.unwrap_or_default();
                return Err(format!(
                    "file {}: partition value {value:?} of column {} is no {}",
                    entry.path, named.physical, named.data_type
                ));
            }
        }
        self.path.append_value(entry.path);
        self.size.append_value(entry.size);
        self.modification_time.append_value(entry.modification_time);
        self.statistics.push(entry.path, entry.stats);
        self.vectors.push(entry.deletion_vector.as_ref());
        for (key, value) in &entry.partition_values {
            self.raw.keys().append_value(key);
            self.raw.values().append_option(*value);
        }
        self.raw.append(true).map_err(|e| e.to_string())?;
        self.len += 1;
        Ok(())
    }

    /// How many files were appended.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The chunk.
    pub fn finish(mut self) -> Result<RecordBatch, String> {
        let statistics = self.statistics.finish()?;
        let partition = std::mem::take(&mut self.partition).into_iter().map(ValueColumn::finish).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.path.finish()),
            Arc::new(self.size.finish()),
            Arc::new(self.modification_time.finish()),
            statistics.rows,
            statistics.tight,
            struct_of(self.shape, "partition", partition, self.len)?,
            statistics.min,
            statistics.max,
            statistics.nulls,
            Arc::new(self.vectors.finish().map_err(|e| e.to_string())?),
            Arc::new(self.raw.finish()),
        ];
        RecordBatch::try_new(Arc::clone(self.shape.schema()), columns).map_err(|e| e.to_string())
    }
}

impl VectorColumns {
    fn push(&mut self, vector: Option<&DeletionVector>) {
        self.valid.push(vector.is_some());
        let mut buffer = [0; 4];
        self.storage_type.append_value(vector.map_or("", |v| v.storage_type.encode_utf8(&mut buffer)));
        self.path.append_value(vector.map_or("", |v| v.path_or_inline.as_str()));
        self.offset.append_option(vector.and_then(|v| v.offset));
        self.size.append_value(vector.map_or(0, |v| v.size_in_bytes));
        self.cardinality.append_value(vector.map_or(0, |v| v.cardinality));
    }

    fn finish(mut self) -> Result<StructArray, arrow::error::ArrowError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.storage_type.finish()),
            Arc::new(self.path.finish()),
            Arc::new(self.offset.finish()),
            Arc::new(self.size.finish()),
            Arc::new(self.cardinality.finish()),
        ];
        StructArray::try_new(vector_fields(), columns, Some(NullBuffer::from(self.valid)))
    }
}
