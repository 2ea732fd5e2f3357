//! A statement's way, top to bottom.

use std::pin::Pin as BoxPin;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use asof_catalog::{Session, Warehouse};
use asof_storage::{Env, Micros};
use futures::Stream;

use crate::error::Result;

/// The three classes of statement on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// Planned when described, executed when its stream is read; any number of times.
    Query,
    /// INSERT, UPDATE, DELETE, DDL, SET: no rows, runs once, gives a count.
    Update,
    /// RESTORE …: has rows *and* writes; runs once. (SHOW, DESCRIBE, EXPLAIN, which only read, are `Query`.)
    CommandWithRows,
}

/// What is known of a statement without running it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its class.
    pub class: StatementClass,
    /// Normalised schema of its rows (Q2); empty for `Update`.
    pub schema: SchemaRef,
    /// One field for each parameter, in order (`$1`, `$2` …); Utf8 where the type is unknown; nullable.
    pub parameters: SchemaRef,
}

/// A table occurrence's version, as resolved (goes into tickets).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pin {
    /// The table's folder.
    pub table: String,
    /// The selector as written, canonical (empty = latest).
    pub selector: String,
    /// What it resolved to.
    pub version: i64,
}

/// A stream of batches of one normalised schema. Dropping it stops the work.
pub type BatchStream = BoxPin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>;

/// A planned query: pinned, not yet run.
#[derive(Clone, Debug)]
pub struct QueryPlan {
    /// Normalised schema.
    pub schema: SchemaRef,
    /// Every table occurrence's version.
    pub pins: Vec<Pin>,
    /// The moment `now()` stands for.
    pub now: Micros,
}

/// What running a statement gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Rows changed; `None` = unknown or not applicable.
    pub count: Option<i64>,
    /// Rows of a command, with their schema.
    pub rows: Option<(SchemaRef, Vec<RecordBatch>)>,
}

/// Limits and folders of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Bytes for all statements together.
    pub memory_limit: usize,
    /// Partitions of a plan (cores of the CPU runtime).
    pub parallelism: usize,
    /// Where to spill.
    pub spill_dir: Option<std::path::PathBuf>,
}

/// Plans and runs statements.
#[derive(Debug)]
pub struct Engine {
    _warehouse: Arc<Warehouse>,
}

#[allow(unused_variables, missing_docs, clippy::unused_async, clippy::todo)]
impl Engine {
    pub fn new(warehouse: Arc<Warehouse>, env: Env, config: EngineConfig) -> Result<Self> {
        todo!()
    }
    pub fn warehouse(&self) -> &Arc<Warehouse> {
        todo!()
    }
    /// Class, schema and parameters; never runs anything. Resolves tables (to know the schema).
    pub async fn describe(&self, session: &Arc<Session>, sql: &str) -> Result<Description> {
        todo!()
    }
    /// Plan a query. `parameters`: one row, a column for each parameter, cast by position. `pins` (from a ticket) win over
    /// resolution, as does `now`.
    pub async fn plan(
        &self,
        session: &Arc<Session>,
        sql: &str,
        parameters: Option<&RecordBatch>,
        pins: &[Pin],
        now: Option<Micros>,
    ) -> Result<QueryPlan> {
        todo!()
    }
    /// Run a planned query. Call it on the CPU runtime and poll it there.
    pub fn stream(&self, plan: &QueryPlan) -> Result<BatchStream> {
        todo!()
    }
    /// Run a statement of any class once: an update, a command; a query's rows are collected (tests, small results).
    pub async fn run(&self, session: &Arc<Session>, sql: &str, parameters: Option<&RecordBatch>) -> Result<Outcome> {
        todo!()
    }
}
