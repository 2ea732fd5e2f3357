//! Which version a selector names, and what a version is.
//!
//! **Timestamp rule:** the newest version committed at or before the moment; before the earliest reachable
//! version an error that names it; later than the later of now and the latest commit an error. Commit times grow: a
//! commit not later than its predecessor counts as that one + 1 ms.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::clock::Micros;
use crate::table::TableId;

/// A table's version: 0, 1, 2 …
pub type Version = i64;

/// Which moment of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotSelector {
    /// The newest version.
    Latest,
    /// That version.
    Version(i64),
    /// The newest version committed at or before that moment.
    Timestamp(Micros),
    /// A tag, branch or named snapshot.
    Ref(String),
}

/// How a table's columns are found in its data files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ColumnMapping {
    /// By the column's own name.
    #[default]
    None,
    /// By the physical name in the field's metadata (`delta.columnMapping.physicalName`).
    Name,
    /// By the Parquet field id in the field's metadata (`delta.columnMapping.id`).
    Id,
}

/// An immutable version of a table (S1).
#[derive(Debug)]
pub struct Snapshot {
    /// The table.
    pub table: TableId,
    /// The table's name for messages.
    pub name: String,
    /// The version.
    pub version: Version,
    /// When it was committed, adjusted.
    pub committed_at: Micros,
    /// The columns with this version's own names and types. Field metadata holds what the format keeps there (column mapping's id and
    /// physical name, defaults, generation expressions, comments), with the format's own keys, at every nesting level. No view or
    /// dictionary types: strings are `Utf8`, binary `Binary`, timestamps `Timestamp(µs, UTC)` or `Timestamp(µs, None)`. A variant
    /// is `Struct{metadata: Binary, value: Binary}` with the field metadata `asof.type` = `variant`; a CHAR(n)/VARCHAR(n)
    /// column keeps Spark's `__CHAR_VARCHAR_TYPE_STRING`.
    pub schema: SchemaRef,
    /// Names (logical) of the partition columns, in order.
    pub partition_columns: Vec<String>,
    /// Table properties.
    pub properties: BTreeMap<String, String>,
    /// How columns are found in files.
    pub column_mapping: ColumnMapping,
    /// The format's own view of the version.
    pub format: FormatSnapshot,
}

impl Snapshot {
    /// The columns that its index's chunks have.
    #[must_use]
    pub fn index_schema(&self) -> SchemaRef {
        match &self.format {
            FormatSnapshot::Delta(delta) => delta.index_schema(),
        }
    }
}

/// What a format keeps of a version beside the common part.
#[derive(Debug, Clone)]
pub enum FormatSnapshot {
    /// Delta Lake.
    Delta(Arc<crate::delta::DeltaSnapshot>),
}

/// Which commits of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryRange {
    /// At most so many, newest first; all when `None`.
    pub limit: Option<usize>,
}

/// One commit of a history: the columns of Delta's DESCRIBE HISTORY, and whether it can still be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    /// The version.
    pub version: Version,
    /// When, adjusted.
    pub timestamp: Micros,
    /// Who, by id.
    pub user_id: Option<String>,
    /// Who, by name.
    pub user_name: Option<String>,
    /// What: `WRITE`, `UPDATE`, `RESTORE` …
    pub operation: Option<String>,
    /// With which parameters; each value as text as in the log.
    pub operation_parameters: Option<BTreeMap<String, Option<String>>>,
    /// Databricks' job, as JSON-ish fields (`jobId`, `jobName`, `jobRunId`, `runId`, `jobOwnerId`, `triggerType`).
    pub job: Option<BTreeMap<String, Option<String>>>,
    /// Databricks' notebook (`notebookId`).
    pub notebook: Option<BTreeMap<String, Option<String>>>,
    /// Databricks' cluster.
    pub cluster_id: Option<String>,
    /// The version the writer read.
    pub read_version: Option<Version>,
    /// `Serializable`, `WriteSerializable`, `SnapshotIsolation`.
    pub isolation_level: Option<String>,
    /// Appended without reading.
    pub is_blind_append: Option<bool>,
    /// Metrics, each value as text as in the log.
    pub operation_metrics: Option<BTreeMap<String, Option<String>>>,
    /// The user's own words.
    pub user_metadata: Option<String>,
    /// Which engine wrote it.
    pub engine_info: Option<String>,
    /// Are that version's files all still there, and can its log be read.
    pub readable: bool,
}
