//! Arrow and Parquet: rows as other programs like them, with their types.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::{Flow, ResultWriter, Shown, Sink};
use crate::failure::Failure;

/// An Arrow IPC stream.
pub struct ArrowStream<'a> {
    writer: StreamWriter<&'a mut Sink>,
    rows: usize,
}

impl<'a> ArrowStream<'a> {
    pub fn new(sink: &'a mut Sink, schema: &SchemaRef) -> Result<Self, Failure> {
        Ok(Self { writer: StreamWriter::try_new(sink, schema)?, rows: 0 })
    }
}

impl ResultWriter for ArrowStream<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<Flow, Failure> {
        self.rows += batch.num_rows();
        self.writer.write(batch)?;
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<Shown, Failure> {
        self.writer.finish()?;
        Ok(Shown::all(self.rows))
    }
}

/// An Arrow IPC file.
pub struct ArrowFile<'a> {
    writer: FileWriter<&'a mut Sink>,
    rows: usize,
}

impl<'a> ArrowFile<'a> {
    pub fn new(sink: &'a mut Sink, schema: &SchemaRef) -> Result<Self, Failure> {
        Ok(Self { writer: FileWriter::try_new(sink, schema)?, rows: 0 })
    }
}

impl ResultWriter for ArrowFile<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<Flow, Failure> {
        self.rows += batch.num_rows();
        self.writer.write(batch)?;
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<Shown, Failure> {
        self.writer.finish()?;
        Ok(Shown::all(self.rows))
    }
}

/// A Parquet file.
pub struct Parquet<'a> {
    /// None once it is finished.
    writer: Option<ArrowWriter<&'a mut Sink>>,
    rows: usize,
}

impl<'a> Parquet<'a> {
    pub fn new(sink: &'a mut Sink, schema: &SchemaRef) -> Result<Self, Failure> {
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        Ok(Self { writer: Some(ArrowWriter::try_new(sink, schema.clone(), Some(properties))?), rows: 0 })
    }
}

impl ResultWriter for Parquet<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<Flow, Failure> {
        self.rows += batch.num_rows();
        match &mut self.writer {
            Some(writer) => writer.write(batch)?,
            None => return Err(ParquetError::General("the file is finished".into()).into()),
        }
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<Shown, Failure> {
        if let Some(writer) = self.writer.take() {
            writer.close()?;
        }
        Ok(Shown::all(self.rows))
    }
}
