//! A table of any format, as the layers above see it.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use object_store::ObjectMeta;
use object_store::path::Path;
use url::Url;

use crate::clock::Micros;
use crate::error::Result;
use crate::index::FileIndex;
use crate::object::TableStore;
use crate::snapshot::{Commit, HistoryRange, Snapshot, SnapshotSelector};
use crate::transaction::{Change, CommitOutcome};

/// Identity of a table: where it lies. Two names of one folder are one table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(Url);

impl TableId {
    /// From the table's folder; a trailing slash is added where it lacks.
    #[must_use]
    pub fn new(mut location: Url) -> Self {
        if !location.path().ends_with('/') {
            let path = format!("{}/", location.path());
            location.set_path(&path);
        }
        Self(location)
    }

    /// The table's folder, ending in a slash.
    #[must_use]
    pub fn location(&self) -> &Url {
        &self.0
    }
}

/// What a table's format can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The format's name as in `USING`: `delta`, `iceberg`.
    pub format: &'static str,
    /// Tags and branches.
    pub refs: bool,
    /// asof can commit to it.
    pub writes: bool,
}

/// A table of one format. Handles are cheap to clone behind `Arc` and share their caches.
#[async_trait]
pub trait TableFormat: Debug + Send + Sync {
    /// Where it lies.
    fn id(&self) -> &TableId;
    /// Name for messages, such as `lake.main.orders`.
    fn name(&self) -> &str;
    /// What its format can do.
    fn capabilities(&self) -> Capabilities;
    /// Its store.
    fn store(&self) -> &TableStore;
    /// The snapshot a selector names. `Latest` sees foreign commits at once.
    async fn resolve(&self, selector: &SnapshotSelector) -> Result<Arc<Snapshot>>;
    /// The files of a snapshot. Errors when a path leaves the table.
    async fn index(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<FileIndex>>;
    /// The files of a snapshot as the log says, whether they are there or not: for changes that may only take them away.
    async fn logged_index(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<FileIndex>>;
    /// Commits, newest first.
    async fn history(&self, range: HistoryRange) -> Result<Vec<Commit>>;
    /// Add one version on top of `base` (`None`: the table is created by this commit). After lost races the change
    /// is rebased as long as the commits in between do not conflict with it.
    async fn commit(&self, base: Option<&Arc<Snapshot>>, change: Change) -> Result<CommitOutcome>;
    /// The change that brings the table from `base` back to what `target` held: files, deletion vectors, schema,
    /// properties, constraints. Refused with `Error::FileGone` when a needed file is gone.
    async fn restore(&self, base: &Arc<Snapshot>, target: &Arc<Snapshot>) -> Result<Change>;
    /// The files under the table's folder that no version needs which was the latest after `horizon`: neither `base`, the latest, nor
    /// those in use, nor any that a file left after `horizon`.
    async fn garbage(&self, base: &Arc<Snapshot>, horizon: Micros, in_use: &[Arc<Snapshot>]) -> Result<Vec<ObjectMeta>>;
    /// Deletes files for good; how many were still there.
    async fn delete(&self, files: Vec<Path>) -> Result<usize>;
}
