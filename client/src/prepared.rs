//! Prepared statements: parsed and planned once, executed with parameters as often as wanted.

use std::sync::{Arc, PoisonError, RwLock};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt,
};
use arrow_flight::{FlightData, FlightDescriptor};
use bytes::Bytes;
use futures::{TryStreamExt, stream};
use prost::Message;

use crate::connection::{Connection, decode_schema, descriptor, malformed, unwrap_any};
use crate::error::{Error, Result};
use crate::rows::Rows;

const CREATE: &str = "CreatePreparedStatement";
const CLOSE: &str = "ClosePreparedStatement";

/// `ActionCreatePreparedStatementResult` with the field `is_update`, which arrow-flight does not know yet.
#[derive(Clone, PartialEq, prost::Message)]
struct Created {
    #[prost(bytes = "bytes", tag = "1")]
    handle: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    dataset_schema: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    parameter_schema: Bytes,
    #[prost(bool, optional, tag = "4")]
    is_update: Option<bool>,
}

/// A statement that the server knows by a handle. Give it back with [`PreparedStatement::close`]; else it ends with the session.
#[derive(Debug)]
pub struct PreparedStatement {
    connection: Connection,
    /// The server may give a new handle with each binding.
    handle: RwLock<Bytes>,
    schema: SchemaRef,
    parameters: SchemaRef,
    gives_rows: bool,
    bound: Option<RecordBatch>,
}

impl PreparedStatement {
    pub(crate) async fn create(connection: Connection, sql: &str) -> Result<Self> {
        let request = ActionCreatePreparedStatementRequest { query: sql.to_owned(), transaction_id: None };
        let results = connection.act(CREATE, request.as_any().encode_to_vec()).await?;
        let body = results.first().ok_or_else(|| Error::Protocol("a statement was prepared without an answer".into()))?;
        let created = Created::decode(unwrap_any(body)?).map_err(malformed)?;
        let schema = decode_schema(created.dataset_schema)?;
        let gives_rows = created.is_update.map_or(!schema.fields().is_empty(), |is_update| !is_update);
        Ok(Self {
            connection,
            handle: RwLock::new(created.handle),
            schema: Arc::new(schema),
            parameters: Arc::new(decode_schema(created.parameter_schema)?),
            gives_rows,
            bound: None,
        })
    }

    /// Whether it gives rows; if not, [`execute`](Self::execute) it.
    pub fn gives_rows(&self) -> bool {
        self.gives_rows
    }

    /// The columns it gives.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Its parameters: one field for each, from left to right, of the type the server expects.
    pub fn parameters(&self) -> SchemaRef {
        self.parameters.clone()
    }

    /// Binds parameters from left to right, one array for each; each row of them is one execution of an update.
    ///
    /// # Errors
    /// [`Error::Parameters`] when there are more or fewer than the statement has, or their lengths differ.
    pub fn bind(&mut self, values: Vec<ArrayRef>) -> Result<()> {
        let expected = self.parameters.fields().len();
        if values.len() != expected {
            return Err(Error::Parameters(format!("the statement has {expected}, {} were given", values.len())));
        }
        let fields: Vec<_> = values
            .iter()
            .zip(self.parameters.fields())
            .map(|(value, field)| Field::new(field.name(), value.data_type().clone(), true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), values).map_err(|error| Error::Parameters(error.to_string()))?;
        self.bound = Some(batch);
        Ok(())
    }

    /// Executes it, and streams its rows.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn query(&self) -> Result<Rows> {
        if let Some(batch) = &self.bound {
            let command = CommandPreparedStatementQuery { prepared_statement_handle: self.handle() };
            let answers = self.connection.put(messages(descriptor(&command), batch).await?).await?;
            if let Some(answer) = answers.first() {
                self.adopt(&answer.app_metadata)?;
            }
        }
        let info = self.connection.flight_info(&CommandPreparedStatementQuery { prepared_statement_handle: self.handle() }).await?;
        self.connection.rows(info).await
    }

    /// Executes it for its effect: how many rows it changed, where the server knows.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn execute(&self) -> Result<Option<u64>> {
        let command = descriptor(&CommandPreparedStatementUpdate { prepared_statement_handle: self.handle() });
        let messages = match &self.bound {
            Some(batch) => messages(command, batch).await?,
            None => vec![FlightData::new().with_descriptor(command)],
        };
        self.connection.update(messages).await
    }

    /// Gives the handle back.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection.
    pub async fn close(self) -> Result<()> {
        let request = ActionClosePreparedStatementRequest { prepared_statement_handle: self.handle() };
        self.connection.act(CLOSE, request.as_any().encode_to_vec()).await.map(drop)
    }

    fn handle(&self) -> Bytes {
        self.handle.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn adopt(&self, metadata: &Bytes) -> Result<()> {
        let result = DoPutPreparedStatementResult::decode(metadata.clone()).map_err(malformed)?;
        if let Some(handle) = result.prepared_statement_handle.filter(|handle| !handle.is_empty()) {
            *self.handle.write().unwrap_or_else(PoisonError::into_inner) = handle;
        }
        Ok(())
    }
}

/// One batch as Flight carries it: schema, then rows; the first message says what they are for.
async fn messages(descriptor: FlightDescriptor, batch: &RecordBatch) -> Result<Vec<FlightData>> {
    FlightDataEncoderBuilder::new()
        .with_flight_descriptor(Some(descriptor))
        .with_schema(batch.schema())
        .build(stream::iter([Ok(batch.clone())]))
        .try_collect()
        .await
        .map_err(|error| Error::from_flight(error, "the encoder"))
}
