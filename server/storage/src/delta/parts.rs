//! The files that a checkpoint holds, column by column.
//!
//! A checkpoint of an old table holds millions of files, with their statistics as JSON text and, where its writer was so kind, as typed columns
//! beside it. Only what the index wants is decoded: the typed columns where every file has them, else the text; row groups and batches
//! side by side.
//!
//! What is not as expected is an error in words: the caller then asks the kernel, which knows every form of checkpoint, or says what is wrong.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, MapArray, StructArray, new_null_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, filter_record_batch, is_not_null};
use arrow::datatypes::{DataType, Field, Int64Type};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStream, ParquetRecordBatchStreamBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;

use super::actions::{Metadata, Protocol, Remove};
use super::log::LOG;
use super::shape::{IndexShape, map_entries, struct_of, vector_fields};
use super::statistics::{StatisticsBuilder, StatisticsColumns, typed};
use super::vacuum::Tombstone;
use super::values::ValueColumn;
use crate::deletes::DeletionVector;
use crate::index::Chunk;
use crate::object::TableStore;

/// Files of one batch, and so of one chunk at most.
const BATCH: usize = 64 << 10;
/// Parts of a checkpoint read at once.
const PARTS: usize = 8;

/// Bytes from a file's end that are fetched first.
const FOOTER_GUESS: usize = 64 << 10;

/// Where the statistics are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    /// Typed columns.
    Columns,
    /// JSON text.
    Text,
}

/// The files of a checkpoint of these parts, in their order.
pub async fn read(store: &TableStore, parts: &[ObjectMeta], shape: &Arc<IndexShape>) -> Result<Vec<Chunk>, String> {
    let mut batches = Vec::new();
    for (found, sidecars) in read_all(store, parts, shape).await? {
        batches.extend(found);
        batches.extend(read_all(store, &sidecars, shape).await?.into_iter().flat_map(|(found, _)| found));
    }
    Ok(batches.into_iter().filter(|b| b.num_rows() > 0).map(|b| Chunk { rows: Arc::new(b), live: None }).collect())
}

/// Batches of a checkpoint's rows.
type Batches = ParquetRecordBatchStream<Reader>;
/// The protocol and the metadata that a checkpoint of these parts holds.
pub async fn heads(store: &TableStore, parts: &[ObjectMeta]) -> Result<(Protocol, Metadata), String> {
    let (mut protocol, mut metadata) = (None, None);
    for meta in parts {
        let part = Part::open(store, meta).await?;
        protocol = protocol.or(part.action("protocol", "minReaderVersion").await?);
        metadata = metadata.or(part.action("metaData", "id").await?);
        if let (Some(protocol), Some(metadata)) = (&protocol, &metadata) {
            let parse = |e: serde_json::Error| e.to_string();
            return Ok((Protocol::deserialize(protocol).map_err(parse)?, Metadata::deserialize(metadata).map_err(parse)?));
        }
    }
    Err("the checkpoint has no protocol or no metaData".to_owned())
}

/// The tombstones that a checkpoint of these parts holds.
pub async fn tombstones(store: &TableStore, parts: &[ObjectMeta]) -> Result<Vec<Tombstone>, String> {
    let mut found = Vec::new();
    let mut left = parts.to_vec();
    while let Some(meta) = left.pop() {
        let part = Part::open(store, &meta).await?;
        left.extend(part.sidecars(store).await?);
        part.tombstones(&mut found).await?;
    }
    Ok(found)
}

/// Index rows, and further files to read.
type Read = (Vec<RecordBatch>, Vec<ObjectMeta>);

async fn read_all(store: &TableStore, parts: &[ObjectMeta], shape: &Arc<IndexShape>) -> Result<Vec<Read>, String> {
    let reads: Vec<_> = parts.iter().map(|part| read_part(store, part, shape)).collect();
    stream::iter(reads).buffered(PARTS).try_collect().await
}

/// An opened part.
#[derive(Clone)]
struct Part {
    reader: Reader,
    metadata: ArrowReaderMetadata,
}

/// A part's bytes.
#[derive(Clone)]
struct Reader {
    objects: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        async move { self.objects.get_range(&self.meta.location, range).await.map_err(external) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        async move { self.objects.get_ranges(&self.meta.location, &ranges).await.map_err(external) }.boxed()
    }

    fn get_metadata<'a>(&'a mut self, _: Option<&'a ArrowReaderOptions>) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        let size = self.meta.size;
        async move {
            let reader = ParquetMetaDataReader::new().with_prefetch_hint(Some(FOOTER_GUESS));
            Ok(Arc::new(reader.load_and_finish(&mut *self, size).await?))
        }
        .boxed()
    }
}

fn external(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

async fn read_part(store: &TableStore, meta: &ObjectMeta, shape: &Arc<IndexShape>) -> Result<Read, String> {
    let part = Part::open(store, meta).await?;
    let sidecars = part.sidecars(store).await?;
    let with_columns = part.has("stats_parsed");
    let mut files = None;
    if with_columns {
        files = part.files(shape, From::Columns).await?;
    }
    if files.is_none() {
        files = part.files(shape, From::Text).await?;
    }
    Ok((files.unwrap_or_default(), sidecars))
}

impl Part {
    async fn open(store: &TableStore, meta: &ObjectMeta) -> Result<Self, String> {
        if meta.location.extension() != Some("parquet") {
            return Err(format!("{} is no Parquet file", store.shown(&meta.location)));
        }
        let mut reader = Reader { objects: Arc::clone(&store.objects), meta: meta.clone() };
        let metadata = ArrowReaderMetadata::load_async(&mut reader, ArrowReaderOptions::new()).await.map_err(|e| e.to_string())?;
        Ok(Self { reader, metadata })
    }

    /// The one action of a kind, as JSON; `always` is a field that it always has, by which row groups without it are told.
    async fn action(&self, kind: &str, always: &str) -> Result<Option<Value>, String> {
        let leaf = self.schema().columns().iter().position(|c| c.path().parts() == [kind, always]);
        let Some(leaf) = leaf else { return Ok(None) };
        for (number, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let nulls = group.column(leaf).statistics().and_then(Statistics::null_count_opt);
            if nulls.is_some_and(|n| i64::try_from(n) == Ok(group.num_rows())) {
                continue;
            }
            let mut batches = self.group(self.mask(|path| path.first() == Some(&kind)), number)?;
            while let Some(batch) = batches.try_next().await.map_err(|e| e.to_string())? {
                let actions = column(&batch, kind)?;
                if let Some(row) = (0..actions.len()).find(|row| actions.is_valid(*row)) {
                    return json(actions, row).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn schema(&self) -> &SchemaDescriptor {
        self.metadata.metadata().file_metadata().schema_descr()
    }

    /// Whether `add` has such a field.
    fn has(&self, field: &str) -> bool {
        self.schema().columns().iter().any(|c| matches!(c.path().parts(), [add, f, ..] if add == "add" && f == field))
    }

    /// The leaves that are wanted.
    fn mask(&self, wanted: impl Fn(&[&str]) -> bool) -> ProjectionMask {
        let schema = self.schema();
        let leaves = schema.columns().iter().enumerate().filter(|(_, column)| {
            let path: Vec<&str> = column.path().parts().iter().map(String::as_str).collect();
            wanted(&path)
        });
        ProjectionMask::leaves(schema, leaves.map(|(i, _)| i).collect::<Vec<_>>())
    }

    /// The batches of a row group.
    fn group(&self, mask: ProjectionMask, group: usize) -> Result<Batches, String> {
        ParquetRecordBatchStreamBuilder::new_with_metadata(self.reader.clone(), self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(vec![group])
            .with_batch_size(BATCH)
            .build()
            .map_err(|e| e.to_string())
    }

    /// The further files of a V2 checkpoint.
    async fn sidecars(&self, store: &TableStore) -> Result<Vec<ObjectMeta>, String> {
        if !self.schema().columns().iter().any(|c| c.path().parts().first().is_some_and(|p| p == "sidecar")) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for group in 0..self.metadata.metadata().num_row_groups() {
            let mask = self.mask(|path| matches!(path, ["sidecar", "path" | "sizeInBytes", ..]));
            let mut batches = self.group(mask, group)?;
            while let Some(batch) = batches.try_next().await.map_err(|e| e.to_string())? {
                let sidecars = column(&batch, "sidecar")?.as_struct_opt().ok_or("sidecar is no struct")?.clone();
                let paths = as_type(child(&sidecars, "path")?, &DataType::Utf8)?;
                let sizes = as_type(child(&sidecars, "sizeInBytes")?, &DataType::Int64)?;
                for row in (0..sidecars.len()).filter(|r| sidecars.is_valid(*r)) {
                    let path = paths.as_string::<i32>().value(row);
                    let size = sizes.as_primitive::<Int64Type>().value(row);
                    found.push(sidecar(store, path, size)?);
                }
            }
        }
        Ok(found)
    }

    async fn tombstones(&self, found: &mut Vec<Tombstone>) -> Result<(), String> {
        if !self.schema().columns().iter().any(|c| c.path().parts().first().is_some_and(|p| p == "remove")) {
            return Ok(());
        }
        let mask = self.mask(|path| matches!(path, ["remove", "path" | "deletionTimestamp" | "deletionVector", ..]));
        for group in 0..self.metadata.metadata().num_row_groups() {
            let mut batches = self.group(mask.clone(), group)?;
            while let Some(batch) = batches.try_next().await.map_err(|e| e.to_string())? {
                let removes = column(&batch, "remove")?;
                for row in (0..removes.len()).filter(|row| removes.is_valid(*row)) {
                    found.push(tombstone(json(removes, row)?)?);
                }
            }
        }
        Ok(())
    }

    /// The files as index rows; `None` when some file lacks its typed statistics.
    async fn files(&self, shape: &Arc<IndexShape>, from: From) -> Result<Option<Vec<RecordBatch>>, String> {
        let wanted = |path: &[&str]| match path {
            ["add", "path" | "size" | "modificationTime" | "partitionValues" | "deletionVector", ..] => true,
            ["add", "stats"] => from == From::Text,
            ["add", "stats_parsed", "numRecords" | "tightBounds"] => from == From::Columns,
            ["add", "stats_parsed", "minValues" | "maxValues" | "nullCount", name] => {
                from == From::Columns && shape.columns.iter().any(|c| c.physical == *name)
            }
            _ => false,
        };
        let mask = self.mask(wanted);
        // Dropping the set ends the tasks.
        let mut groups = JoinSet::new();
        for number in 0..self.metadata.metadata().num_row_groups() {
            let batches = self.group(mask.clone(), number)?;
            let shape = Arc::clone(shape);
            groups.spawn(async move { (number, group_files(batches, shape, from).await) });
        }
        let mut found = Vec::new();
        while let Some(joined) = groups.join_next().await {
            let (number, files) = joined.map_err(|e| e.to_string())?;
            match files? {
                Some(files) => found.push((number, files)),
                None => return Ok(None),
            }
        }
        found.sort_unstable_by_key(|(number, _)| *number);
        Ok(Some(found.into_iter().flat_map(|(_, files)| files).collect()))
    }
}

fn tombstone(mut remove: Value) -> Result<Tombstone, String> {
    // Some writers have a struct of NULLs where there is no vector.
    if let Some(fields) = remove.as_object_mut()
        && fields.get("deletionVector").is_some_and(|vector| vector.get("storageType").is_none())
    {
        fields.remove("deletionVector");
    }
    let remove = Remove::deserialize(remove).map_err(|e| e.to_string())?;
    Ok(Tombstone { path: remove.path, at: remove.deletion_timestamp, deletion_vector: remove.deletion_vector.map(DeletionVector::from) })
}

async fn group_files(mut batches: Batches, shape: Arc<IndexShape>, from: From) -> Result<Option<Vec<RecordBatch>>, String> {
    let mut tasks = JoinSet::new();
    let mut number = 0;
    while let Some(batch) = batches.try_next().await.map_err(|e| e.to_string())? {
        let shape = Arc::clone(&shape);
        number += 1;
        tasks.spawn(async move { (number, index_rows(&batch, &shape, from)) });
    }
    let mut found = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        let (number, rows) = joined.map_err(|e| e.to_string())?;
        match rows? {
            Some(rows) => found.push((number, rows)),
            None => return Ok(None),
        }
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(Some(found.into_iter().map(|(_, rows)| rows).collect()))
}

/// A sidecar's object: its path is a name in the sidecars' folder, or absolute in the table's log.
fn sidecar(store: &TableStore, path: &str, size: i64) -> Result<ObjectMeta, String> {
    let location = if path.contains('/') {
        store.inside(path).map_err(|_| format!("sidecar {path} lies outside the table"))?
    } else {
        store.child(&format!("{LOG}/_sidecars/{path}")).map_err(|e| e.to_string())?
    };
    let size = u64::try_from(size).map_err(|_| format!("sidecar {path} has {size} bytes"))?;
    Ok(ObjectMeta { location, last_modified: chrono::DateTime::default(), size, e_tag: None, version: None })
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef, String> {
    batch.column_by_name(name).ok_or_else(|| format!("the checkpoint has no column {name}"))
}

fn child<'s>(parent: &'s StructArray, name: &str) -> Result<&'s ArrayRef, String> {
    parent.column_by_name(name).ok_or_else(|| format!("the checkpoint has no field {name}"))
}

fn as_type(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, String> {
    cast(array, wanted).map_err(|e| e.to_string())
}

/// A value as the log's JSON has it.
fn json(array: &ArrayRef, row: usize) -> Result<Value, String> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Struct(fields) => {
            let children = fields.iter().zip(array.as_struct().columns());
            let pairs = children.map(|(field, child)| Ok((field.name().clone(), json(child, row)?)));
            Value::Object(pairs.collect::<Result<_, String>>()?)
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::Array((0..items.len()).map(|item| json(&items, item)).collect::<Result<_, _>>()?)
        }
        DataType::Map(..) => {
            let entries: ArrayRef = Arc::new(array.as_map().value(row));
            let (keys, values) = (as_type(entries.as_struct().column(0), &DataType::Utf8)?, entries.as_struct().column(1));
            let pairs = (0..entries.len()).map(|item| Ok((keys.as_string::<i32>().value(item).to_owned(), json(values, item)?)));
            Value::Object(pairs.collect::<Result<_, String>>()?)
        }
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        number if number.is_integer() => as_type(array, &DataType::Int64)?.as_primitive::<Int64Type>().value(row).into(),
        _ => as_type(array, &DataType::Utf8)?.as_string::<i32>().value(row).into(),
    })
}

/// The files of a batch as index rows; `None` when one lacks its typed statistics.
fn index_rows(batch: &RecordBatch, shape: &IndexShape, from: From) -> Result<Option<RecordBatch>, String> {
    let is_file = is_not_null(column(batch, "add")?).map_err(|e| e.to_string())?;
    let batch = if is_file.true_count() == batch.num_rows() {
        batch.clone()
    } else {
        filter_record_batch(batch, &is_file).map_err(|e| e.to_string())?
    };
    let add = column(&batch, "add")?.as_struct_opt().ok_or("add is no struct")?;
    let Some(statistics) = statistics(add, shape, from)? else { return Ok(None) };
    let raw = partition_values(child(add, "partitionValues")?)?;
    let times = match add.column_by_name("modificationTime") {
        Some(times) => as_type(times, &DataType::Int64)?,
        None => Arc::new(Int64Array::from(vec![0; add.len()])),
    };
    let columns: Vec<ArrayRef> = vec![
        as_type(child(add, "path")?, &DataType::Utf8)?,
        as_type(child(add, "size")?, &DataType::Int64)?,
        times,
        statistics.rows,
        statistics.tight,
        typed_partition(shape, &raw)?,
        statistics.min,
        statistics.max,
        statistics.nulls,
        vectors(add.column_by_name("deletionVector"), add.len())?,
        Arc::new(raw),
    ];
    RecordBatch::try_new(Arc::clone(shape.schema()), columns).map(Some).map_err(|e| e.to_string())
}

fn statistics(add: &StructArray, shape: &IndexShape, from: From) -> Result<Option<StatisticsColumns>, String> {
    if from == From::Columns {
        let parsed = child(add, "stats_parsed")?.as_struct_opt().ok_or("stats_parsed is no struct")?;
        return if parsed.null_count() > 0 { Ok(None) } else { typed(shape, parsed).map(Some) };
    }
    let texts = match add.column_by_name("stats") {
        Some(stats) => as_type(stats, &DataType::Utf8)?,
        None => new_null_array(&DataType::Utf8, add.len()),
    };
    let paths = as_type(child(add, "path")?, &DataType::Utf8)?;
    let mut builder = StatisticsBuilder::new(shape);
    paths.as_string::<i32>().iter().zip(texts.as_string::<i32>()).for_each(|(path, text)| builder.push(path.unwrap_or_default(), text));
    builder.finish().map(Some)
}

/// The log's partition values under the index's own field names.
fn partition_values(found: &ArrayRef) -> Result<MapArray, String> {
    let map = found.as_map_opt().ok_or("partitionValues is no map")?;
    let entries = Arc::new(Field::new("entries", DataType::Struct(map_entries()), false));
    let (keys, values) = (as_type(map.keys(), &DataType::Utf8)?, as_type(map.values(), &DataType::Utf8)?);
    let pairs = StructArray::try_new(map_entries(), vec![keys, values], None).map_err(|e| e.to_string())?;
    MapArray::try_new(entries, OffsetBuffer::clone(map.offsets()), pairs, None, false).map_err(|e| e.to_string())
}

fn typed_partition(shape: &IndexShape, raw: &MapArray) -> Result<ArrayRef, String> {
    let (keys, values) = (raw.keys().as_string::<i32>(), raw.values().as_string::<i32>());
    let mut columns = Vec::with_capacity(shape.partitions.len());
    for named in &shape.partitions {
        let mut column = ValueColumn::new(&named.data_type);
        for span in raw.offsets().windows(2) {
            let at = (span[0] as usize..span[1] as usize).find(|i| keys.value(*i) == named.physical);
            let value = at.filter(|i| values.is_valid(*i)).map(|i| values.value(i));
            if !column.push_partition(value) {
                return Err(format!("partition value {value:?} of column {} is no {}", named.physical, named.data_type));
            }
        }
        columns.push(column.finish());
    }
    struct_of(shape, "partition", columns, raw.len())
}

/// The deletion vectors, as the index has them.
fn vectors(found: Option<&ArrayRef>, len: usize) -> Result<ArrayRef, String> {
    let fields = vector_fields();
    let Some(found) = found.filter(|f| f.null_count() < f.len()) else {
        return Ok(new_null_array(&DataType::Struct(fields), len));
    };
    let found = found.as_struct_opt().ok_or("deletionVector is no struct")?;
    let names = ["storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"];
    let columns = names.iter().zip(&fields).map(|(name, field)| match found.column_by_name(name) {
        Some(array) => as_type(array, field.data_type()),
        None => Ok(new_null_array(field.data_type(), len)),
    });
    let columns = columns.collect::<Result<Vec<_>, String>>()?;
    let valid = found.nulls().cloned().unwrap_or_else(|| NullBuffer::new_valid(len));
    StructArray::try_new(fields, columns, Some(valid)).map(|s| Arc::new(s) as ArrayRef).map_err(|e| e.to_string())
}
