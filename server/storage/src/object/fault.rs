//! A store that fails as real ones do, for tests: refused and lost answers, and crashes at a named step.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};
use parking_lot::Mutex;

/// What happens to one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it goes through.
    None,
    /// It fails before anything happened, and the caller cannot tell.
    Refused,
    /// It happens, and its answer is lost.
    AnswerLost,
}

/// Which operation a [`Plan`] is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writing an object.
    Put,
    /// Reading an object or its metadata.
    Get,
    /// Listing a folder.
    List,
}

/// Decides the fate of each operation, in order.
pub type Plan = Box<dyn FnMut(Operation, &Path) -> Fault + Send>;

/// A store with faults.
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    plan: Mutex<Plan>,
}

impl FaultyStore {
    /// Over another store.
    #[must_use]
    pub fn new(inner: Arc<dyn ObjectStore>, plan: Plan) -> Self {
        Self { inner, plan: Mutex::new(plan) }
    }

    fn fate(&self, operation: Operation, path: &Path) -> Fault {
        (self.plan.lock())(operation, path)
    }
}

fn broken(path: &Path) -> object_store::Error {
    object_store::Error::Generic { store: "faulty", source: format!("injected fault at {path}").into() }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({:?})", self.inner)
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        match self.fate(Operation::Put, location) {
            Fault::None => self.inner.put_opts(location, payload, opts).await,
            Fault::Refused => Err(broken(location)),
            Fault::AnswerLost => {
                let _ = self.inner.put_opts(location, payload, opts).await;
                Err(broken(location))
            }
        }
    }

    async fn put_multipart_opts(&self, location: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        match self.fate(Operation::Put, location) {
            Fault::None => self.inner.put_multipart_opts(location, opts).await,
            Fault::Refused | Fault::AnswerLost => Err(broken(location)),
        }
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self.fate(Operation::Get, location) {
            Fault::None => self.inner.get_opts(location, options).await,
            Fault::Refused | Fault::AnswerLost => Err(broken(location)),
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        match prefix.map_or(Fault::None, |p| self.fate(Operation::List, p)) {
            Fault::None => self.inner.list_with_delimiter(prefix).await,
            Fault::Refused | Fault::AnswerLost => Err(broken(prefix.unwrap_or(&Path::ROOT))),
        }
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
