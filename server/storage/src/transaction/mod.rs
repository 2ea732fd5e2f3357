//! From what a statement wants to a committed version.
//!
//! A statement plans on a pinned base and stages data files; a [`Change`] says what it wants of the log. The commit loop
//! tries base + 1 by put-if-absent; when someone was faster, every commit in between is checked (S4, [`conflict::check`]: a pure
//! function over read set and winners) and the change is rebased or refused. A conflict is a value, not an error.

pub mod conflict;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use roaring::RoaringTreemap;

use crate::index::{DataFile, FileKey};
use crate::snapshot::Version;

/// What the history says of a commit: Spark's operation name, parameters and metric names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// `WRITE`, `DELETE`, `UPDATE`, `CREATE TABLE`, `CREATE TABLE AS SELECT`, `RESTORE` …
    pub name: String,
    /// Parameters, values as text (JSON text where Spark writes JSON, e.g. `"[\"(a > 1)\"]"`), `None` where Spark writes null.
    pub parameters: BTreeMap<String, Option<String>>,
    /// Metrics, values as text.
    pub metrics: BTreeMap<String, String>,
    /// The user's own words for the history.
    pub user_metadata: Option<String>,
    /// Who.
    pub user_name: Option<String>,
}

/// A staged data file that the commit adds. It lies under the table already; the commit forces it to disk.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFile {
    /// Path relative to the table, percent-encoded as the log wants it.
    pub path: String,
    /// Bytes.
    pub size: i64,
    /// When written, ms since the epoch.
    pub modification_time: i64,
    /// By physical column name, serialised as the protocol says.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Statistics as the log's JSON text (physical names).
    pub stats: Option<String>,
}

/// New metadata of a table: its creation, replacement or change.
#[derive(Clone, Debug)]
pub struct NewMetadata {
    /// Columns, with the format's metadata in the fields (as in `Snapshot::schema`).
    pub schema: SchemaRef,
    /// Partition columns, logical names.
    pub partition_columns: Vec<String>,
    /// Properties.
    pub properties: BTreeMap<String, String>,
    /// The table's comment.
    pub description: Option<String>,
}

/// Rows of one live file that the commit deletes, in addition to those deleted already.
#[derive(Clone, Debug)]
pub struct RowDeletes {
    /// The file.
    pub file: DataFile,
    /// Row numbers within the file, all of them: old deletes and new ones.
    pub rows: RoaringTreemap,
}

/// Tells whether a file could hold rows that a statement's predicate reads.
pub trait ReadPredicate: std::fmt::Debug + Send + Sync {
    /// False only if no row of the file can match. Judged by partition values and statistics (the log's JSON).
    fn may_match(&self, partition_values: &BTreeMap<String, Option<String>>, stats: Option<&str>) -> bool;
}

/// What the statement read of its own target.
#[derive(Clone, Debug, Default)]
pub enum ReadSet {
    /// Nothing: a blind append.
    #[default]
    Nothing,
    /// Rows that match a predicate, in these files.
    Matching {
        /// The files read.
        files: Vec<FileKey>,
        /// The predicate.
        predicate: Arc<dyn ReadPredicate>,
    },
    /// The whole table.
    Table,
}

/// What a statement wants to change, in terms of files.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// What the history will say.
    pub operation: Operation,
    /// New metadata, if it changes.
    pub metadata: Option<NewMetadata>,
    /// Live files that go.
    pub removed: Vec<DataFile>,
    /// New files that come.
    pub added: Vec<NewFile>,
    /// Rows that go by deletion vector.
    pub deletes: Vec<RowDeletes>,
    /// What was read.
    pub reads: ReadSet,
    /// Ready-made actions of the format beside the above (RESTORE's re-added files, protocol), one JSON object each.
    pub raw: Vec<serde_json::Value>,
    /// Rows change (false for a mere rearrangement).
    pub data_change: bool,
}

/// Why a change lost against another commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The commit it lost against.
    pub with: Version,
    /// That commit's operation.
    pub operation: String,
    /// What collides, in words: which file, or metadata, or protocol.
    pub detail: String,
}

/// How a commit ended. A conflict is a value.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// It is the table's version now.
    Committed {
        /// Which.
        version: Version,
    },
    /// It was not committed, and may be run again from the new head.
    Conflict(Conflict),
}
