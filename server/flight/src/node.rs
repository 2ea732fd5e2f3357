//! One server of a warehouse: what its handlers share, and a statement's three ways through it.
//!
//! * A *query* is planned when its flight is asked for; its ticket holds what was decided, and its rows are made when the ticket is
//!   fetched, so that a dropped stream cancels it.
//! * An *update* and a *command with rows* run once, when the client sends them (Q3): by DoPut, which gives a count, or by GetFlightInfo,
//!   whose ticket then holds the small result.

use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow_flight::FlightData;
use asof_catalog::{Session, Sessions, Warehouse};
use asof_query::{Description, Engine, Interrupt, Outcome, QueryPlan, Reason, StatementClass};
use asof_storage::Env;
use bytes::Bytes;
use futures::StreamExt;
use tokio::sync::mpsc::Sender;

use crate::cpu::{Cpu, Produced};
use crate::encode::{self, Encoder};
use crate::error::{Error, Result};
use crate::metadata::columns;
use crate::parameters;
use crate::plans::Plans;
use crate::running::Running;
use crate::signing::Signer;
use crate::ticket::Ticket;

/// What a server takes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a statement's text.
    pub statement_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { statement_bytes: 16 << 20 }
    }
}

/// One server of a warehouse.
#[derive(Debug)]
pub struct Node {
    pub(crate) engine: Arc<Engine>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) signer: Signer,
    pub(crate) cpu: Cpu,
    pub(crate) plans: Plans,
    pub(crate) running: Running,
    env: Env,
    limits: Limits,
}

/// What a client is told of a statement's rows before it fetches them.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The rows' schema.
    pub schema: SchemaRef,
    /// What to fetch them with.
    pub ticket: arrow_flight::Ticket,
}

impl Node {
    /// Over an engine.
    #[must_use]
    pub fn new(engine: Arc<Engine>, sessions: Arc<Sessions>, signer: Signer, cpu: Cpu, env: Env, limits: Limits) -> Self {
        Self { engine, sessions, signer, cpu, plans: Plans::default(), running: Running::default(), env, limits }
    }

    /// The tables.
    pub fn warehouse(&self) -> &Arc<Warehouse> {
        self.engine.warehouse()
    }

    /// Streams that are being sent.
    pub fn running_streams(&self) -> usize {
        self.running.len()
    }

    /// Live sessions.
    pub fn live_sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Class, schema and parameters of a text; runs nothing.
    ///
    /// # Errors
    /// `TooLarge`; whatever parsing and planning find.
    pub async fn describe(self: &Arc<Self>, session: &Arc<Session>, sql: &str) -> Result<Description> {
        self.check_text(sql)?;
        let (node, session, sql) = (Arc::clone(self), Arc::clone(session), sql.to_owned());
        let limit = session.statement_timeout();
        let work = |interrupt| async move { Ok(node.engine.describe(&session, &sql, &interrupt).await?) };
        self.cpu.run(limit, work).await
    }

    /// What GetFlightInfo does with a text: plan a query, or run anything else, once. `bound`: parameters as an IPC stream, empty when none.
    ///
    /// # Errors
    /// Whatever the statement meets.
    pub async fn flight(self: &Arc<Self>, session: &Arc<Session>, sql: String, bound: Vec<u8>) -> Result<Flight> {
        self.check_text(&sql)?;
        let (node, session) = (Arc::clone(self), Arc::clone(session));
        let limit = session.statement_timeout();
        self.cpu.run(limit, |interrupt| async move { node.planned_or_run(&session, &sql, &bound, &interrupt).await }).await
    }

    async fn planned_or_run(&self, session: &Arc<Session>, sql: &str, bound: &[u8], interrupt: &Interrupt) -> Result<Flight> {
        let rows = parameters::from_bound(bound)?;
        let id = self.env.entropy.uuid().simple().to_string();
        if self.engine.class(sql)? == StatementClass::Query {
            let row = parameters::single(rows)?;
            let plan = self.engine.plan(session, sql, row.as_ref(), &[], None, interrupt).await?;
            let kept = if row.is_some() { bound } else { &[] };
            let ticket = Ticket::of_query(session, sql, kept, &plan, id.clone()).seal(&self.signer)?;
            let schema = columns::typed(&plan.schema);
            self.plans.keep(id, plan);
            return Ok(Flight { schema, ticket });
        }
        let outcome = self.run_for_each(session, sql, rows, interrupt).await?;
        let (schema, batches) = outcome.rows.unwrap_or_else(|| (Arc::new(Schema::empty()), Vec::new()));
        let schema = columns::typed(&schema);
        let result = encode::ipc_stream(&schema, &batches)?;
        Ok(Flight { ticket: Ticket::of_result(session, result, id).seal(&self.signer)?, schema })
    }

    /// What DoPut does with a text: run it once, or once for each row of parameters; how many rows changed, 0 where nothing is counted.
    ///
    /// # Errors
    /// `Request` for a query, which gives rows and no count; whatever the statement meets.
    pub async fn update(self: &Arc<Self>, session: &Arc<Session>, sql: String, rows: Option<RecordBatch>) -> Result<i64> {
        self.check_text(&sql)?;
        let (node, session) = (Arc::clone(self), Arc::clone(session));
        let limit = session.statement_timeout();
        let work = |interrupt| async move {
            if node.engine.class(&sql)? == StatementClass::Query {
                return Err(Error::Request(
                    "this statement gives rows and changes nothing: send it as a query, not as an update".to_owned(),
                ));
            }
            Ok(node.run_for_each(&session, &sql, rows, &interrupt).await?.count.unwrap_or(0))
        };
        self.cpu.run(limit, work).await
    }

    /// Runs a text once, or for each row of parameters: together where that can be, else one after the other; counts are added, the last rows are
    /// kept.
    async fn run_for_each(&self, session: &Arc<Session>, sql: &str, rows: Option<RecordBatch>, interrupt: &Interrupt) -> Result<Outcome> {
        let started = Instant::now();
        let outcome = match &rows {
            None => self.engine.run(session, sql, None, interrupt).await.map_err(Error::from),
            Some(rows) => self.run_rows(session, sql, rows, interrupt).await,
        };
        let (principal, ms) = (session.principal(), started.elapsed().as_millis());
        match &outcome {
            Ok(outcome) => tracing::info!(principal, changed = outcome.count, ms, sql = start_of(sql), "statement ran"),
            Err(error) => tracing::info!(principal, %error, ms, sql = start_of(sql), "statement failed"),
        }
        outcome
    }

    async fn run_rows(&self, session: &Arc<Session>, sql: &str, rows: &RecordBatch, interrupt: &Interrupt) -> Result<Outcome> {
        let all = rows.num_rows();
        if all > 1
            && let Some(outcome) = self.engine.run_rows(session, sql, rows, interrupt).await?
        {
            return Ok(outcome);
        }
        let mut total = Outcome { count: Some(0), rows: None };
        for at in 0..all {
            let row = rows.slice(at, 1);
            let outcome = self.engine.run(session, sql, Some(&row), interrupt).await.map_err(|e| match all {
                1 => Error::from(e),
                _ => Error::Row { row: at + 1, rows: all, source: Box::new(e.into()) },
            })?;
            total.count = Some(total.count.unwrap_or(0) + outcome.count.unwrap_or(0));
            total.rows = outcome.rows;
        }
        Ok(total)
    }

    /// The rows of a ticket, encoded. The session is the caller's; the text means what it meant in the session that made the ticket.
    ///
    /// # Errors
    /// `Denied` for a ticket that is not the caller's.
    pub fn fetch(self: &Arc<Self>, caller: &Arc<Session>, handle: &Bytes) -> Result<Produced<FlightData>> {
        let principal = caller.principal();
        let ticket = Ticket::open(handle, &self.signer, &principal)?;
        let session = self.sessions.restore(&principal, ticket.naming());
        let (node, in_use) = (Arc::clone(self), Arc::clone(caller));
        Ok(self.cpu.stream(session.statement_timeout(), |sender, interrupt| async move {
            let mut entry = node.running.enter(ticket.id(), &principal, &interrupt);
            let made = tokio::select! {
                made = node.produce(&session, &ticket, &sender, &interrupt) => made,
                reason = interrupt.wait() => Err(reason.into()),
            };
            // What was cut short may have failed with other words.
            let made = made.map_err(|error| interrupt.reason().map_or(error, Error::from));
            entry.ended(&made);
            drop(in_use);
            made.map(|_| ())
        }))
    }

    /// Sends a ticket's rows; how many.
    async fn produce(
        &self,
        session: &Arc<Session>,
        ticket: &Ticket,
        sender: &Sender<Result<FlightData>>,
        interrupt: &Interrupt,
    ) -> Result<u64> {
        if let Some(result) = ticket.result() {
            let (schema, batches) = encode::read_ipc_stream(result)?;
            return send(schema, futures::stream::iter(batches.into_iter().map(Ok)), sender).await;
        }
        let plan = self.plan_of(session, ticket, interrupt).await?;
        let batches = self.engine.stream(&plan, interrupt).await?;
        send(columns::typed(&plan.schema), batches.map(|batch| Ok(batch?)), sender).await
    }

    /// The plan this server made for the ticket, or the same plan made again.
    async fn plan_of(&self, session: &Arc<Session>, ticket: &Ticket, interrupt: &Interrupt) -> Result<QueryPlan> {
        if let Some(plan) = self.plans.take(ticket.id()) {
            return Ok(plan);
        }
        let row = ticket.parameters()?;
        Ok(self.engine.plan(session, ticket.sql(), row.as_ref(), &ticket.pins(), Some(ticket.now()), interrupt).await?)
    }

    fn check_text(&self, sql: &str) -> Result<()> {
        let (bytes, most) = (sql.len(), self.limits.statement_bytes);
        if bytes <= most {
            return Ok(());
        }
        let next = "split it, or send its values as parameters";
        Err(Error::TooLarge { what: "the statement's text", bytes, most, next })
    }
}

/// Encodes and sends batches until the end, or until nobody listens. The schema goes first, at once.
async fn send(
    schema: SchemaRef,
    batches: impl futures::Stream<Item = Result<RecordBatch>> + Send,
    sender: &Sender<Result<FlightData>>,
) -> Result<u64> {
    let gone = |_| Error::from(Reason::Gone);
    let mut encoder = Encoder::new(schema);
    sender.send(Ok(encoder.schema())).await.map_err(gone)?;
    let mut batches = std::pin::pin!(batches);
    let mut rows = 0;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        for message in encoder.batch(&batch)? {
            sender.send(Ok(message)).await.map_err(gone)?;
        }
    }
    Ok(rows)
}

/// A text's beginning, for the log.
fn start_of(sql: &str) -> &str {
    const SHOWN: usize = 300;
    match sql.char_indices().nth(SHOWN) {
        Some((at, _)) => &sql[..at],
        None => sql,
    }
}
