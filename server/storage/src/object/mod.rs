//! The object store seam: put-if-absent, durability, lost answers.
//!
//! A table is a folder of a store. Everything that is written into it goes through here, so that two laws hold wherever the
//! folder lies: a name is taken once ([`TableStore::put_if_absent`], S2), and what was acknowledged survives a power cut (a local file
//! system forgets what was not synced; object_store's local store never syncs, so [`TableStore::sync`] does).
//! A put whose answer is lost is neither done nor undone; it is reported as [`Put::Unknown`] and settled by whoever knows what was written.

pub mod fault;
mod local;
mod path;

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Attributes, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use url::Url;

use crate::error::{Error, Result};
use crate::snapshot::Snapshot;

pub use path::Outside;

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

/// Files looked for at once.
const LOOKS: usize = 32;

/// How a put-if-absent ended.
#[must_use]
#[derive(Debug)]
pub enum Put {
    /// The object is there, and it is ours.
    Done,
    /// Somebody's object was there before.
    Taken,
    /// The answer was lost: it may or may not be there.
    Unknown(object_store::Error),
}

impl TableStore {
    /// The folder at a `file://` URL, over a local store rooted at `/`. No I/O.
    ///
    /// # Errors
    /// `Invalid` when the URL is no local folder.
    pub fn local(url: Url) -> Result<Self> {
        if url.scheme() != "file" {
            return Err(Error::Invalid(format!("{url} is not a local folder: its scheme is {}, file is needed", url.scheme())));
        }
        Self::over(Arc::new(LocalFileSystem::new()), url)
    }

    /// The folder at `url` in a given store. No I/O.
    ///
    /// # Errors
    /// `Invalid` when the URL's path cannot be a path of a store.
    pub fn over(objects: Arc<dyn ObjectStore>, mut url: Url) -> Result<Self> {
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        let root = Path::from_url_path(url.path()).map_err(|e| Error::Invalid(format!("{url} is not a folder of a store: {e}")))?;
        let durable = url.scheme() == "file";
        Ok(Self { objects, url, root, durable })
    }

    /// The path in the store of a file that the log names: percent-decoded once, relative to the table or absolute within it.
    ///
    /// # Errors
    /// `PathOutside` for whatever leaves the table: `..` (encoded or not), another folder, another scheme.
    pub fn data_path(&self, snapshot: &Snapshot, logged: &str) -> Result<Path> {
        self.inside(logged).map_err(|Outside| Error::PathOutside {
            table: snapshot.name.clone(),
            version: snapshot.version,
            path: logged.to_owned(),
        })
    }

    /// [`TableStore::data_path`] where no snapshot is at hand.
    ///
    /// # Errors
    /// `Outside` for whatever leaves the table.
    pub fn inside(&self, logged: &str) -> std::result::Result<Path, Outside> {
        path::resolve(&self.url, &self.root, logged)
    }

    /// The path in the store of `name` (segments separated by `/`, not encoded) in the table's folder.
    ///
    /// # Errors
    /// `Internal` when a segment is no legal name.
    pub fn child(&self, name: &str) -> Result<Path> {
        let raw = if self.root.as_ref().is_empty() { name.to_owned() } else { format!("{}/{name}", self.root) };
        Path::parse(&raw).map_err(|e| Error::Internal(format!("{raw} is no path of a store: {e}")))
    }

    /// `path` as shown to people: relative to the table.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        let relative = path.as_ref().strip_prefix(self.root.as_ref()).unwrap_or(path.as_ref());
        relative.trim_start_matches('/').to_owned()
    }

    /// Writes an object unless one is there (S2). On a durable local store the object and its folder are on disk when the answer is `Done`.
    ///
    /// # Errors
    /// `Store` when the store refused it for good (no permission, read-only, disk full).
    pub async fn put_if_absent(&self, path: &Path, bytes: Bytes) -> Result<Put> {
        let options = PutOptions { mode: PutMode::Create, attributes: Attributes::new(), ..PutOptions::default() };
        match self.objects.put_opts(path, bytes.into(), options).await {
            Ok(_) => {
                self.sync(std::slice::from_ref(path)).await?;
                Ok(Put::Done)
            }
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(Put::Taken),
            Err(e) if answer_lost(&e) => Ok(Put::Unknown(e)),
            Err(source) => Err(Error::Store { action: "writing", path: self.shown(path), source }),
        }
    }

    /// The whole object, `None` when it is not there.
    ///
    /// # Errors
    /// `Store`.
    pub async fn read(&self, path: &Path) -> Result<Option<Bytes>> {
        let failed = |source| Error::Store { action: "reading", path: self.shown(path), source };
        match self.objects.get(path).await {
            Ok(object) => object.bytes().await.map(Some).map_err(failed),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(failed(source)),
        }
    }

    /// Which of the files, given with the name to report, are not there.
    ///
    /// # Errors
    /// `Store` when the store cannot say.
    pub async fn missing(&self, files: Vec<(String, Path)>) -> Result<Vec<String>> {
        if self.url.scheme() == "file" {
            return local::missing(files).await;
        }
        let look = |(name, path): (String, Path)| async move {
            match self.objects.head(&path).await {
                Ok(_) => Ok(None),
                Err(object_store::Error::NotFound { .. }) => Ok(Some(name)),
                Err(source) => Err(Error::Store { action: "looking for", path: name, source }),
            }
        };
        let found: Vec<Option<String>> = stream::iter(files).map(look).buffered(LOOKS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Forces objects and the folders that lead to them from the table's root to disk. Does nothing where the store is durable by itself, or when
    /// switched off.
    ///
    /// # Errors
    /// `Store` naming the path that could not be synced.
    pub async fn sync(&self, paths: &[Path]) -> Result<()> {
        if !self.durable || self.url.scheme() != "file" || paths.is_empty() {
            return Ok(());
        }
        local::sync(&self.root, paths).await
    }
}

/// Whether after this error the object may have been written all the same. What the store surely refused is told by kind; all else counts as lost.
fn answer_lost(error: &object_store::Error) -> bool {
    use object_store::Error as E;
    match error {
        E::NotFound { .. }
        | E::InvalidPath { .. }
        | E::NotSupported { .. }
        | E::NotImplemented { .. }
        | E::PermissionDenied { .. }
        | E::Unauthenticated { .. }
        | E::UnknownConfigurationKey { .. }
        | E::NotModified { .. } => false,
        E::Generic { store, source } => *store != "LocalFileSystem" || !local::surely_refused(source.as_ref()),
        _ => true,
    }
}
