//! The object store seam: put-if-absent, durability, lost answers.

use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;

/// A table's place in its store.
#[derive(Clone, Debug)]
pub struct TableStore {
    /// The store; paths in it are absolute (a local store is rooted at `/`).
    pub objects: Arc<dyn ObjectStore>,
    /// The table's folder, ending in a slash.
    pub url: Url,
    /// The table's folder in the store.
    pub root: Path,
    /// Sync files and folders to disk before answering (local stores only; off only for benchmarks).
    pub durable: bool,
}
