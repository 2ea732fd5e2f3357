//! Prepared statements. Preparing plans, and never runs; a handle is sealed and holds its session's key, so that a client that keeps no
//! session can still use what it prepared.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use arrow_flight::sql::{ActionCreatePreparedStatementResult, Any, ProstMessageExt};
use asof_catalog::{PreparedStatement, Session, SessionKey};
use asof_query::StatementClass;
use bytes::Bytes;
use prost::Message;

use crate::encode;
use crate::error::{Error, Result};
use crate::metadata::columns;
use crate::node::{Flight, Node};
use crate::parameters;

/// `ActionCreatePreparedStatementResult` with the field that arrow-flight 59 does not have yet.
#[derive(Clone, PartialEq, Message)]
pub struct Prepared {
    /// The handle.
    #[prost(bytes = "bytes", tag = "1")]
    pub prepared_statement_handle: Bytes,
    /// Schema of the rows, an encapsulated IPC message; empty for an update, by which JDBC tells the two apart.
    #[prost(bytes = "bytes", tag = "2")]
    pub dataset_schema: Bytes,
    /// Schema of the parameters, likewise; empty when there are none.
    #[prost(bytes = "bytes", tag = "3")]
    pub parameter_schema: Bytes,
    /// It changes something and gives a count.
    #[prost(bool, optional, tag = "4")]
    pub is_update: Option<bool>,
}

impl Prepared {
    /// Wrapped as Flight SQL wants it.
    #[must_use]
    pub fn into_any(self) -> Any {
        Any { type_url: ActionCreatePreparedStatementResult::type_url().to_owned(), value: self.encode_to_vec().into() }
    }
}

/// A handle, opened: which statement of which session.
struct Held {
    session: Arc<Session>,
    name: String,
    statement: PreparedStatement,
}

impl Node {
    /// Prepares a text.
    ///
    /// # Errors
    /// Whatever parsing and planning find.
    pub async fn prepare(self: &Arc<Self>, session: &Arc<Session>, sql: String) -> Result<Prepared> {
        let described = self.describe(session, &sql).await?;
        let is_update = described.class == StatementClass::Update;
        let dataset_schema = if is_update { Bytes::new() } else { encode::schema_message(&columns::typed(&described.schema))? };
        let parameter_schema = match described.parameters.fields().is_empty() {
            true => Bytes::new(),
            false => encode::schema_message(&parameters::declared(&described.parameters))?,
        };
        let name = session.prepare(PreparedStatement { sql, parameters: Vec::new() })?;
        let prepared_statement_handle = self.signer.seal(format!("{}/{name}", session.key().0).as_bytes());
        Ok(Prepared { prepared_statement_handle, dataset_schema, parameter_schema, is_update: Some(is_update) })
    }

    /// What GetFlightInfo does with a handle.
    ///
    /// # Errors
    /// `UnknownHandle`; whatever the statement meets.
    pub async fn prepared_flight(self: &Arc<Self>, caller: &Arc<Session>, handle: &Bytes) -> Result<Flight> {
        let held = self.held(caller, handle)?;
        self.flight(&held.session, held.statement.sql, held.statement.parameters).await
    }

    /// What GetSchema does with a handle: its text.
    ///
    /// # Errors
    /// `UnknownHandle`.
    pub fn prepared_text(&self, caller: &Arc<Session>, handle: &Bytes) -> Result<(Arc<Session>, String)> {
        self.held(caller, handle).map(|held| (held.session, held.statement.sql))
    }

    /// Binds rows of parameters in place of those bound before.
    ///
    /// # Errors
    /// `UnknownHandle`.
    pub fn bind(&self, caller: &Arc<Session>, handle: &Bytes, rows: Option<&RecordBatch>) -> Result<()> {
        let held = self.held(caller, handle)?;
        let bound = rows.map_or_else(|| Ok(Vec::new()), |rows| encode::ipc_stream(rows.schema_ref(), [rows]))?;
        if held.session.bind(&held.name, bound) { Ok(()) } else { Err(Error::UnknownHandle) }
    }

    /// What DoPut does with a handle: runs it for each row that comes with it, else for those bound before, else once.
    ///
    /// # Errors
    /// `UnknownHandle`; whatever the statement meets.
    pub async fn prepared_update(self: &Arc<Self>, caller: &Arc<Session>, handle: &Bytes, rows: Option<RecordBatch>) -> Result<i64> {
        let held = self.held(caller, handle)?;
        let rows = match rows {
            Some(rows) => Some(rows),
            None => parameters::from_bound(&held.statement.parameters)?,
        };
        self.update(&held.session, held.statement.sql, rows).await
    }

    /// Forgets a prepared statement; one that is unknown was closed before.
    pub fn close_prepared(&self, caller: &Arc<Session>, handle: &Bytes) {
        if let Ok(held) = self.held(caller, handle) {
            held.session.close_prepared(&held.name);
        }
    }

    fn held(&self, caller: &Arc<Session>, handle: &Bytes) -> Result<Held> {
        let text = self.signer.open(handle).and_then(|content| std::str::from_utf8(content).ok()).ok_or(Error::UnknownHandle)?;
        let (key, name) = text.split_once('/').ok_or(Error::UnknownHandle)?;
        let session = match key == caller.key().0 {
            true => Arc::clone(caller),
            false => self.sessions.look_up(&SessionKey(key.to_owned())).map_err(|_| Error::UnknownHandle)?,
        };
        if session.principal() != caller.principal() {
            return Err(Error::UnknownHandle);
        }
        let statement = session.prepared(name).ok_or(Error::UnknownHandle)?;
        Ok(Held { name: name.to_owned(), statement, session })
    }
}
