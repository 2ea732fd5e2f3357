//! Parameters as they arrive: Arrow batches of any number of rows, uploaded by DoPut.
//!
//! They are matched to a statement's parameters by position; the engine casts them. A schema without columns is what Java and Go send when a
//! statement has no parameters.

use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use futures::{Stream, StreamExt, TryStreamExt};
use tonic::Status;

use crate::encode;
use crate::error::{Error, Result};

/// Bytes of one upload of parameters.
const MOST_BYTES: usize = 256 << 20;

/// Reads an upload to its end: all rows as one batch; `None` when it has no columns.
///
/// # Errors
/// `Request` when it is no Arrow stream; `TooLarge`.
pub async fn received(
    first: FlightData,
    rest: impl Stream<Item = Result<FlightData, Status>> + Send + 'static,
) -> Result<Option<RecordBatch>> {
    if first.data_header.is_empty() {
        return Ok(None);
    }
    let messages = futures::stream::once(async { Ok(first) }).chain(rest.map_err(FlightError::from));
    let mut batches = FlightRecordBatchStream::new_from_flight_data(messages);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(|e| Error::Request(format!("the parameters cannot be read: {e}")))?;
        bytes += batch.get_array_memory_size();
        if bytes > MOST_BYTES {
            return Err(Error::TooLarge { what: "the parameters", bytes, most: MOST_BYTES, next: "send fewer rows at a time" });
        }
        rows.push(batch);
    }
    match batches.schema() {
        Some(schema) if !schema.fields().is_empty() => Ok(Some(concat_batches(schema, &rows)?)),
        _ => Ok(None),
    }
}

/// Parameters bound before, from their IPC stream; `None` when none were.
///
/// # Errors
/// `Arrow` when the stream cannot be read.
pub fn from_bound(bound: &[u8]) -> Result<Option<RecordBatch>> {
    if bound.is_empty() {
        return Ok(None);
    }
    let (schema, batches) = encode::read_ipc_stream(bound)?;
    Ok(Some(concat_batches(&schema, &batches)?))
}

/// The one row that a query takes; none when no row was bound.
///
/// # Errors
/// `Unsupported` for more than one.
pub fn single(rows: Option<RecordBatch>) -> Result<Option<RecordBatch>> {
    match rows {
        Some(rows) if rows.num_rows() > 1 => {
            let n = rows.num_rows();
            Err(Error::Unsupported(format!("a query takes one row of parameters, and {n} were bound; run it once for each")))
        }
        Some(rows) if rows.num_rows() == 1 => Ok(Some(rows)),
        _ => Ok(None),
    }
}

/// The parameters' schema as drivers are told it. JDBC writes every timestamp as milliseconds whatever the unit declared, so milliseconds are
/// declared.
#[must_use]
pub fn declared(parameters: &Schema) -> Schema {
    let fields = parameters.fields().iter().map(|field| match field.data_type() {
        DataType::Timestamp(_, zone) => {
            Field::new(field.name(), DataType::Timestamp(TimeUnit::Millisecond, zone.clone()), field.is_nullable())
        }
        _ => field.as_ref().clone(),
    });
    Schema::new(fields.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};

    use super::*;
    use crate::encode::Encoder;

    async fn upload(batches: &[RecordBatch], schema: Schema) -> Result<Option<RecordBatch>> {
        let mut encoder = Encoder::new(Arc::new(schema));
        let first = encoder.schema();
        let rest: Vec<_> = batches.iter().flat_map(|b| encoder.batch(b).unwrap()).map(Ok).collect();
        received(first, futures::stream::iter(rest)).await
    }

    #[tokio::test]
    async fn rows_of_an_upload_become_one_batch() {
        let rows = |values: Vec<i64>| RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(values)) as ArrayRef)]).unwrap();
        let schema = rows(vec![]).schema().as_ref().clone();
        let got = upload(&[rows(vec![1]), rows(vec![2, 3])], schema.clone()).await.unwrap().unwrap();
        assert_eq!(got, rows(vec![1, 2, 3]));
        assert_eq!(upload(&[], schema).await.unwrap().unwrap().num_rows(), 0);
        assert!(upload(&[], Schema::empty()).await.unwrap().is_none());
        assert!(received(FlightData::default(), futures::stream::empty()).await.unwrap().is_none());
        let nonsense = FlightData { data_header: "nonsense".into(), ..FlightData::default() };
        assert!(matches!(received(nonsense, futures::stream::empty()).await, Err(Error::Request(_))));
        assert!(single(Some(rows(vec![1, 2]))).is_err());
        assert!(single(Some(rows(vec![]))).unwrap().is_none());
    }

    #[test]
    fn timestamps_are_declared_in_milliseconds() {
        let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let millis = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Millisecond, zone.map(Into::into));
        let fields = [micros(Some("UTC")), micros(None), DataType::Int64].map(|t| Field::new("p", t, true));
        let types: Vec<DataType> = declared(&Schema::new(fields.to_vec())).fields().iter().map(|f| f.data_type().clone()).collect();
        assert_eq!(types, [millis(Some("UTC")), millis(None), DataType::Int64]);
    }
}
