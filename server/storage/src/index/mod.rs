//! The files of a version, as Arrow columns.
//!
//! Planning must see thousands of files without parsing their statistics again for each query. So each
//! version has an immutable index: chunks of typed columns, shared between versions, with a mask of the rows that are
//! still alive in this one; a neighbouring version costs the difference (S6: built by steps equals built from scratch).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;

use crate::deletes::DeletionVector;
use crate::snapshot::Version;

/// What identifies a file of a version: its path as written in the log, and its deletion vector.
/// The same path with another deletion vector is another entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// Path as written in the log (percent-encoded, relative to the table).
    pub path: String,
    /// Unique id of the deletion vector (protocol: storageType + pathOrInlineDv [+ "@" + offset]).
    pub deletion_vector: Option<String>,
}

/// One live file of a version.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFile {
    /// Path as written in the log.
    pub path: String,
    /// Bytes.
    pub size: i64,
    /// When written, ms since the epoch, as the log says.
    pub modification_time: i64,
    /// Rows in the file, before deletion vectors; `None` where there are no statistics.
    pub rows: Option<i64>,
    /// Partition values as in the log: by physical column name, serialised as the protocol says.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Which rows are deleted.
    pub deletion_vector: Option<DeletionVector>,
}

impl DataFile {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> FileKey {
        FileKey { path: self.path.clone(), deletion_vector: self.deletion_vector.as_ref().map(DeletionVector::unique_id) }
    }
}

/// A shared run of index rows with the mask of those alive in this version (`None`: all).
///
/// Columns: `path` Utf8, `size` Int64, `modification_time` Int64 (ms), `rows` Int64?, `tight_bounds` Boolean (false: min and max
/// are bounds only), `partition` Struct (a typed field for each partition column, logical names), `min`, `max` Struct (a typed
/// field for each top-level primitive column that may have statistics, logical names; null where unknown), `null_count` Struct of
/// Int64 (same fields), `deletion_vector` Struct{storage_type Utf8, path_or_inline Utf8, offset Int32?, size_in_bytes Int32, cardinality
/// Int64}?, `partition_values` Map<Utf8, Utf8?> (raw).
///
/// Bounds hold whatever `tight_bounds` says; only where it is true may a bound be a value of the file, and never for strings (cut to a
/// prefix) and timestamps (cut to milliseconds; the largest is raised by 999 µs, so that it stays a bound).
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The columns.
    pub rows: Arc<RecordBatch>,
    /// Which rows are alive.
    pub live: Option<BooleanBuffer>,
}

/// The place of a column in a chunk.
mod column {
    pub const PATH: usize = 0;
    pub const SIZE: usize = 1;
    pub const MODIFICATION_TIME: usize = 2;
    pub const ROWS: usize = 3;
    pub const DELETION_VECTOR: usize = 9;
    pub const PARTITION_VALUES: usize = 10;
}

impl Chunk {
    /// Whether a row is alive in this version.
    #[must_use]
    pub fn is_live(&self, row: usize) -> bool {
        self.live.as_ref().is_none_or(|l| l.value(row))
    }

    /// The rows alive in this version.
    pub fn live_rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows.num_rows()).filter(|r| self.is_live(*r))
    }

    /// A file's path as written in the log.
    #[must_use]
    pub fn path(&self, row: usize) -> &str {
        self.rows.column(column::PATH).as_string::<i32>().value(row)
    }

    /// Rows in each file before deletion vectors; NULL where there are no statistics.
    #[must_use]
    pub fn rows_of_files(&self) -> &Int64Array {
        self.rows.column(column::ROWS).as_primitive::<Int64Type>()
    }

    /// Rows that deletion vectors take, NULL for files without one; `None` when no file has one.
    #[must_use]
    pub fn deleted_rows(&self) -> Option<Int64Array> {
        let vectors = self.rows.column(column::DELETION_VECTOR).as_struct();
        let counted = vectors.column(4).as_primitive::<Int64Type>();
        (vectors.null_count() < vectors.len()).then(|| Int64Array::new(counted.values().clone(), vectors.nulls().cloned()))
    }

    /// How many rows are alive.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.as_ref().map_or(self.rows.num_rows(), BooleanBuffer::count_set_bits)
    }

    /// No row is alive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the live files.
    #[must_use]
    pub fn live_bytes(&self) -> i64 {
        let sizes = self.rows.column(column::SIZE).as_primitive::<Int64Type>();
        self.live_rows().map(|row| sizes.value(row)).sum()
    }

    /// A file's deletion vector.
    #[must_use]
    pub fn deletion_vector(&self, row: usize) -> Option<DeletionVector> {
        let vectors = self.rows.column(column::DELETION_VECTOR).as_struct();
        let offset = vectors.column(2).as_primitive::<Int32Type>();
        vectors.is_valid(row).then(|| DeletionVector {
            storage_type: vectors.column(0).as_string::<i32>().value(row).chars().next().unwrap_or('?'),
            path_or_inline: vectors.column(1).as_string::<i32>().value(row).to_owned(),
            offset: offset.is_valid(row).then(|| offset.value(row)),
            size_in_bytes: vectors.column(3).as_primitive::<Int32Type>().value(row),
            cardinality: vectors.column(4).as_primitive::<Int64Type>().value(row),
        })
    }

    /// A file's key.
    #[must_use]
    pub fn key(&self, row: usize) -> FileKey {
        FileKey { path: self.path(row).to_owned(), deletion_vector: self.deletion_vector(row).map(|v| v.unique_id()) }
    }

    /// A file's entry.
    #[must_use]
    pub fn file(&self, row: usize) -> DataFile {
        let long = |i: usize| self.rows.column(i).as_primitive::<Int64Type>();
        let rows = long(column::ROWS);
        let raw = self.rows.column(column::PARTITION_VALUES).as_map().value(row);
        let (keys, values) = (raw.column(0).as_string::<i32>(), raw.column(1).as_string::<i32>());
        let pairs = keys.iter().zip(values.iter()).filter_map(|(k, v)| Some((k?.to_owned(), v.map(str::to_owned))));
        DataFile {
            path: self.path(row).to_owned(),
            size: long(column::SIZE).value(row),
            modification_time: long(column::MODIFICATION_TIME).value(row),
            rows: rows.is_valid(row).then(|| rows.value(row)),
            partition_values: pairs.collect(),
            deletion_vector: self.deletion_vector(row),
        }
    }
}

/// All live files of one version.
#[derive(Debug)]
pub struct FileIndex {
    version: Version,
    chunks: Vec<Chunk>,
}

impl FileIndex {
    /// From its chunks.
    #[must_use]
    pub fn new(version: Version, chunks: Vec<Chunk>) -> Self {
        Self { version, chunks }
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The chunks.
    #[must_use]
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// How many files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Chunk::len).sum()
    }

    /// No files at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each live file, in the index's order.
    pub fn files(&self) -> impl Iterator<Item = DataFile> + '_ {
        self.chunks.iter().flat_map(|c| c.live_rows().map(|r| c.file(r)))
    }

    /// Memory that its chunks take, in bytes; chunks shared with other versions count in each.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.chunks.iter().map(|c| c.rows.get_array_memory_size() + c.live.as_ref().map_or(0, |l| l.inner().len())).sum()
    }
}
