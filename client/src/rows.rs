//! The rows of a statement, as they come.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{Stream, TryStreamExt};

use crate::error::Result;

/// A stream of batches, all of [`schema`](Rows::schema). Dropping it cancels what still runs on the server.
pub struct Rows {
    schema: SchemaRef,
    batches: BoxStream<'static, Result<RecordBatch>>,
}

impl Rows {
    pub(crate) fn new(schema: SchemaRef, batches: BoxStream<'static, Result<RecordBatch>>) -> Self {
        Self { schema, batches }
    }

    /// The columns. None of them when the statement was one that gives no rows.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// All batches, in memory.
    ///
    /// # Errors
    /// The first error of the stream; what came before it is dropped.
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        self.batches.try_collect().await
    }
}

impl Stream for Rows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.batches.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("schema", &self.schema).finish_non_exhaustive()
    }
}
