//! The files of a version, as Arrow columns.
//!
//! Planning must see thousands of files without parsing their statistics again for each query. So each
//! version has an immutable index: chunks of typed columns, shared between versions, with a mask of the rows that are
//! still alive in this one; a neighbouring version costs the difference (S6: built by steps equals built from scratch).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use arrow::record_batch::RecordBatch;

use crate::deletes::DeletionVector;
use crate::snapshot::Version;

/// What identifies a file of a version: its path as written in the log, and its deletion vector.
/// The same path with another deletion vector is another entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The columns.
    pub rows: Arc<RecordBatch>,
    /// Which rows are alive.
    pub live: Option<BooleanBuffer>,
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
}
