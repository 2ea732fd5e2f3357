//! The log as the kernel shall see it.
//!
//! The kernel lists the log's folder by itself and takes what it finds: a torn commit after the version asked for, a
//! damaged checkpoint, a misleading `_last_checkpoint` or checksum file. It also takes a table's folder for a URL without caring for `%` in its
//! name. So it gets a store with one table at a fixed place ([`ROOT`]), whose log holds exactly the files we chose.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};

use super::log::LOG;
use crate::object::TableStore;

/// Where the kernel believes the table to be.
pub const ROOT: &str = "memory:///table/";
const FOLDER: &str = "table";

/// A store that holds one table, with a log of the given files only.
pub struct LogView {
    inner: Arc<dyn ObjectStore>,
    root: Path,
    log: Path,
    hint: Path,
    files: Vec<ObjectMeta>,
}

impl LogView {
    /// A view of `table` with the given files of its log.
    pub fn new(table: &TableStore, files: impl IntoIterator<Item = ObjectMeta>) -> Self {
        let log = Path::from(FOLDER).join(LOG);
        let seen = |mut meta: ObjectMeta| {
            meta.location = log.clone().join(meta.location.filename().unwrap_or_default());
            meta
        };
        let mut files: Vec<ObjectMeta> = files.into_iter().map(seen).collect();
        files.sort_by(|a, b| a.location.cmp(&b.location));
        let hint = log.clone().join("_last_checkpoint");
        Self { inner: Arc::clone(&table.objects), root: table.root.clone(), log, hint, files }
    }

    /// From the kernel's path to the store's.
    fn real(&self, seen: &Path) -> Result<Path> {
        let below = seen.as_ref().strip_prefix(FOLDER).and_then(|p| p.strip_prefix('/'));
        let below =
            below.ok_or_else(|| object_store::Error::NotFound { path: seen.to_string(), source: "it is outside the view".into() })?;
        let root = self.root.as_ref();
        Ok(Path::parse(if root.is_empty() { below.to_owned() } else { format!("{root}/{below}") })?)
    }
}

impl fmt::Debug for LogView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogView({} files over {:?})", self.files.len(), self.inner)
    }
}

impl fmt::Display for LogView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogView({})", self.inner)
    }
}

fn unlisted(prefix: Option<&Path>) -> object_store::Error {
    let operation = format!("listing {} in a view of a log", prefix.map_or("/", AsRef::as_ref));
    object_store::Error::NotImplemented { operation, implementer: "LogView".to_owned() }
}

#[async_trait]
impl ObjectStore for LogView {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(&self.real(location)?, payload, opts).await
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(&self.real(location)?, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if *location == self.hint {
            return Err(object_store::Error::NotFound { path: location.to_string(), source: "hidden: the listing is known".into() });
        }
        self.inner.get_opts(&self.real(location)?, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(&self.real(location)?, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let refused = |path: Result<Path>| path.and_then(|p| Err(unlisted(Some(&p))));
        locations.map(refused).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if prefix == Some(&self.log) {
            return stream::iter(self.files.clone().into_iter().map(Ok)).boxed();
        }
        stream::iter([Err(unlisted(prefix))]).boxed()
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        if prefix == Some(&self.log) {
            let after: Vec<_> = self.files.iter().filter(|f| f.location > *offset).cloned().map(Ok).collect();
            return stream::iter(after).boxed();
        }
        stream::iter([Err(unlisted(prefix))]).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        Err(unlisted(prefix))
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(&self.real(from)?, &self.real(to)?, options).await
    }
}
