//! CSV and JSON lines: rows as other programs' pipes like them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::csv;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json;
use arrow::json::writer::LineDelimited;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{Flow, ResultWriter, Shown, Sink};
use crate::failure::Failure;

/// CSV with a header. NULL is an empty field; lists, structs and maps, which CSV does not have, are their text.
pub struct CsvWriter<'a> {
    writer: csv::Writer<&'a mut Sink>,
    rows: usize,
}

impl<'a> CsvWriter<'a> {
    /// Writes the header when the first batch comes, or at the end when none does.
    pub fn new(sink: &'a mut Sink, schema: &SchemaRef) -> Result<Self, Failure> {
        let mut writer = csv::WriterBuilder::new().with_header(true).build(sink);
        if !schema.fields().is_empty() {
            writer.write(&flat(&RecordBatch::new_empty(schema.clone()))?)?;
        }
        Ok(Self { writer, rows: 0 })
    }
}

impl ResultWriter for CsvWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<Flow, Failure> {
        self.rows += batch.num_rows();
        self.writer.write(&flat(batch)?)?;
        Ok(Flow::More)
    }

    fn finish(&mut self) -> Result<Shown, Failure> {
        Ok(Shown::all(self.rows))
    }
}

/// Columns that hold other columns, as text.
fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(flat_column).collect::<Result<Vec<_>, _>>()?;
    let fields: Vec<_> = batch
        .schema()
        .fields()
        .iter()
        .zip(&columns)
        .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn flat_column(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !column.data_type().is_nested() {
        return Ok(column.clone());
    }
    let options = FormatOptions::default().with_null("null");
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let text = |row| if column.is_null(row) { Ok(None) } else { formatter.value(row).try_to_string().map(Some) };
    let texts = (0..column.len()).map(text).collect::<Result<StringArray, _>>()?;
    debug_assert_eq!(texts.data_type(), &DataType::Utf8);
    Ok(Arc::new(texts))
}

/// One JSON object on each line, NULLs written out.
pub struct JsonWriter<'a> {
    writer: json::Writer<&'a mut Sink, LineDelimited>,
    rows: usize,
}

impl<'a> JsonWriter<'a> {
    pub fn new(sink: &'a mut Sink) -> Self {
        Self { writer: json::WriterBuilder::new().with_explicit_nulls(true).build(sink), rows: 0 }
    }
}

impl ResultWriter for JsonWriter<'_> {
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
