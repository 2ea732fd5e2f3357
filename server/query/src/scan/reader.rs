//! Reading a table's data files, with errors that name file and version.
//!
//! Data files never change, so footers are cached for as long as DataFusion's cache has room. A file that is gone was vacuumed, most
//! likely; one shorter than the log says was cut: both are told as storage's own errors, which pass through Parquet's and
//! DataFusion's untouched (`crate::error` finds them again).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use asof_storage::object::TableStore;
use asof_storage::{Error, Snapshot};
use bytes::Bytes;
use datafusion::common::DataFusionError;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::{ParquetFileMetrics, ParquetFileReaderFactory};
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

/// Bytes from a file's end that are fetched first: the footer of most files fits.
const FOOTER_GUESS: usize = 64 * 1024;

/// A version's files and where they lie.
#[derive(Clone)]
pub(super) struct DataFiles {
    pub store: TableStore,
    pub snapshot: Arc<Snapshot>,
    pub footers: Arc<FileMetadataCache>,
}

impl fmt::Debug for DataFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataFiles({}@v{})", self.snapshot.name, self.snapshot.version)
    }
}

impl DataFiles {
    /// The file's footer.
    pub(super) async fn footer(&self, file: &ObjectMeta, options: Option<&ArrowReaderOptions>) -> Result<Arc<ParquetMetaData>, Error> {
        let fetched = DFParquetMetadata::new(&self.store.objects, file)
            .with_file_metadata_cache(Some(Arc::clone(&self.footers)))
            .with_metadata_size_hint(Some(FOOTER_GUESS))
            .with_page_index_policy(options.map(ArrowReaderOptions::column_index_policy))
            .fetch_metadata()
            .await;
        match fetched {
            Ok(footer) => Ok(footer),
            Err(DataFusionError::ObjectStore(e)) => Err(self.failed(file, *e).await),
            Err(DataFusionError::ParquetError(e)) => Err(self.cut(file).await.unwrap_or_else(|| self.corrupt(file, e.to_string()))),
            Err(e) => Err(self.corrupt(file, e.to_string())),
        }
    }

    fn gone(&self, path: &Path) -> Error {
        Error::FileGone { table: self.snapshot.name.clone(), version: self.snapshot.version, path: self.store.shown(path) }
    }

    fn corrupt(&self, file: &ObjectMeta, detail: String) -> Error {
        Error::Corrupt {
            table: self.snapshot.name.clone(),
            version: Some(self.snapshot.version),
            file: self.store.shown(&file.location),
            detail,
        }
    }

    /// What the store's error means for this file.
    async fn failed(&self, file: &ObjectMeta, source: object_store::Error) -> Error {
        if let object_store::Error::NotFound { .. } = source {
            return self.gone(&file.location);
        }
        match self.cut(file).await {
            Some(cut) => cut,
            None => Error::Store { action: "reading", path: self.store.shown(&file.location), source },
        }
    }

    /// `Corrupt` if the file has another length than the log says.
    async fn cut(&self, file: &ObjectMeta) -> Option<Error> {
        let there = self.store.objects.head(&file.location).await.ok()?.size;
        (there != file.size).then(|| self.corrupt(file, format!("it has {there} bytes, the log says {}", file.size)))
    }
}

impl ParquetFileReaderFactory for DataFiles {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        _metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>, DataFusionError> {
        let metrics = ParquetFileMetrics::new(partition_index, file.object_meta.location.as_ref(), metrics);
        Ok(Box::new(DataFileReader { files: self.clone(), file: file.object_meta, metrics }))
    }
}

/// Reads one file.
struct DataFileReader {
    files: DataFiles,
    file: ObjectMeta,
    metrics: ParquetFileMetrics,
}

fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl DataFileReader {
    fn count(&self, ranges: &[Range<u64>]) {
        let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
        self.metrics.bytes_scanned.add(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

impl AsyncFileReader for DataFileReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        self.count(std::slice::from_ref(&range));
        async move {
            match self.files.store.objects.get_range(&self.file.location, range).await {
                Ok(bytes) => Ok(bytes),
                Err(e) => Err(external(self.files.failed(&self.file, e).await)),
            }
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        self.count(&ranges);
        async move {
            match self.files.store.objects.get_ranges(&self.file.location, &ranges).await {
                Ok(bytes) => Ok(bytes),
                Err(e) => Err(external(self.files.failed(&self.file, e).await)),
            }
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move { self.files.footer(&self.file, options).await.map_err(external) }.boxed()
    }
}

impl Drop for DataFileReader {
    fn drop(&mut self) {
        self.metrics.scan_efficiency_ratio.add_part(self.metrics.bytes_scanned.value());
        self.metrics.scan_efficiency_ratio.set_total(usize::try_from(self.file.size).unwrap_or(usize::MAX));
    }
}
