//! One session on one server.
//!
//! # Which message runs a statement
//! Flight SQL has three ways to send a statement: `GetFlightInfo` (for rows), `DoPut` (for a count), and a prepared statement, which
//! is created without being executed and says by its schema whether it gives rows. A program knows what it sends:
//! [`Connection::query`] and [`Connection::execute`] take the first two, in one or two round trips. A shell does not know, and must
//! not guess from the text: `RESTORE` gives rows, `EXPLAIN` may, and sending a change through the wrong door would lose its count.
//! So [`Connection::run`] prepares, reads the server's answer, and then executes exactly once through the right door.
//!
//! arrow-flight's own `FlightSqlServiceClient` is not used: it never shows response headers (where the session's key is), adopts a
//! key only from a handshake, and turns refusals of some calls into text without their code.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{Any, CommandStatementQuery, CommandStatementUpdate, DoPutUpdateResult, ProstMessageExt};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, IpcMessage, PutResult, Ticket};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tonic::transport::{Channel, Endpoint};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::metadata::Server;
use crate::prepared::PreparedStatement;
use crate::rows::Rows;
use crate::session::{CLOSE_SESSION, CloseSessionRequest, SessionKey};

/// A message larger than this is refused. asof's own stay under 2 MiB; others' servers send larger ones.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// How long to wait for a server to take the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a statement gave.
#[derive(Debug)]
pub enum Outcome {
    /// It gives rows, be they none.
    Rows(Rows),
    /// It gives none: how many rows it changed, where the server knows and it makes sense.
    Count(Option<u64>),
}

/// One session on one server. Clones share the session; it ends with [`Connection::close`], or on the server after a time unused.
#[derive(Clone, Debug)]
pub struct Connection {
    client: FlightServiceClient<Channel>,
    session: SessionKey,
    address: Arc<str>,
    server: Arc<Server>,
}

impl Connection {
    /// Connects, opens a session, and asks the server who it is. See [`Address`] for what may be written.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Unreachable`], or the server's refusal.
    pub async fn connect(address: &str) -> Result<Self> {
        Self::connect_to(&address.parse()?).await
    }

    /// As [`Connection::connect`], to an address that was read before.
    ///
    /// # Errors
    /// [`Error::Unreachable`], or the server's refusal.
    pub async fn connect_to(address: &Address) -> Result<Self> {
        let name = address.to_string();
        let endpoint = Endpoint::from_shared(address.http())
            .map_err(|error| Error::Address { given: name.clone(), reason: error.to_string() })?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_adaptive_window(true)
            .user_agent(concat!("asof/", env!("CARGO_PKG_VERSION")))
            .map_err(|error| Error::Protocol(error.to_string()))?;
        let channel = endpoint.connect().await.map_err(|error| Error::unreachable(&error, &name))?;
        let client = FlightServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let mut connection = Self { client, session: SessionKey::default(), address: name.into(), server: Arc::default() };
        connection.server = Arc::new(connection.identify().await?);
        Ok(connection)
    }

    /// Who answers.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The server's address, as `asof://HOST:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether the server gave this connection a session of its own.
    pub fn has_session(&self) -> bool {
        self.session.is_set()
    }

    /// Runs a statement that gives rows, and streams them. A statement that gives none is executed too; its rows have no columns.
    ///
    /// # Errors
    /// The server's refusal; errors while the rows are made come in the stream.
    pub async fn query(&self, sql: &str) -> Result<Rows> {
        let info = self.flight_info(&CommandStatementQuery { query: sql.to_owned(), transaction_id: None }).await?;
        self.rows(info).await
    }

    /// Runs a statement for its effect: how many rows it changed, where the server knows.
    ///
    /// # Errors
    /// The server's refusal. [`Error::Unreachable`] means that it may or may not have been executed.
    pub async fn execute(&self, sql: &str) -> Result<Option<u64>> {
        let command = CommandStatementUpdate { query: sql.to_owned(), transaction_id: None };
        self.update(vec![FlightData::new().with_descriptor(descriptor(&command))]).await
    }

    /// Runs a statement of either kind, exactly once: the server says which it is before it is executed.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn run(&self, sql: &str) -> Result<Outcome> {
        let statement = self.prepare(sql).await?;
        let outcome =
            if statement.gives_rows() { statement.query().await.map(Outcome::Rows) } else { statement.execute().await.map(Outcome::Count) };
        // The statement's own outcome matters more than what becomes of its handle, which ends with the session at the latest.
        let _ = statement.close().await;
        outcome
    }

    /// Prepares a statement without executing it.
    ///
    /// # Errors
    /// The server's refusal: syntax, unknown names, types that do not fit.
    pub async fn prepare(&self, sql: &str) -> Result<PreparedStatement> {
        PreparedStatement::create(self.clone(), sql).await
    }

    /// Ends the session: settings, temporary views and prepared statements are given up, for all clones of this connection.
    ///
    /// # Errors
    /// The server's refusal, or a broken connection; the session then ends on the server after a time unused.
    pub async fn close(self) -> Result<()> {
        if !self.has_session() {
            return Ok(());
        }
        self.act(CLOSE_SESSION, CloseSessionRequest {}.encode_to_vec()).await.map(drop)
    }

    /// GetFlightInfo of a command.
    pub(crate) async fn flight_info<C: ProstMessageExt>(&self, command: &C) -> Result<FlightInfo> {
        let request = self.session.sign(descriptor(command));
        let answer = self.client.clone().get_flight_info(request).await;
        self.receive(answer)
    }

    /// The rows of a FlightInfo: the first endpoint is opened at once, so that its refusal is this call's, the others in turn.
    ///
    /// Endpoints' locations are not followed: asof has one endpoint, without a location.
    pub(crate) async fn rows(&self, info: FlightInfo) -> Result<Rows> {
        let schema = Arc::new(decode_schema(info.schema)?);
        let mut tickets = info.endpoint.into_iter().filter_map(|endpoint| endpoint.ticket);
        let Some(first) = tickets.next() else { return Ok(Rows::new(schema, stream::empty().boxed())) };
        let opened = self.open(first).await?;
        let connection = self.clone();
        let others = stream::iter(tickets).then(move |ticket| {
            let connection = connection.clone();
            async move { connection.open(ticket).await }
        });
        Ok(Rows::new(schema, opened.chain(others.try_flatten()).boxed()))
    }

    /// DoGet.
    async fn open(&self, ticket: Ticket) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let answer = self.client.clone().do_get(self.session.sign(ticket)).await;
        let messages = self.receive(answer)?.map_err(|status| FlightError::Tonic(Box::new(status)));
        let address = self.address.clone();
        let batches = FlightRecordBatchStream::new_from_flight_data(messages);
        Ok(batches.map_err(move |error| Error::from_flight(error, &address)).boxed())
    }

    /// DoPut of messages that are at hand: the server's answers.
    pub(crate) async fn put(&self, messages: Vec<FlightData>) -> Result<Vec<PutResult>> {
        let answer = self.client.clone().do_put(self.session.sign(stream::iter(messages))).await;
        self.receive(answer)?.try_collect().await.map_err(|status| Error::from_status(status, &self.address))
    }

    /// DoPut of an update: its count, `None` when the server does not know it.
    pub(crate) async fn update(&self, messages: Vec<FlightData>) -> Result<Option<u64>> {
        let answers = self.put(messages).await?;
        let answer = answers.first().ok_or_else(|| Error::Protocol("an update was not answered with its count".into()))?;
        let result = DoPutUpdateResult::decode(answer.app_metadata.clone()).map_err(malformed)?;
        Ok(u64::try_from(result.record_count).ok())
    }

    /// DoAction: the bodies of its results.
    pub(crate) async fn act(&self, name: &str, body: Vec<u8>) -> Result<Vec<Bytes>> {
        let action = Action { r#type: name.to_owned(), body: body.into() };
        let answer = self.client.clone().do_action(self.session.sign(action)).await;
        let results = self.receive(answer)?.map_ok(|result| result.body).try_collect().await;
        results.map_err(|status| Error::from_status(status, &self.address))
    }

    /// Adopts the session's key, be the answer a response or a refusal.
    fn receive<T>(&self, answer: Result<tonic::Response<T>, tonic::Status>) -> Result<T> {
        match answer {
            Ok(response) => {
                self.session.adopt(response.metadata());
                Ok(response.into_inner())
            }
            Err(status) => {
                self.session.adopt(status.metadata());
                Err(Error::from_status(status, &self.address))
            }
        }
    }
}

/// A command, as Flight carries it.
pub(crate) fn descriptor<C: ProstMessageExt>(command: &C) -> FlightDescriptor {
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

/// A schema on the wire; no bytes are no columns.
pub(crate) fn decode_schema(bytes: Bytes) -> Result<Schema> {
    if bytes.is_empty() { Ok(Schema::empty()) } else { Ok(Schema::try_from(IpcMessage(bytes))?) }
}

/// Unwraps the `Any` around a result.
pub(crate) fn unwrap_any(body: &Bytes) -> Result<Bytes> {
    Any::decode(body.as_ref()).map(|any| any.value).map_err(malformed)
}

#[expect(clippy::needless_pass_by_value, reason = "shaped for map_err")]
pub(crate) fn malformed(error: prost::DecodeError) -> Error {
    Error::Protocol(error.to_string())
}
