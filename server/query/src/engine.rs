//! A statement's way, top to bottom.
//!
//! [`Engine::describe`] tells class, schema and parameters and runs nothing; [`Engine::plan`] pins and plans a query, which
//! [`Engine::stream`] runs as often as asked; [`Engine::run`] runs anything once. Text is parsed by [`crate::statement`], tables are pinned
//! by [`crate::resolve`], plans made by [`crate::plan`], changes by [`crate::dml`]. Each takes the [`Interrupt`] that ends it early.

use std::pin::Pin as BoxPin;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use asof_catalog::{Session, Warehouse};
use asof_storage::{Env, Micros};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;
use futures::{Stream, StreamExt, TryStreamExt};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::plan::kept::KeptPlan;
use crate::plan::normalise::{self, Timestamps};
use crate::plan::parameters::{self, ParameterTypes};
use crate::plan::{Planner, StatementContext, guard};
use crate::runtime::Base;
use crate::statement::{self, Kind, Statement};
use crate::{command, dml, session};

/// The three classes of statement on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// Planned when described, executed when its stream is read; any number of times.
    Query,
    /// INSERT, UPDATE, DELETE, DDL, SET: no rows, runs once, gives a count.
    Update,
    /// RESTORE, OPTIMIZE, VACUUM: has rows *and* writes; runs once. (SHOW, DESCRIBE, EXPLAIN, which only read, are `Query`.)
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
    /// The selector, canonical.
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
    logical: LogicalPlan,
    state: SessionState,
    /// The first run's physical plan: made while planning, so that files that are gone are told then. It keeps state of its run
    /// (dynamic filters), so each run takes its own.
    physical: Arc<Mutex<Option<Arc<dyn ExecutionPlan>>>>,
}

/// What running a statement gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Rows changed; `None` = unknown or not applicable.
    pub count: Option<i64>,
    /// Rows of a query or command, with their schema.
    pub rows: Option<(SchemaRef, Vec<RecordBatch>)>,
}

impl Outcome {
    /// Done, with nothing to count.
    #[must_use]
    pub fn done() -> Self {
        Self { count: None, rows: None }
    }

    /// So many rows changed.
    #[must_use]
    pub fn counted(count: i64) -> Self {
        Self { count: Some(count), rows: None }
    }
}

/// Limits and folders of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Bytes for all statements together.
    pub memory_limit: usize,
    /// Bytes for one statement, if that is less.
    pub statement_memory_limit: Option<usize>,
    /// Partitions of a plan (cores of the CPU runtime).
    pub parallelism: usize,
    /// Where to spill.
    pub spill_dir: Option<std::path::PathBuf>,
}

/// Plans and runs statements.
#[derive(Debug)]
pub struct Engine {
    warehouse: Arc<Warehouse>,
    env: Env,
    base: Arc<Base>,
}

impl Engine {
    /// Over a warehouse.
    ///
    /// # Errors
    /// When the spill folder cannot be used.
    pub fn new(warehouse: Arc<Warehouse>, env: Env, config: &EngineConfig) -> Result<Self> {
        let base = Arc::new(Base::new(&warehouse, config)?);
        Ok(Self { warehouse, env, base })
    }

    /// The tables.
    #[must_use]
    pub fn warehouse(&self) -> &Arc<Warehouse> {
        &self.warehouse
    }

    /// Its class alone, by the text.
    ///
    /// # Errors
    /// What parsing finds.
    pub fn class(&self, sql: &str) -> Result<StatementClass> {
        Ok(class(&statement::parse(sql)?.kind))
    }

    /// Class, schema and parameters; never runs anything. Resolves tables (to know the schema).
    ///
    /// # Errors
    /// Whatever parsing, naming and planning find.
    pub async fn describe(&self, session: &Arc<Session>, sql: &str, interrupt: &Interrupt) -> Result<Description> {
        let statement = statement::parse(sql)?;
        let ctx = self.context(session, None, interrupt);
        let mut types = ParameterTypes::of_selectors(&statement);
        let class = class(&statement.kind);
        let schema = match class {
            StatementClass::Query => {
                let planned = Box::pin(self.planned(&ctx, sql, &statement)).await?;
                types.of_plan(&planned.logical)?;
                normalise::schema(planned.logical.schema().as_arrow(), timestamps(session))
            }
            StatementClass::CommandWithRows => dml::result_schema(&statement.kind),
            StatementClass::Update => {
                Box::pin(dml::parameters(&ctx, &statement, &mut types)).await?;
                Arc::new(Schema::empty())
            }
        };
        Ok(Description { class, schema, parameters: types.schema(statement.parameters) })
    }

    /// Plan a query. `parameters`: one row, a column for each parameter, by position. `pins` (from a ticket) win over
    /// resolution, as does `now`.
    ///
    /// # Errors
    /// Whatever parsing, naming and planning find; a statement that is no query.
    pub async fn plan(
        &self,
        session: &Arc<Session>,
        sql: &str,
        parameters: Option<&RecordBatch>,
        pins: &[Pin],
        now: Option<Micros>,
        interrupt: &Interrupt,
    ) -> Result<QueryPlan> {
        let statement = statement::parse(sql)?;
        if class(&statement.kind) != StatementClass::Query {
            return Err(Error::Internal("a statement that writes was planned as a query".to_owned()));
        }
        let values = parameters::values(parameters, statement.parameters)?;
        let mut ctx = self.context(session, Some(values), interrupt);
        ctx.pins = pins.to_vec();
        ctx.now = now.unwrap_or(ctx.now);
        // Boxed, here and below: the futures of planning and writing are large, and every caller would carry their size.
        Box::pin(self.pinned(&ctx, sql, &statement)).await
    }

    /// Run a planned query. Call it on the CPU runtime and poll it there.
    ///
    /// # Errors
    /// When it cannot be made executable (again).
    pub async fn stream(&self, plan: &QueryPlan, interrupt: &Interrupt) -> Result<BatchStream> {
        let taken = plan.physical.lock().take();
        let physical = match taken {
            Some(physical) => physical,
            None => plan.state.create_physical_plan(&plan.logical).await?,
        };
        let schema = Arc::clone(&plan.schema);
        let batches = execute_stream(guard::guarded(physical, interrupt)?, self.base.task(&plan.state))?;
        Ok(Box::pin(batches.map(move |batch| normalise::batch(&batch?, &schema))))
    }

    /// Run a statement of any class once: an update, a command; a query's rows are collected (tests, small results).
    ///
    /// # Errors
    /// Whatever the statement meets.
    pub async fn run(&self, session: &Arc<Session>, sql: &str, parameters: Option<&RecordBatch>, interrupt: &Interrupt) -> Result<Outcome> {
        let statement = statement::parse(sql)?;
        let values = parameters::values(parameters, statement.parameters)?;
        let ctx = self.context(session, Some(values), interrupt);
        match class(&statement.kind) {
            StatementClass::Query => {
                let plan = Box::pin(self.pinned(&ctx, sql, &statement)).await?;
                let batches = self.stream(&plan, interrupt).await?.try_collect().await?;
                Ok(Outcome { count: None, rows: Some((plan.schema, batches)) })
            }
            _ if session::is_setting(&statement.kind) => Box::pin(session::apply(&ctx, &statement)).await,
            _ => Box::pin(dml::run(&ctx, &statement)).await,
        }
    }

    /// Run a statement once for many rows of parameters, as one change; `None` where each row is a statement of its own.
    ///
    /// # Errors
    /// Whatever the statement meets; then nothing was changed.
    pub async fn run_rows(&self, session: &Arc<Session>, sql: &str, rows: &RecordBatch, interrupt: &Interrupt) -> Result<Option<Outcome>> {
        let statement = statement::parse(sql)?;
        let Some(all) = statement::batch::of_rows(&statement, rows.num_rows()).filter(|_| rows.num_columns() == statement.parameters)
        else {
            return Ok(None);
        };
        let ctx = self.context(session, Some(parameters::all_values(rows)?), interrupt);
        Box::pin(dml::run(&ctx, &all)).await.map(Some)
    }

    pub(crate) fn context(&self, session: &Arc<Session>, parameters: Option<Vec<ScalarValue>>, interrupt: &Interrupt) -> StatementContext {
        StatementContext {
            warehouse: Arc::clone(&self.warehouse),
            session: Arc::clone(session),
            env: self.env.clone(),
            now: self.env.clock.now(),
            parameters,
            pins: vec![],
            base: Arc::clone(&self.base),
            interrupt: interrupt.clone(),
        }
    }

    async fn pinned(&self, ctx: &StatementContext, sql: &str, statement: &Statement) -> Result<QueryPlan> {
        let Planned { logical, kept, planner, pins } = Box::pin(self.planned(ctx, sql, statement)).await?;
        let schema = normalise::schema(logical.schema().as_arrow(), timestamps(&ctx.session));
        let state = planner.state().clone();
        let optimised = match &kept {
            Some(kept) if statement.parameters == 0 => kept.optimised(&state)?,
            _ => state.optimize(&logical)?,
        };
        let physical = state.query_planner().create_physical_plan(&optimised, &state).await?;
        let physical = Arc::new(Mutex::new(Some(physical)));
        Ok(QueryPlan { schema, pins, now: ctx.now, logical, state, physical })
    }

    /// The plan of a query or of a command that only looks.
    async fn planned(&self, ctx: &StatementContext, sql: &str, statement: &Statement) -> Result<Planned> {
        if let Some(rows) = command::rows(ctx, statement).await? {
            let provider = provider_as_source(Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?));
            let logical = LogicalPlanBuilder::scan("result", provider, None)?.build()?;
            return Ok(Planned { logical, kept: None, planner: Planner::new(ctx, vec![])?, pins: vec![] });
        }
        let (planner, pins) = Planner::resolve(ctx, statement).await?;
        let (logical, kept) = match &statement.kind {
            Kind::Query(query) => {
                let kept = planner.kept(sql, query).await?;
                (kept.template.clone(), Some(kept))
            }
            Kind::Explain { analyze, verbose, query } => (planner.statement(explain(*analyze, *verbose, query)).await?, None),
            _ => return Err(Error::Internal("no query and no command".to_owned())),
        };
        Ok(Planned { logical: planner.with_values(logical)?, kept, planner, pins })
    }
}

/// A statement with rows, planned over pinned tables.
struct Planned {
    /// With the parameters' values.
    logical: LogicalPlan,
    /// What it was made from, where that is kept.
    kept: Option<Arc<KeptPlan>>,
    planner: Planner,
    pins: Vec<Pin>,
}

fn timestamps(session: &Session) -> Timestamps {
    session.get("timestamps").map(|v| Timestamps::from_setting(&v)).unwrap_or_default()
}

fn explain(analyze: bool, verbose: bool, query: &ast::Query) -> ast::Statement {
    ast::Statement::Explain {
        describe_alias: ast::DescribeAlias::Explain,
        analyze,
        verbose,
        query_plan: false,
        estimate: false,
        statement: Box::new(ast::Statement::Query(Box::new(query.clone()))),
        format: None,
        options: None,
    }
}

fn class(kind: &Kind) -> StatementClass {
    match kind {
        Kind::Query(_)
        | Kind::Explain { .. }
        | Kind::Describe
        | Kind::DescribeDetail
        | Kind::DescribeHistory { .. }
        | Kind::ShowCatalogs
        | Kind::ShowSchemas { .. }
        | Kind::ShowTables { .. }
        | Kind::ShowViews { .. }
        | Kind::ShowColumns
        | Kind::ShowProperties { .. }
        | Kind::ShowCreateTable
        | Kind::ShowSetting(_) => StatementClass::Query,
        Kind::Restore { .. } | Kind::Optimize { .. } | Kind::Vacuum { .. } => StatementClass::CommandWithRows,
        Kind::Set { .. }
        | Kind::Reset(_)
        | Kind::Use { .. }
        | Kind::CreateTemporaryView { .. }
        | Kind::DropView { .. }
        | Kind::CreateSchema { .. }
        | Kind::DropSchema { .. }
        | Kind::CreateTable(_)
        | Kind::DropTable { .. }
        | Kind::Insert { .. }
        | Kind::Delete { .. }
        | Kind::Update { .. }
        | Kind::Truncate { .. }
        | Kind::Alter { .. } => StatementClass::Update,
    }
}
