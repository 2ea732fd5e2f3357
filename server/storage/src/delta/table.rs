//! One Delta table: its log's state, its caches, and the operations of [`TableFormat`].

use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectMeta;
use object_store::path::Path;
use tokio::task::JoinHandle;

use super::cache::Snapshots;
use super::log::Listing;
use crate::clock::{Env, Micros};
use crate::error::Result;
use crate::index::FileIndex;
use crate::object::TableStore;
use crate::snapshot::{Commit, HistoryRange, Snapshot, SnapshotSelector};
use crate::table::{Capabilities, TableFormat, TableId};
use crate::transaction::{Change, CommitOutcome};

/// A Delta table in its store. Clones share state and caches.
#[derive(Clone, Debug)]
pub struct DeltaTable {
    pub(super) inner: Arc<Inner>,
}

/// What the clones of a table share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) id: TableId,
    pub(super) name: String,
    pub(super) store: TableStore,
    pub(super) env: Env,
    /// The log as seen last.
    pub(super) log: tokio::sync::Mutex<Option<Arc<Listing>>>,
    pub(super) snapshots: parking_lot::Mutex<Snapshots>,
    /// Checkpoints that could not be read.
    pub(super) bad_checkpoints: parking_lot::Mutex<Vec<Path>>,
    /// Held while an index is built, so that it is built once.
    pub(super) building: tokio::sync::Mutex<()>,
    /// Held while a checkpoint is written.
    pub(super) checkpointing: tokio::sync::Mutex<()>,
    /// Work that goes on after an answer.
    pub(super) background: parking_lot::Mutex<Vec<JoinHandle<()>>>,
}

impl DeltaTable {
    /// A handle; no I/O happens before it is used.
    #[must_use]
    pub fn open(id: TableId, name: String, store: TableStore, env: Env) -> Self {
        let inner = Inner {
            id,
            name,
            store,
            env,
            log: tokio::sync::Mutex::default(),
            snapshots: parking_lot::Mutex::default(),
            bad_checkpoints: parking_lot::Mutex::default(),
            building: tokio::sync::Mutex::default(),
            checkpointing: tokio::sync::Mutex::default(),
            background: parking_lot::Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Waits for the work that commits left behind (checkpoints).
    pub async fn settle(&self) {
        let left = std::mem::take(&mut *self.inner.background.lock());
        futures::future::join_all(left).await;
    }
}

#[async_trait]
impl TableFormat for DeltaTable {
    fn id(&self) -> &TableId {
        &self.inner.id
    }

    fn name(&self) -> &str {
        &self.inner.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { format: "delta", refs: false, writes: true }
    }

    fn store(&self) -> &TableStore {
        &self.inner.store
    }

    async fn resolve(&self, selector: &SnapshotSelector) -> Result<Arc<Snapshot>> {
        let log = self.inner.observe().await?;
        let version = self.inner.select(&log, selector).await?;
        self.inner.snapshot(&log, version).await
    }

    async fn index(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<FileIndex>> {
        self.inner.checked_index(snapshot).await
    }

    async fn logged_index(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<FileIndex>> {
        Ok(self.inner.known_index(snapshot).await?.index)
    }

    async fn history(&self, range: HistoryRange) -> Result<Vec<Commit>> {
        self.inner.history(range).await
    }

    async fn commit(&self, base: Option<&Arc<Snapshot>>, change: Change) -> Result<CommitOutcome> {
        self.inner.commit(base, &change).await
    }

    async fn restore(&self, base: &Arc<Snapshot>, target: &Arc<Snapshot>) -> Result<Change> {
        self.inner.restore(base, target).await
    }

    async fn garbage(&self, base: &Arc<Snapshot>, horizon: Micros, in_use: &[Arc<Snapshot>]) -> Result<Vec<ObjectMeta>> {
        self.inner.garbage(base, horizon, in_use).await
    }

    async fn delete(&self, files: Vec<Path>) -> Result<usize> {
        self.inner.delete(files).await
    }
}
