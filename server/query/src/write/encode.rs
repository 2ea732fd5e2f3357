//! One stream of table rows into Parquet files.
//!
//! Each partition of the table has its own open file; a file that has reached the target size is closed, and so is the one written to
//! least recently when too many are open (the memory of open row groups is bounded, at the price of more files).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, SchemaRef};
use asof_storage::transaction::NewFile;
use object_store::buffered::BufWriter;
use parquet::arrow::AsyncArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::properties::WriterProperties;

use super::Target;
use super::partition::{Part, Splitter, log_path};
use super::staged::Staging;
use super::statistics::Statistics;
use crate::error::{Error, Result};

/// Files open at once in one stream.
const OPEN_FILES: usize = 64;
/// Bytes of a row group: it is held in memory until it is complete.
const ROW_GROUP_BYTES: usize = 64 << 20;
/// Bytes gathered for one part of an upload.
const UPLOAD_PART: usize = 8 << 20;

/// What all encoders of a statement share.
#[derive(Debug)]
pub struct Layout {
    /// Where to, and how.
    pub target: Target,
    /// Schema of the files.
    pub file_schema: SchemaRef,
    /// Files of this statement.
    pub staging: Staging,
    properties: WriterProperties,
    statistics: Statistics,
    partition: Vec<(usize, String)>,
}

impl Layout {
    /// For a target.
    ///
    /// # Errors
    /// Types or settings that cannot be written.
    pub fn new(target: Target, staging: Staging) -> Result<Self> {
        let file_schema = super::layout::file_schema(&target.schema, &target.partition_columns, target.mapping)?;
        let data: Vec<&Field> =
            target.schema.fields().iter().map(AsRef::as_ref).filter(|f: &&Field| !target.partition_columns.contains(f.name())).collect();
        let statistics = Statistics::new(&data, target.mapping, &target.indexed());
        let mut partition = Vec::with_capacity(target.partition_columns.len());
        for column in &target.partition_columns {
            let position = target
                .schema
                .index_of(column)
                .map_err(|_| Error::Internal(format!("partition column {column} is not in the schema of {}", target.name)))?;
            partition.push((position, super::layout::physical_name(target.schema.field(position), target.mapping).to_owned()));
        }
        let properties = WriterProperties::builder()
            .set_created_by(concat!("asof version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(target.compression()?.0)
            .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
            .build();
        Ok(Self { target, file_schema, staging, properties, statistics, partition })
    }
}

struct OpenFile {
    relative: String,
    values: BTreeMap<String, Option<String>>,
    writer: AsyncArrowWriter<BufWriter>,
    statistics: Statistics,
    last_written: u64,
}

/// Encodes one stream of the plan.
pub struct Encoder {
    layout: Arc<Layout>,
    splitter: Splitter,
    /// Number of the stream, for names.
    stream: usize,
    files: usize,
    writes: u64,
    target_size: usize,
    open: BTreeMap<BTreeMap<String, Option<String>>, OpenFile>,
    done: Vec<NewFile>,
}

impl Encoder {
    /// For stream number `stream`; batches have the table's columns in its order.
    ///
    /// # Errors
    /// Partition columns of a type that cannot be one.
    pub fn new(layout: Arc<Layout>, stream: usize) -> Result<Self> {
        let folders = layout.target.mapping == asof_storage::snapshot::ColumnMapping::None;
        let splitter = Splitter::new(&layout.target.schema, layout.partition.clone(), folders)?;
        let target_size = layout.target.file_size();
        Ok(Self { layout, splitter, stream, files: 0, writes: 0, target_size, open: BTreeMap::new(), done: vec![] })
    }

    /// Encode a batch of table rows.
    ///
    /// # Errors
    /// The store's, and values that cannot be partition values.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        for part in self.splitter.split(batch)? {
            self.write_part(part).await?;
        }
        Ok(())
    }

    async fn write_part(&mut self, part: Part) -> Result<()> {
        let rows = super::assign::reshape_batch(&part.rows, &self.layout.file_schema)?;
        if !self.open.contains_key(&part.values) {
            self.make_room().await?;
            let file = self.create(&part)?;
            self.open.insert(part.values.clone(), file);
        }
        self.writes += 1;
        let Some(file) = self.open.get_mut(&part.values) else { return Ok(()) };
        file.last_written = self.writes;
        file.statistics.update(&rows);
        file.writer.write(&rows).await.map_err(|e| failed(&file.relative, &e))?;
        if file.writer.bytes_written() + file.writer.in_progress_size() >= self.target_size
            && let Some(file) = self.open.remove(&part.values)
        {
            self.close(file).await?;
        }
        Ok(())
    }

    fn create(&mut self, part: &Part) -> Result<OpenFile> {
        let id = self.layout.target.env.entropy.uuid();
        let suffix = self.layout.target.compression()?.1;
        let name = format!("part-{:05}-{id}.c{:03}{suffix}.parquet", self.stream, self.files);
        self.files += 1;
        let relative = format!("{}{}{name}", self.layout.target.folder, part.folder);
        let path = self.layout.staging.begin(&relative)?;
        let upload = BufWriter::with_capacity(Arc::clone(&self.layout.target.store.objects), path, UPLOAD_PART);
        let options = ArrowWriterOptions::new().with_properties(self.layout.properties.clone()).with_skip_arrow_metadata(true);
        let writer = AsyncArrowWriter::try_new_with_options(upload, Arc::clone(&self.layout.file_schema), options)
            .map_err(|e| failed(&relative, &e))?;
        let statistics = self.layout.statistics.clone();
        Ok(OpenFile { relative, values: part.values.clone(), writer, statistics, last_written: self.writes })
    }

    async fn make_room(&mut self) -> Result<()> {
        while self.open.len() >= OPEN_FILES {
            let oldest = self.open.iter().min_by_key(|(_, file)| file.last_written).map(|(values, _)| values.clone());
            let Some(file) = oldest.and_then(|values| self.open.remove(&values)) else { break };
            self.close(file).await?;
        }
        Ok(())
    }

    async fn close(&mut self, mut file: OpenFile) -> Result<()> {
        file.writer.finish().await.map_err(|e| failed(&file.relative, &e))?;
        let size = i64::try_from(file.writer.bytes_written()).unwrap_or(i64::MAX);
        self.done.push(NewFile {
            path: log_path(&file.relative),
            size,
            modification_time: self.layout.target.env.clock.now().millis(),
            partition_values: file.values,
            stats: Some(file.statistics.to_json()),
        });
        Ok(())
    }

    /// Close what is open.
    ///
    /// # Errors
    /// The store's.
    pub async fn finish(mut self) -> Result<Vec<NewFile>> {
        while let Some((_, file)) = self.open.pop_first() {
            self.close(file).await?;
        }
        Ok(self.done)
    }
}

fn failed(file: &str, error: &parquet::errors::ParquetError) -> Error {
    Error::Execution(format!("writing data file {file}: {error}"))
}
