//! Metadata tables: what is known of a table's versions and files, as rows. No data file is opened for them.
//!
//! `t.files` and `t.partitions` are of one version (a selector applies); `t.history` and `t.snapshots` are of all. Trino's spelling is
//! `"t$files"`. Columns have the names of Iceberg's metadata tables where both formats have the thing, so that one query serves both;
//! `t.history` is Delta's `DESCRIBE HISTORY`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::{concat_batches, take, take_record_batch};
use arrow::datatypes::{Field, Int64Type, Schema};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use asof_storage::index::Chunk;
use asof_storage::{Commit, FileIndex, Snapshot};

use crate::command::history;
use crate::error::{Error, Result};
use crate::statement::TableTarget;

/// Which metadata table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// `DESCRIBE HISTORY`.
    History,
    /// Versions in the words of Iceberg's `snapshots`.
    Snapshots,
    /// Live files.
    Files,
    /// Partitions with what they hold.
    Partitions,
}

impl Which {
    fn of(name: &str) -> Option<Self> {
        match name {
            "history" => Some(Self::History),
            "snapshots" => Some(Self::Snapshots),
            "files" => Some(Self::Files),
            "partitions" => Some(Self::Partitions),
            _ => None,
        }
    }

    /// Is it of one version?
    pub(super) fn has_versions(self) -> bool {
        matches!(self, Self::Files | Self::Partitions)
    }
}

/// The table and the metadata table of a name such as `t.files` or `"t$files"`.
pub(super) fn named(target: &TableTarget) -> Option<(TableTarget, Which)> {
    let TableTarget::Name(parts) = target else { return None };
    let (last, rest) = parts.split_last()?;
    if let Some((table, which)) = last.rsplit_once('$') {
        let which = Which::of(&which.to_lowercase())?;
        return Some((TableTarget::Name(rest.iter().cloned().chain([table.to_owned()]).collect()), which));
    }
    let which = Which::of(&last.to_lowercase())?;
    (!rest.is_empty()).then(|| (TableTarget::Name(rest.to_vec()), which))
}

/// Does the error say that there is no table of the full name?
pub(super) fn may_be(error: &Error) -> bool {
    use asof_catalog::Error as C;
    matches!(error, Error::Catalog(C::UnknownTable { .. } | C::UnknownSchema { .. } | C::UnknownCatalog { .. } | C::InvalidName(_)))
}

/// Does the error say that the first part names no catalog?
pub(super) fn no_catalog(error: &Error) -> bool {
    matches!(error, Error::Catalog(asof_catalog::Error::UnknownCatalog { .. }))
}

/// The rows of a metadata table of one version.
pub(super) fn of_version(which: Which, index: &FileIndex, snapshot: &Snapshot) -> Result<RecordBatch> {
    let files = live(index, snapshot)?;
    match which {
        Which::Partitions => partitions(&files),
        _ => files_table(&files),
    }
    .map_err(internal)
}

/// The rows of a metadata table of all versions.
pub(super) fn of_commits(which: Which, commits: &[Commit]) -> Result<RecordBatch> {
    if which == Which::History {
        return history::batch(commits);
    }
    let moments: TimestampMicrosecondArray = commits.iter().map(|c| Some(c.timestamp.0)).collect();
    let parents: Int64Array = commits.iter().map(|c| (c.version > 0).then_some(c.version - 1)).collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("committed_at", Arc::new(moments.with_timezone("UTC")), true),
        ("snapshot_id", Arc::new(commits.iter().map(|c| Some(c.version)).collect::<Int64Array>()), true),
        ("parent_id", Arc::new(parents), true),
        ("operation", Arc::new(commits.iter().map(|c| c.operation.as_deref()).collect::<StringArray>()), true),
        ("summary", history::map(commits.iter().map(|c| c.operation_metrics.as_ref()))?, true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(internal)
}

/// Of the live files: the index's own columns.
struct Files {
    rows: RecordBatch,
    deleted: Int64Array,
}

fn live(index: &FileIndex, snapshot: &Snapshot) -> Result<Files> {
    let chunks: Vec<(RecordBatch, Int64Array)> = index.chunks().iter().map(live_rows).collect::<Result<_, _>>().map_err(internal)?;
    let rows = concat_batches(&snapshot.index_schema(), chunks.iter().map(|(rows, _)| rows)).map_err(internal)?;
    let deleted = chunks.iter().flat_map(|(_, deleted)| deleted.iter()).collect();
    Ok(Files { rows, deleted })
}

fn live_rows(chunk: &Chunk) -> Result<(RecordBatch, Int64Array), ArrowError> {
    let rows: UInt32Array = chunk.live_rows().map(|r| u32::try_from(r).unwrap_or(u32::MAX)).collect();
    let deleted = match chunk.deleted_rows() {
        Some(deleted) => take(&deleted, &rows, None)?.as_primitive::<Int64Type>().iter().map(|d| Some(d.unwrap_or(0))).collect(),
        None => Int64Array::from(vec![0; rows.len()]),
    };
    Ok((take_record_batch(&chunk.rows, &rows)?, deleted))
}

impl Files {
    fn column(&self, name: &str) -> Result<ArrayRef, ArrowError> {
        let found = self.rows.column_by_name(name).cloned();
        found.ok_or_else(|| ArrowError::SchemaError(format!("the index has no column {name}")))
    }

    fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Rows that each file holds, deleted ones aside; NULL where the log does not count them.
    fn records(&self) -> Result<Int64Array, ArrowError> {
        let rows = self.column("rows")?;
        Ok(rows.as_primitive::<Int64Type>().iter().zip(self.deleted.iter()).map(|(rows, gone)| Some(rows? - gone.unwrap_or(0))).collect())
    }
}

fn files_table(files: &Files) -> Result<RecordBatch, ArrowError> {
    let moments = files.column("modification_time")?;
    let moments: TimestampMicrosecondArray =
        moments.as_primitive::<Int64Type>().iter().map(|ms| ms.map(|ms| ms.saturating_mul(1000))).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("content", Arc::new(arrow::array::Int32Array::from(vec![0; files.len()]))),
        ("file_path", files.column("path")?),
        ("file_format", Arc::new(StringArray::from(vec!["PARQUET"; files.len()]))),
        ("partition", files.column("partition")?),
        ("record_count", Arc::new(files.records()?)),
        ("deleted_record_count", Arc::new(files.deleted.clone())),
        ("file_size_in_bytes", files.column("size")?),
        ("modified_at", Arc::new(moments.with_timezone("UTC"))),
        ("null_value_counts", files.column("null_count")?),
        ("lower_bounds", files.column("min")?),
        ("upper_bounds", files.column("max")?),
    ];
    // A struct without fields says nothing, and few clients can take it.
    columns.retain(|(_, array)| array.as_struct_opt().is_none_or(|s| s.num_columns() > 0));
    let fields: Vec<Field> = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, array)| array).collect())
}

/// What one partition holds.
#[derive(Clone, Copy, Default)]
struct Sums {
    first: u32,
    files: i64,
    records: Option<i64>,
    deleted: i64,
    bytes: i64,
}

fn partitions(files: &Files) -> Result<RecordBatch, ArrowError> {
    let partition = files.column("partition")?;
    let values = partition.as_struct();
    let converter = RowConverter::new(values.columns().iter().map(|c| SortField::new(c.data_type().clone())).collect())?;
    let keys = (values.num_columns() > 0).then(|| converter.convert_columns(values.columns())).transpose()?;
    let (records, sizes) = (files.records()?, files.column("size")?);
    let mut places: HashMap<Box<[u8]>, usize> = HashMap::new();
    let mut sums: Vec<Sums> = Vec::new();
    for row in 0..files.len() {
        let key = keys.as_ref().map_or_else(Box::default, |keys| keys.row(row).as_ref().into());
        let place = *places.entry(key).or_insert(sums.len());
        if place == sums.len() {
            sums.push(Sums { first: u32::try_from(row).unwrap_or(u32::MAX), records: Some(0), ..Sums::default() });
        }
        let sum = &mut sums[place];
        sum.files += 1;
        sum.records = sum.records.zip(records.is_valid(row).then(|| records.value(row))).map(|(a, b)| a + b);
        sum.deleted += files.deleted.value(row);
        sum.bytes += sizes.as_primitive::<Int64Type>().value(row);
    }
    let first: UInt32Array = sums.iter().map(|s| s.first).collect();
    let long = |get: fn(&Sums) -> Option<i64>| Arc::new(sums.iter().map(get).collect::<Int64Array>()) as ArrayRef;
    let mut columns = vec![("partition", take(values, &first, None)?)];
    columns.retain(|_| values.num_columns() > 0);
    columns.extend([
        ("record_count", long(|s| s.records)),
        ("deleted_record_count", long(|s| Some(s.deleted))),
        ("file_count", long(|s| Some(s.files))),
        ("total_data_file_size_in_bytes", long(|s| Some(s.bytes))),
    ]);
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn internal(error: ArrowError) -> Error {
    Error::Internal(error.to_string())
}
