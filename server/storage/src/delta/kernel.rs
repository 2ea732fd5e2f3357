//! The kernel's replay of a log: a version's protocol, metadata and live files.
//!
//! The kernel is synchronous, so all of this runs on blocking threads. Where it fails, its own words say little about which file is
//! to blame; [`diagnose`] reads the commit files once more and names it. A checkpoint that cannot be read is left out and the version
//! rebuilt from what lies before it, if that is all there.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::{Engine, KernelError, Snapshot as KernelSnapshot};
use delta_kernel_default_engine::DefaultEngineBuilder;
use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
use object_store::path::Path;

use super::actions::{Format, Metadata, Protocol};
use super::files::{ChunkBuilder, Entry};
use super::log::Listing;
use super::shape::IndexShape;
use super::view::{LogView, ROOT};
use crate::deletes::DeletionVector;
use crate::index::{Chunk, FileIndex, FileKey};
use crate::object::TableStore;
use crate::snapshot::Version;

/// Threads on which the kernel waits for the store.
static EXECUTOR: LazyLock<Result<Arc<TokioMultiThreadExecutor>, String>> =
    LazyLock::new(|| TokioMultiThreadExecutor::new_owned_runtime(Some(2), None).map(Arc::new).map_err(|e| e.to_string()));

/// Why the kernel did not answer.
#[derive(Debug)]
pub enum Failure {
    /// The log lacks what the version needs: this version's commit file.
    Missing(Version),
    /// The store failed for other reasons than a file being gone.
    Store(object_store::Error),
    /// Something in the log is not as it should be; the kernel's words.
    Damaged(String),
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::Backtraced { source, .. } => Self::from(*source),
            KernelError::ObjectStore(e) if !matches!(e, object_store::Error::NotFound { .. }) => Self::Store(e),
            other => Self::Damaged(other.to_string()),
        }
    }
}

/// A version as the kernel sees it, with the engine that reads it.
pub struct Replay {
    snapshot: Arc<KernelSnapshot>,
    engine: Box<dyn Engine>,
}

/// Loads a version from its log. Blocks.
pub fn replay(store: &TableStore, log: &Listing, version: Version, bad: &[Path]) -> Result<Replay, Failure> {
    let Some(checkpoint) = log.base(version, bad) else {
        let from = log.checkpoints.iter().rev().find(|c| c.version <= version).map_or(0, |c| c.version + 1);
        return Err(Failure::Missing(log.first_missing(from, version).unwrap_or(version)));
    };
    let first = checkpoint.map_or(0, |c| c.version + 1);
    let commits = log.range(first, version).unwrap_or_default().iter().map(|c| c.meta.clone());
    let at_checkpoint = checkpoint.and_then(|c| log.commit(c.version)).map(|c| c.meta.clone());
    let parts = checkpoint.map(|c| c.parts.clone()).unwrap_or_default();
    let view = LogView::new(store, parts.into_iter().chain(at_checkpoint).chain(commits));
    let executor = EXECUTOR.as_ref().map_err(|e| Failure::Damaged(format!("the kernel's threads did not start: {e}")))?;
    let engine = DefaultEngineBuilder::new(Arc::new(view)).with_task_executor(Arc::clone(executor)).build();
    let at = u64::try_from(version).map_err(|_| Failure::Missing(version))?;
    let snapshot = KernelSnapshot::builder_for(ROOT).at_version(at).build(&engine)?;
    Ok(Replay { snapshot, engine: Box::new(engine) })
}

impl Replay {
    /// The protocol and the metadata.
    pub fn heads(&self) -> Result<(Protocol, Metadata), Failure> {
        let table = self.snapshot.table_configuration();
        let (protocol, metadata) = (table.protocol(), table.metadata());
        let names = |features: Option<&[delta_kernel::table_features::TableFeature]>| {
            features.map(|f| f.iter().map(ToString::to_string).collect::<Vec<String>>())
        };
        let protocol = Protocol {
            min_reader_version: protocol.min_reader_version(),
            min_writer_version: protocol.min_writer_version(),
            reader_features: names(protocol.reader_features()),
            writer_features: names(protocol.writer_features()),
        };
        let metadata = Metadata {
            id: metadata.id().to_owned(),
            name: metadata.name().map(str::to_owned),
            description: metadata.description().map(str::to_owned),
            format: Format::default(),
            schema_string: metadata.schema_string().clone(),
            partition_columns: metadata.partition_columns().to_vec(),
            configuration: metadata.configuration().iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            created_time: metadata.created_time(),
        };
        Ok((protocol, metadata))
    }

    /// The live files. Blocks.
    pub fn files(&self, shape: &IndexShape) -> Result<FileIndex, Failure> {
        let version = Version::try_from(self.snapshot.version()).unwrap_or(Version::MAX);
        let mut builder = ChunkBuilder::new(shape);
        self.each_file(|entry| builder.push(entry))?;
        let rows = builder.finish().map_err(Failure::Damaged)?;
        let chunks = if rows.num_rows() == 0 { Vec::new() } else { vec![Chunk { rows: Arc::new(rows), live: None }] };
        Ok(FileIndex::new(version, chunks))
    }

    /// The statistics of some live files, as JSON text. Blocks.
    pub fn statistics(&self, wanted: &HashSet<FileKey>) -> Result<HashMap<FileKey, String>, Failure> {
        let mut found = HashMap::new();
        self.each_file(|entry| {
            let key = entry.key();
            if let Some(stats) = entry.stats.filter(|_| wanted.contains(&key)) {
                found.insert(key, stats.to_owned());
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn each_file(&self, mut take: impl FnMut(&Entry<'_>) -> Result<(), String>) -> Result<(), Failure> {
        let scan = Arc::clone(&self.snapshot).scan_builder().without_row_transforms().build()?;
        for batch in scan.scan_metadata(self.engine.as_ref())? {
            let (data, mut selected) = batch?.scan_files.into_parts();
            selected.resize(data.len(), true);
            let data = ArrowEngineData::try_from_engine_data(data)?;
            each_row(data.record_batch(), &selected, &mut take).map_err(Failure::Damaged)?;
        }
        Ok(())
    }

    /// Writes a checkpoint of the version and the hint to it. Blocks.
    pub fn checkpoint(&self) -> Result<(), Failure> {
        self.snapshot.checkpoint(self.engine.as_ref(), None)?;
        Ok(())
    }
}

/// Gives the selected rows of the kernel's scan metadata.
fn each_row(batch: &RecordBatch, selected: &[bool], take: &mut impl FnMut(&Entry<'_>) -> Result<(), String>) -> Result<(), String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("the kernel's files lack column {name}"));
    let texts = |name: &str| column(name).and_then(|c| c.as_string_opt::<i32>().ok_or_else(|| format!("column {name} is no text")));
    let (paths, stats) = (texts("path")?, texts("stats")?);
    let longs =
        |name: &str| column(name).and_then(|c| c.as_primitive_opt::<Int64Type>().ok_or_else(|| format!("column {name} is no long")));
    let (sizes, times) = (longs("size")?, longs("modificationTime")?);
    let vectors = column("deletionVector")?.as_struct_opt().ok_or("column deletionVector is no struct")?;
    let constants = column("fileConstantValues")?.as_struct_opt().ok_or("column fileConstantValues is no struct")?;
    let values = constants.column_by_name("partitionValues").and_then(|c| c.as_map_opt()).ok_or("column partitionValues is no map")?;
    let keys = values.keys().as_string_opt::<i32>().ok_or("partition columns are no text")?;
    let texts_of = values.values().as_string_opt::<i32>().ok_or("partition values are no text")?;
    for row in (0..batch.num_rows()).filter(|r| selected[*r]) {
        let span = values.value_offsets()[row] as usize..values.value_offsets()[row + 1] as usize;
        take(&Entry {
            path: paths.value(row),
            size: sizes.value(row),
            modification_time: times.value(row),
            stats: stats.is_valid(row).then(|| stats.value(row)),
            deletion_vector: vectors.is_valid(row).then(|| vector(vectors, row)).transpose()?,
            partition_values: span.map(|i| (keys.value(i), texts_of.is_valid(i).then(|| texts_of.value(i)))).collect(),
        })?;
    }
    Ok(())
}

fn vector(vectors: &arrow::array::StructArray, row: usize) -> Result<DeletionVector, String> {
    let column = |name: &str| vectors.column_by_name(name).ok_or_else(|| format!("the kernel's deletion vectors lack {name}"));
    let text = |name: &str| column(name).and_then(|c| c.as_string_opt::<i32>().ok_or_else(|| format!("{name} is no text")));
    let int = |name: &str| column(name).and_then(|c| c.as_primitive_opt::<Int32Type>().ok_or_else(|| format!("{name} is no integer")));
    let offset = int("offset")?;
    Ok(DeletionVector {
        storage_type: text("storageType")?.value(row).chars().next().unwrap_or('?'),
        path_or_inline: text("pathOrInlineDv")?.value(row).to_owned(),
        offset: offset.is_valid(row).then(|| offset.value(row)),
        size_in_bytes: int("sizeInBytes")?.value(row),
        cardinality: column("cardinality")?.as_primitive_opt::<Int64Type>().ok_or("cardinality is no long")?.value(row),
    })
}
