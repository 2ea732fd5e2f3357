//! Building a version's file index: rows from the kernel's replay or from commit files, columns typed by the snapshot's schema.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Int32Builder, Int64Builder, MapBuilder, MapFieldNames, StringBuilder, StructArray, UInt32Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::actions::{Add, CommitFile};
use super::schema::{ASOF_TYPE, PHYSICAL_NAME, TYPE_CHANGES};
use super::values::{Bound, ValueColumn};
use crate::deletes::DeletionVector;
use crate::index::{Chunk, FileIndex, FileKey};
use crate::snapshot::{ColumnMapping, Version};

/// Chunks beyond this number, or with more dead rows than live ones, are merged.
const MOST_CHUNKS: usize = 32;

/// What the index's columns are typed by.
#[derive(Clone, Debug)]
pub struct IndexShape {
    partitions: Vec<Named>,
    columns: Vec<Named>,
    schema: SchemaRef,
}

#[derive(Clone, Debug)]
struct Named {
    physical: String,
    data_type: DataType,
    /// Its bounds cannot be trusted for older files.
    no_bounds: bool,
}

/// The log's `stats`, with values left as their text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats<'a> {
    #[serde(default)]
    num_records: Option<i64>,
    #[serde(default)]
    tight_bounds: Option<bool>,
    #[serde(borrow, default)]
    min_values: Option<HashMap<Cow<'a, str>, &'a RawValue>>,
    #[serde(borrow, default)]
    max_values: Option<HashMap<Cow<'a, str>, &'a RawValue>>,
    #[serde(borrow, default)]
    null_count: Option<HashMap<Cow<'a, str>, &'a RawValue>>,
}

fn value_of<'m>(values: Option<&'m HashMap<Cow<'_, str>, &'m RawValue>>, name: &str) -> Option<&'m RawValue> {
    values.and_then(|m| m.get(name).copied())
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

fn vector_fields() -> Fields {
    Fields::from(vec![
        Field::new("storage_type", DataType::Utf8, false),
        Field::new("path_or_inline", DataType::Utf8, false),
        Field::new("offset", DataType::Int32, true),
        Field::new("size_in_bytes", DataType::Int32, false),
        Field::new("cardinality", DataType::Int64, false),
    ])
}

fn map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    let names = MapFieldNames { entry: "entries".into(), key: "key".into(), value: "value".into() };
    MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new())
}

fn index_schema(partition: Fields, bounds: Fields, counts: Fields) -> Schema {
    let entries = Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)]);
    let map = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false);
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
        Field::new("stats", DataType::Utf8, true),
    ])
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
    rows: Int64Builder,
    tight: BooleanBuilder,
    partition: Vec<ValueColumn>,
    min: Vec<ValueColumn>,
    max: Vec<ValueColumn>,
    nulls: Vec<Int64Builder>,
    vectors: VectorColumns,
    raw: MapBuilder<StringBuilder, StringBuilder>,
    stats: StringBuilder,
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
        let bounds = || shape.columns.iter().map(|c| ValueColumn::new(&c.data_type)).collect();
        Self {
            shape,
            path: StringBuilder::new(),
            size: Int64Builder::new(),
            modification_time: Int64Builder::new(),
            rows: Int64Builder::new(),
            tight: BooleanBuilder::new(),
            partition: shape.partitions.iter().map(|c| ValueColumn::new(&c.data_type)).collect(),
            min: bounds(),
            max: bounds(),
            nulls: shape.columns.iter().map(|_| Int64Builder::new()).collect(),
            vectors: VectorColumns::default(),
            raw: map_builder(),
            stats: StringBuilder::new(),
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
        self.push_stats(entry.stats);
        self.vectors.push(entry.deletion_vector.as_ref());
        for (key, value) in &entry.partition_values {
            self.raw.keys().append_value(key);
            self.raw.values().append_option(*value);
        }
        self.raw.append(true).map_err(|e| e.to_string())?;
        self.len += 1;
        Ok(())
    }

    fn push_stats(&mut self, text: Option<&str>) {
        let stats: Option<Stats<'_>> = text.and_then(|t| serde_json::from_str(t).ok());
        self.stats.append_option(text);
        self.rows.append_option(stats.as_ref().and_then(|s| s.num_records));
        self.tight.append_value(stats.as_ref().and_then(|s| s.tight_bounds).unwrap_or(true));
        let values = stats.as_ref().map(|s| (s.min_values.as_ref(), s.max_values.as_ref(), s.null_count.as_ref()));
        let (min, max, nulls) = values.unwrap_or((None, None, None));
        for (i, named) in self.shape.columns.iter().enumerate() {
            let (min, max) = if named.no_bounds { (None, None) } else { (min, max) };
            self.min[i].push_stat(value_of(min, &named.physical), Bound::Min);
            self.max[i].push_stat(value_of(max, &named.physical), Bound::Max);
            self.nulls[i].append_option(value_of(nulls, &named.physical).and_then(|v| v.get().parse().ok()));
        }
    }

    /// The chunk.
    pub fn finish(mut self) -> Result<RecordBatch, String> {
        let schema = Arc::clone(&self.shape.schema);
        let struct_at = |i: usize, arrays: Vec<ArrayRef>| match schema.field(i).data_type() {
            DataType::Struct(fields) => StructArray::try_new_with_length(fields.clone(), arrays, None, self.len).map_err(|e| e.to_string()),
            other => Err(format!("column {i} of the index is {other}")),
        };
        let finish = |columns: Vec<ValueColumn>| columns.into_iter().map(ValueColumn::finish).collect::<Vec<_>>();
        let nulls = self.nulls.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.path.finish()),
            Arc::new(self.size.finish()),
            Arc::new(self.modification_time.finish()),
            Arc::new(self.rows.finish()),
            Arc::new(self.tight.finish()),
            Arc::new(struct_at(5, finish(std::mem::take(&mut self.partition)))?),
            Arc::new(struct_at(6, finish(std::mem::take(&mut self.min)))?),
            Arc::new(struct_at(7, finish(std::mem::take(&mut self.max)))?),
            Arc::new(struct_at(8, nulls)?),
            Arc::new(self.vectors.finish().map_err(|e| e.to_string())?),
            Arc::new(self.raw.finish()),
            Arc::new(self.stats.finish()),
        ];
        RecordBatch::try_new(schema, columns).map_err(|e| e.to_string())
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

/// The index one commit further: what it removes is masked, what it adds is a new chunk (S6).
pub fn advance(index: &FileIndex, shape: &IndexShape, version: Version, commit: &CommitFile) -> Result<FileIndex, String> {
    let gone: HashSet<FileKey> = commit.removes.iter().map(super::actions::Remove::key).chain(commit.adds.iter().map(Add::key)).collect();
    let paths: HashSet<&str> = gone.iter().map(|k| k.path.as_str()).collect();
    let mut chunks: Vec<Chunk> = index.chunks().iter().map(|c| without(c, &paths, &gone)).collect();
    let mut builder = ChunkBuilder::new(shape);
    let mut last: HashMap<FileKey, usize> = commit.adds.iter().enumerate().map(|(i, a)| (a.key(), i)).collect();
    for (i, add) in commit.adds.iter().enumerate() {
        if last.get(&add.key()) == Some(&i) {
            last.remove(&add.key());
            builder.push(&Entry::from(add))?;
        }
    }
    if builder.len > 0 {
        chunks.push(Chunk { rows: Arc::new(builder.finish()?), live: None });
    }
    chunks.retain(|c| c.live.as_ref().is_none_or(|l| l.count_set_bits() > 0));
    compact(FileIndex::new(version, chunks), shape)
}

fn without(chunk: &Chunk, paths: &HashSet<&str>, gone: &HashSet<FileKey>) -> Chunk {
    let dead = |row: usize| paths.contains(chunk.path(row)) && gone.contains(&chunk.key(row));
    let hits: HashSet<usize> = (0..chunk.rows.num_rows()).filter(|r| chunk.is_live(*r) && dead(*r)).collect();
    if hits.is_empty() {
        return chunk.clone();
    }
    let live = BooleanBuffer::from_iter((0..chunk.rows.num_rows()).map(|r| chunk.is_live(r) && !hits.contains(&r)));
    Chunk { rows: Arc::clone(&chunk.rows), live: Some(live) }
}

fn compact(index: FileIndex, shape: &IndexShape) -> Result<FileIndex, String> {
    let total: usize = index.chunks().iter().map(|c| c.rows.num_rows()).sum();
    if index.chunks().len() <= MOST_CHUNKS && total <= 1024 + 2 * index.len() {
        return Ok(index);
    }
    let live: Result<Vec<RecordBatch>, _> = index.chunks().iter().map(live_rows).collect();
    let merged = live.and_then(|batches| arrow::compute::concat_batches(shape.schema(), &batches)).map_err(|e| e.to_string())?;
    Ok(FileIndex::new(index.version(), vec![Chunk { rows: Arc::new(merged), live: None }]))
}

fn live_rows(chunk: &Chunk) -> Result<RecordBatch, arrow::error::ArrowError> {
    match &chunk.live {
        None => Ok(chunk.rows.as_ref().clone()),
        Some(live) => {
            let rows: UInt32Array = live.set_indices_u32().collect();
            arrow::compute::take_record_batch(&chunk.rows, &rows)
        }
    }
}
