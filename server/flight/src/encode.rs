//! Record batches → messages of Flight.
//!
//! Q2: the schema was announced before the first row, so every batch is brought to it here, whatever the plan made of it; a batch that cannot
//! be is a bug. Messages stay under 2 MiB, because common clients refuse 4: a batch is split by the bytes its rows take, not by the buffers
//! it shares with others. The schema always goes first, even when no row follows; clients wait for it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions, StreamWriter};
use arrow_flight::{FlightData, IpcMessage, SchemaAsIpc};
use bytes::Bytes;

use crate::error::{Error, Result};

/// Bytes of a message's rows, at most (unless one row is larger).
const MESSAGE_BYTES: usize = 2 * 1024 * 1024 - 64 * 1024;

/// Encodes one stream.
pub struct Encoder {
    schema: SchemaRef,
    options: IpcWriteOptions,
    generator: IpcDataGenerator,
    dictionaries: DictionaryTracker,
    context: IpcWriteContext,
}

impl Encoder {
    /// For batches of this schema.
    #[must_use]
    pub fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            options: IpcWriteOptions::default(),
            generator: IpcDataGenerator::default(),
            dictionaries: DictionaryTracker::new(false),
            context: IpcWriteContext::default(),
        }
    }

    /// The first message.
    #[must_use]
    pub fn schema(&self) -> FlightData {
        SchemaAsIpc::new(&self.schema, &self.options).into()
    }

    /// The messages of a batch; none when it is empty.
    ///
    /// # Errors
    /// `Internal` when the batch is not of the schema.
    pub fn batch(&mut self, batch: &RecordBatch) -> Result<Vec<FlightData>> {
        let batch = conform(batch, &self.schema)?;
        let mut messages = Vec::new();
        for piece in split(&batch, MESSAGE_BYTES) {
            let (dictionaries, rows) = self.generator.encode(&piece, &mut self.dictionaries, &self.options, &mut self.context)?;
            messages.extend(dictionaries.into_iter().map(FlightData::from));
            messages.push(rows.into());
        }
        Ok(messages)
    }
}

/// The batch with exactly this schema: columns cast by position, names and nullability as announced.
fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    if batch.num_columns() != schema.fields().len() {
        let (has, announced) = (batch.num_columns(), schema.fields().len());
        return Err(Error::Internal(format!("a batch has {has} columns where {announced} were announced")));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            Ok(Arc::clone(column))
        } else {
            cast_with_options(column, field.data_type(), &options)
        }
    });
    let columns = columns.collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)?)
}

/// Slices of about `most` bytes; whole when small; none when empty.
fn split(batch: &RecordBatch, most: usize) -> Vec<RecordBatch> {
    let rows = batch.num_rows();
    if rows == 0 {
        return Vec::new();
    }
    let bytes: usize = batch.columns().iter().map(sliced_bytes).sum();
    if bytes <= most || rows == 1 {
        return vec![batch.clone()];
    }
    let pieces = bytes.div_ceil(most).clamp(2, rows);
    let per_piece = rows.div_ceil(pieces);
    // Rows differ in size: a piece may still be too large, and is split again.
    let starts = (0..rows).step_by(per_piece);
    starts.flat_map(|start| split(&batch.slice(start, per_piece.min(rows - start)), most)).collect()
}

/// Bytes of the rows an array shows, not of the buffers it keeps alive.
fn sliced_bytes(array: &ArrayRef) -> usize {
    let nulls = if array.nulls().is_some() { array.len() / 8 + 1 } else { 0 };
    let list = |values: &ArrayRef, start: usize, end: usize| nulls + 8 * array.len() + sliced_bytes(&values.slice(start, end - start));
    match array.data_type() {
        DataType::Struct(_) => nulls + array.as_struct().columns().iter().map(sliced_bytes).sum::<usize>(),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let (start, end) = ends(lists.value_offsets());
            list(lists.values(), start, end)
        }
        DataType::LargeList(_) => {
            let lists = array.as_list::<i64>();
            let (start, end) = ends(lists.value_offsets());
            list(lists.values(), start, end)
        }
        DataType::Map(..) => {
            let maps = array.as_map();
            let (start, end) = ends(maps.value_offsets());
            let entries: ArrayRef = Arc::new(maps.entries().clone());
            list(&entries, start, end)
        }
        DataType::FixedSizeList(..) => nulls + sliced_bytes(array.as_fixed_size_list().values()),
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_buffer_memory_size()),
    }
}

fn ends<O: arrow::array::OffsetSizeTrait>(offsets: &[O]) -> (usize, usize) {
    (offsets.first().map_or(0, |o| o.as_usize()), offsets.last().map_or(0, |o| o.as_usize()))
}

/// A schema as an encapsulated IPC message, as FlightInfo, SchemaResult and prepared statements carry it.
///
/// # Errors
/// When Arrow cannot encode it.
pub fn schema_message(schema: &Schema) -> Result<Bytes> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) = SchemaAsIpc::new(schema, &options).try_into()?;
    Ok(bytes)
}

/// Batches as one IPC stream.
///
/// # Errors
/// When Arrow cannot encode them.
pub fn ipc_stream<'a>(schema: &Schema, batches: impl IntoIterator<Item = &'a RecordBatch>) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?)
}

/// An IPC stream's batches. Only for bytes that this server (or another of the warehouse) encoded.
///
/// # Errors
/// When Arrow cannot decode it.
pub fn read_ipc_stream(bytes: &[u8]) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let reader = StreamReader::try_new(bytes, None)?;
    let schema = reader.schema();
    Ok((schema, reader.collect::<std::result::Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, Int64Array, ListBuilder, StringArray, StringBuilder, StringViewArray};
    use arrow::datatypes::Field;
    use arrow_flight::utils::flight_data_to_batches;

    use super::*;

    fn decoded(encoder: &mut Encoder, batch: &RecordBatch) -> Vec<RecordBatch> {
        let mut messages = vec![encoder.schema()];
        messages.extend(encoder.batch(batch).unwrap());
        for message in &messages {
            assert!(message.data_body.len() <= 2 * 1024 * 1024, "{} bytes", message.data_body.len());
        }
        flight_data_to_batches(&messages).unwrap()
    }

    #[test]
    fn batches_are_brought_to_the_announced_schema() {
        let announced = Arc::new(Schema::new(vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Int64, true)]));
        let made = RecordBatch::try_from_iter([
            ("x", Arc::new(StringViewArray::from(vec!["p", "q"])) as ArrayRef),
            ("y", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
        ])
        .unwrap();
        let got = decoded(&mut Encoder::new(Arc::clone(&announced)), &made);
        let expect: Vec<ArrayRef> = vec![Arc::new(StringArray::from(vec!["p", "q"])), Arc::new(Int64Array::from(vec![1, 2]))];
        assert_eq!(got, [RecordBatch::try_new(announced, expect).unwrap()]);
    }

    #[test]
    fn what_was_not_announced_is_a_bug() {
        let announced = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, false)]));
        let null = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![None])) as ArrayRef)]).unwrap();
        let mut encoder = Encoder::new(announced);
        assert!(encoder.batch(&null).is_err(), "NULL in a column that has none");
        assert!(encoder.batch(&RecordBatch::new_empty(Arc::new(Schema::empty()))).is_err());
    }

    #[test]
    fn messages_stay_small_and_lose_no_row() {
        let words: StringArray = (0..200_000).map(|i| Some(format!("row {i} {}", "x".repeat(i % 97)))).collect();
        let mut lists = ListBuilder::new(StringBuilder::new());
        for i in 0..200_000 {
            for j in 0..i % 3 {
                lists.values().append_value(format!("{i}.{j}"));
            }
            lists.append(true);
        }
        let batch = RecordBatch::try_from_iter([("w", Arc::new(words) as ArrayRef), ("l", Arc::new(lists.finish()) as ArrayRef)]).unwrap();
        let schema =
            Arc::new(Schema::new(batch.schema().fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect::<Vec<_>>()));
        let got = decoded(&mut Encoder::new(Arc::clone(&schema)), &batch);
        assert!(got.len() > 5);
        let whole = arrow::compute::concat_batches(&schema, &got).unwrap();
        assert_eq!(whole.columns(), batch.columns());
    }

    #[test]
    fn a_small_slice_of_a_large_batch_is_one_message() {
        let words: StringArray = (0..100_000).map(|i| Some(format!("{i} {}", "x".repeat(100)))).collect();
        let batch = RecordBatch::try_from_iter([("w", Arc::new(words) as ArrayRef)]).unwrap();
        assert_eq!(split(&batch.slice(500, 10), MESSAGE_BYTES).len(), 1);
        assert_eq!(split(&batch.slice(0, 0), MESSAGE_BYTES).len(), 0);
        let huge = RecordBatch::try_from_iter([("w", Arc::new(StringArray::from(vec!["x".repeat(5 << 20)])) as ArrayRef)]).unwrap();
        assert_eq!(split(&huge, MESSAGE_BYTES).len(), 1, "one row cannot be split");
    }

    #[test]
    fn streams_of_ipc_go_round() {
        let batch = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef)]).unwrap();
        let bytes = ipc_stream(batch.schema_ref(), [&batch]).unwrap();
        let (schema, batches) = read_ipc_stream(&bytes).unwrap();
        assert_eq!((schema, batches), (batch.schema(), vec![batch]));
        assert!(read_ipc_stream(b"nonsense").is_err());
    }
}
