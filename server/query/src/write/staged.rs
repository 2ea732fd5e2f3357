//! Data files that lie under the table and that no commit names yet.
//!
//! They go again when their statement fails, is cancelled or loses against another commit. Once a commit may name them they are never
//! touched: [`Staged::commit_starts`] is called before the commit, whose outcome decides.

use std::sync::Arc;

use asof_storage::object::TableStore;
use asof_storage::transaction::NewFile;
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use parking_lot::Mutex;

use crate::error::Result;

/// Paths that may have been written so far; shared by the encoders of one statement.
#[derive(Clone, Debug)]
pub struct Staging {
    store: TableStore,
    paths: Arc<Mutex<Vec<Path>>>,
}

impl Staging {
    /// Nothing yet.
    #[must_use]
    pub fn new(store: TableStore) -> Self {
        Self { store, paths: Arc::default() }
    }

    /// The path in the store of a file (relative to the table, not percent-encoded), noted before it is written.
    ///
    /// # Errors
    /// A path that no store takes.
    pub fn begin(&self, relative: &str) -> Result<Path> {
        let path = self.store.child(relative)?;
        self.paths.lock().push(path.clone());
        Ok(path)
    }

    /// Force everything to disk.
    ///
    /// # Errors
    /// The store's.
    pub async fn sync(&self) -> Result<()> {
        let paths = self.paths.lock().clone();
        Ok(self.store.sync(&paths).await?)
    }

    async fn remove(self) {
        let paths = std::mem::take(&mut *self.paths.lock());
        for path in paths {
            match self.store.objects.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => tracing::warn!(path = %path, %error, "staged file not removed; VACUUM will"),
            }
        }
    }
}

/// The data files of one statement.
#[derive(Debug)]
pub struct Staged {
    /// For the log.
    pub files: Vec<NewFile>,
    /// Files of the change data feed.
    pub changes: Vec<NewFile>,
    /// Rows in them.
    pub rows: i64,
    stagings: Vec<Staging>,
}

impl Staged {
    /// Files to come.
    #[must_use]
    pub fn begin(staging: Staging) -> Self {
        Self { files: vec![], changes: vec![], rows: 0, stagings: vec![staging] }
    }

    /// No files.
    #[must_use]
    pub fn none() -> Self {
        Self { files: vec![], changes: vec![], rows: 0, stagings: vec![] }
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.files.iter().map(|f| f.size).sum()
    }

    /// From here on a commit may name the files: they stay, unless [`Discard::now`] is called.
    pub fn commit_starts(&mut self) -> Discard {
        Discard(std::mem::take(&mut self.stagings))
    }

    /// Remove the files.
    pub async fn discard(mut self) {
        self.commit_starts().now().await;
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for staging in self.stagings.drain(..) {
            runtime.spawn(staging.remove());
        }
    }
}

/// The way back for files whose commit surely did not happen.
#[derive(Debug)]
#[must_use]
pub struct Discard(Vec<Staging>);

impl Discard {
    /// Remove the files.
    pub async fn now(self) {
        for staging in self.0 {
            staging.remove().await;
        }
    }
}
