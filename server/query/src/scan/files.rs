//! From chosen index rows to files that DataFusion opens.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use asof_storage::Error;
use asof_storage::deletes::{self, DeletionVector};
use asof_storage::index::Chunk;
use chrono::DateTime;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectMeta;
use roaring::RoaringTreemap;

use super::columns::Columns;
use super::reader::DataFiles;
use super::select::{Selected, constants};
use super::statistics::{ChunkStatistics, FileFacts, merge, tight};
use super::{FileRows, deletes as selection};

/// Deletion vectors and footers in flight at once.
const CONCURRENCY: usize = 32;

/// A chosen file.
pub(super) struct Chosen {
    file: PartitionedFile,
    rows: Option<u64>,
    vector: Option<DeletionVector>,
    read: FileRows,
}

impl Chosen {
    /// Rows that are read, where known.
    fn left(&self) -> Option<u64> {
        left(self.rows, self.deleted(), &self.read)
    }

    /// Rows that its deletion vector takes.
    pub(super) fn deleted(&self) -> u64 {
        self.vector.as_ref().map_or(0, |v| u64::try_from(v.cardinality).unwrap_or(0))
    }
}

/// How many of a file's rows are read.
fn left(rows: Option<u64>, deleted: u64, read: &FileRows) -> Option<u64> {
    match read {
        FileRows::All => Some(rows?.saturating_sub(deleted)),
        FileRows::Only(these) => Some(these.len()),
        FileRows::Except(these) => Some(rows?.saturating_sub(deleted).saturating_sub(these.len())),
    }
}

/// Describes the selected files, with statistics of the `wanted` columns (by scanned index).
pub(super) fn choose(
    files: &DataFiles,
    columns: &Columns,
    selected: &[Selected<'_>],
    only: Option<&BTreeMap<u32, FileRows>>,
    wanted: &[bool],
) -> Result<Vec<Chosen>> {
    let mut chosen = Vec::with_capacity(selected.iter().map(|s| s.files.len()).sum());
    for Selected { chunk, files: rows } in selected.iter().filter(|s| !s.files.is_empty()) {
        let constants = constants(columns, chunk, rows)?;
        let statistics = ChunkStatistics::new(columns, &chunk.rows, wanted);
        for (at, (row, ordinal)) in rows.iter().enumerate() {
            let values = constants.columns().iter().map(|c| ScalarValue::try_from_array(c, at)).collect::<Result<Vec<_>>>()?;
            let read = only.and_then(|only| only.get(ordinal)).unwrap_or(&FileRows::All);
            chosen.push(describe(files, chunk, *row, read, values, &statistics)?);
        }
    }
    Ok(chosen)
}

fn describe(
    files: &DataFiles,
    chunk: &Chunk,
    row: usize,
    read: &FileRows,
    constants: Vec<ScalarValue>,
    statistics: &ChunkStatistics,
) -> Result<Chosen> {
    let number = |name: &str| long(&chunk.rows, name, row);
    let size = number("size").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let rows = number("rows").and_then(|n| u64::try_from(n).ok());
    let vector = chunk.deletion_vector(row);
    let deleted = vector.as_ref().map_or(0, |v| u64::try_from(v.cardinality).unwrap_or(0));
    let facts = FileFacts {
        row,
        size,
        rows,
        // Rows that are not wanted are as good as deleted.
        deleted: rows.zip(left(rows, deleted, read)).map_or(deleted, |(rows, left)| rows.saturating_sub(left)),
        tight: tight(&chunk.rows, row),
        constants: &constants,
    };
    let known = statistics.file(&facts)?;
    let location = files.store.data_path(&files.snapshot, chunk.path(row)).map_err(storage)?;
    let written = number("modification_time").and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    let mut file = PartitionedFile::from(ObjectMeta { location, last_modified: written, size, e_tag: None, version: None })
        .with_partition_values(constants);
    // Not `with_statistics`: it takes a NULL partition value for a value.
    file.statistics = Some(Arc::new(known));
    Ok(Chosen { file, rows, vector, read: read.clone() })
}

/// A storage error on its way through DataFusion.
pub(super) fn storage(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn long(chunk: &RecordBatch, name: &str, row: usize) -> Option<i64> {
    let column = chunk.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
    column.is_valid(row).then(|| column.value(row))
}

/// Keeps no more files than `limit` rows need; how many were dropped.
pub(super) fn trim(chosen: &mut Vec<Chosen>, limit: usize) -> usize {
    let before = chosen.len();
    let mut rows = 0_u64;
    let enough = chosen.iter().position(|file| {
        rows += file.left().unwrap_or(0);
        rows >= limit as u64
    });
    if let Some(last) = enough {
        chosen.truncate(last + 1);
    }
    before - chosen.len()
}

/// Loads the deletion vectors and attaches the rows that are left; drops files of which none is.
pub(super) async fn without_deleted(files: &DataFiles, chosen: Vec<Chosen>) -> Result<Vec<PartitionedFile>> {
    let loads = chosen.into_iter().map(|file| attach(files, file));
    let attached: Vec<_> = stream::iter(loads).buffered(CONCURRENCY).try_collect().await.map_err(storage)?;
    Ok(attached.into_iter().flatten().collect())
}

async fn attach(files: &DataFiles, chosen: Chosen) -> Result<Option<PartitionedFile>, Error> {
    if chosen.vector.is_none() && matches!(chosen.read, FileRows::All) {
        return Ok(Some(chosen.file));
    }
    // The selection must cover the file exactly. The log counts the rows of a file with a vector; where it does not, the footer does.
    let rows = match chosen.rows {
        Some(rows) => rows,
        None => {
            let footer = files.footer(&chosen.file.object_meta, None).await?;
            u64::try_from(footer.file_metadata().num_rows()).unwrap_or(0)
        }
    };
    if let FileRows::Only(these) = &chosen.read {
        return Ok((!these.is_empty()).then(|| chosen.file.with_extension(selection::wanted(these, rows))));
    }
    let mut deleted = match &chosen.vector {
        Some(vector) => deletes::load(&files.store, &files.snapshot, vector).await?,
        None => RoaringTreemap::new(),
    };
    if let FileRows::Except(these) = &chosen.read {
        deleted |= these.as_ref();
    }
    if rows > 0 && deleted.range_cardinality(..rows) == rows {
        return Ok(None);
    }
    Ok(Some(chosen.file.with_extension(selection::left(&deleted, rows))))
}

/// Spreads files over at most `groups` groups of about as many bytes, each in the order of the index.
pub(super) fn group(files: Vec<PartitionedFile>, groups: usize, columns: &Columns) -> Result<Vec<FileGroup>> {
    let groups = groups.clamp(1, files.len().max(1));
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(files[*i].object_meta.size));
    let mut load = vec![0_u64; groups];
    let mut home = vec![0; files.len()];
    for i in order {
        let lightest = (0..groups).min_by_key(|g| load[*g]).unwrap_or(0);
        // An empty file is not free: it is opened too.
        load[lightest] += files[i].object_meta.size.max(1);
        home[i] = lightest;
    }
    let mut spread: Vec<Vec<PartitionedFile>> = vec![Vec::new(); groups];
    for (file, home) in files.into_iter().zip(home) {
        spread[home].push(file);
    }
    let with_statistics = |files: Vec<PartitionedFile>| {
        let known = merge(files.iter().filter_map(|f| f.statistics.as_deref()), columns)?;
        Ok(FileGroup::new(files).with_statistics(Arc::new(known)))
    };
    spread.into_iter().map(with_statistics).collect()
}
