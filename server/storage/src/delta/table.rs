//! One Delta table: its log's state, its caches, and the operations of [`TableFormat`].

use std::sync::Arc;

use async_trait::async_trait;

use crate::clock::Env;
use crate::error::{Error, Result};
use crate::index::FileIndex;
use crate::object::TableStore;
use crate::snapshot::{Commit, HistoryRange, Snapshot, SnapshotSelector};
use crate::table::{Capabilities, TableFormat, TableId};
use crate::transaction::{Change, CommitOutcome};

/// A Delta table in its store.
#[derive(Debug)]
pub struct DeltaTable {
    id: TableId,
    name: String,
    store: TableStore,
    #[expect(dead_code, reason = "read by commits")]
    env: Env,
}

impl DeltaTable {
    /// A handle; no I/O happens before it is used.
    #[must_use]
    pub fn open(id: TableId, name: String, store: TableStore, env: Env) -> Self {
        Self { id, name, store, env }
    }
}

#[async_trait]
impl TableFormat for DeltaTable {
    fn id(&self) -> &TableId {
        &self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { format: "delta", refs: false, writes: true }
    }

    fn store(&self) -> &TableStore {
        &self.store
    }

    async fn resolve(&self, _selector: &SnapshotSelector) -> Result<Arc<Snapshot>> {
        Err(Error::Internal("resolve".into()))
    }

    async fn index(&self, _snapshot: &Arc<Snapshot>) -> Result<Arc<FileIndex>> {
        Err(Error::Internal("index".into()))
    }

    async fn history(&self, _range: HistoryRange) -> Result<Vec<Commit>> {
        Err(Error::Internal("history".into()))
    }

    async fn commit(&self, _base: Option<&Arc<Snapshot>>, _change: Change) -> Result<CommitOutcome> {
        Err(Error::Internal("commit".into()))
    }

    async fn restore(&self, _base: &Arc<Snapshot>, _target: &Arc<Snapshot>) -> Result<Change> {
        Err(Error::Internal("restore".into()))
    }
}
