//! Scans of pinned tables (being written).

use std::sync::Arc;

use asof_storage::{FileIndex, Snapshot, TableFormat};

/// Name of the hidden column that holds a row's file ordinal (UInt32), see [`PinnedTable::with_file_ordinal`].
pub const FILE_ORDINAL: &str = "__asof_file";

/// A table at one version, as DataFusion sees it: a `TableProvider` whose files, schema and statistics come from the pinned index.
#[derive(Debug, Clone)]
pub struct PinnedTable {
    /// The table.
    pub table: Arc<dyn TableFormat>,
    /// The version.
    pub snapshot: Arc<Snapshot>,
    /// Its files.
    pub index: Arc<FileIndex>,
    only: Option<Arc<Vec<u32>>>,
    file_ordinal: bool,
}

impl PinnedTable {
    /// The table at that version.
    #[must_use]
    pub fn new(table: Arc<dyn TableFormat>, snapshot: Arc<Snapshot>, index: Arc<FileIndex>) -> Self {
        Self { table, snapshot, index, only: None, file_ordinal: false }
    }

    /// Read only these files (ordinals into `FileIndex::files()` order).
    #[must_use]
    pub fn only_files(mut self, ordinals: Vec<u32>) -> Self {
        self.only = Some(Arc::new(ordinals));
        self
    }

    /// Append the column [`FILE_ORDINAL`], constant within a file.
    #[must_use]
    pub fn with_file_ordinal(mut self) -> Self {
        self.file_ordinal = true;
        self
    }
}
