//! Planning with pinned tables.
//!
//! DataFusion's planner drops version clauses silently and looks tables up by name at a moment of its own. So it never
//! sees a name: each table occurrence is a placeholder (`"__asof"."<n>"`, see [`crate::statement`]), resolved before planning
//! ([`crate::resolve`]) to a [`Relation`], and a `RelationPlanner` without any I/O puts the relation in its place. Q1: a version clause
//! that still reaches it is an internal error, never ignored.

pub(crate) mod conjunction;
pub(crate) mod guard;
pub(crate) mod kept;
pub(crate) mod meeting;
pub mod missing;
pub mod normalise;
pub mod parameters;
mod relation;
pub(crate) mod types;

use std::sync::{Arc, OnceLock};

use arrow::record_batch::RecordBatch;
use asof_catalog::{Session, Warehouse};
use asof_storage::{Env, Micros};
use datafusion::common::ParamValues;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::Statement as SqlStatement;
use datafusion::sql::sqlparser::ast;
use parking_lot::RwLock;

pub use relation::Relation;

use crate::engine::Pin;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::runtime::Base;
use crate::statement::{PLACEHOLDER_SCHEMA, Statement};

/// What a statement runs in: who, where, when, with which values.
#[derive(Clone, Debug)]
pub struct StatementContext {
    /// The tables.
    pub warehouse: Arc<Warehouse>,
    /// Whose names and settings.
    pub session: Arc<Session>,
    /// Clock, randomness, ids.
    pub env: Env,
    /// The moment `now()` stands for, and against which "in the future" is judged.
    pub now: Micros,
    /// Values of `$1`, `$2` …; `None` while a statement is only described.
    pub parameters: Option<Vec<ScalarValue>>,
    /// Versions that a ticket fixed.
    pub pins: Vec<Pin>,
    /// DataFusion's state with asof's functions and limits.
    pub base: Arc<Base>,
    /// Ends the statement early.
    pub interrupt: Interrupt,
}

/// Plans the queries of one statement over its resolved relations.
#[derive(Debug)]
pub struct Planner {
    state: SessionState,
    relations: Arc<RwLock<Vec<Relation>>>,
    parameters: Option<Vec<ScalarValue>>,
    interrupt: Interrupt,
    base: Arc<Base>,
    /// One for all plans of the statement: they share its memory.
    task: OnceLock<Arc<TaskContext>>,
}

impl Planner {
    /// Over relations in the order of the statement's occurrences.
    ///
    /// # Errors
    /// When a state cannot be made.
    pub fn new(ctx: &StatementContext, relations: Vec<Relation>) -> Result<Self> {
        let relations = Arc::new(RwLock::new(relations));
        let planner = relation::PinnedRelations::new(Arc::clone(&relations));
        let state = ctx.base.statement(&ctx.session.time_zone(), ctx.now, Arc::new(planner))?;
        let (parameters, interrupt) = (ctx.parameters.clone(), ctx.interrupt.clone());
        Ok(Self { state, relations, parameters, interrupt, base: Arc::clone(&ctx.base), task: OnceLock::new() })
    }

    /// Resolve a statement's occurrences and plan over them. The pins are those of all its tables.
    ///
    /// # Errors
    /// Unknown names, versions and moments, and selectors that cannot be evaluated.
    pub async fn resolve(ctx: &StatementContext, statement: &Statement) -> Result<(Self, Vec<Pin>)> {
        let (relations, pins) = crate::resolve::resolve(ctx, &statement.tables).await?;
        Ok((Self::new(ctx, relations)?, pins))
    }

    /// Add a relation; `"__asof"."<returned number>"` stands for it in queries (see [`placeholder`]).
    pub fn bind(&self, relation: Relation) -> usize {
        let mut relations = self.relations.write();
        relations.push(relation);
        relations.len() - 1
    }

    /// The relations, in order.
    #[must_use]
    pub fn relations(&self) -> Vec<Relation> {
        self.relations.read().clone()
    }

    /// DataFusion's state of this statement.
    #[must_use]
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// What execution runs in.
    #[must_use]
    pub fn task(&self) -> Arc<TaskContext> {
        Arc::clone(self.task.get_or_init(|| self.base.task(&self.state)))
    }

    /// Plan a query, without parameters' values put in.
    ///
    /// # Errors
    /// Unknown columns and functions, wrong types.
    pub async fn template(&self, query: &ast::Query) -> Result<LogicalPlan> {
        self.statement(ast::Statement::Query(Box::new(query.clone()))).await
    }

    /// The plan of a text's query, made before or now.
    ///
    /// # Errors
    /// As [`Self::template`].
    pub(crate) async fn kept(&self, text: &str, query: &ast::Query) -> Result<Arc<kept::KeptPlan>> {
        let zone = self.state.config_options().execution.time_zone.as_deref().unwrap_or_default();
        self.base.plans.get(text, zone, &self.relations(), self.template(query)).await
    }

    /// Plan a query with the parameters' values.
    ///
    /// # Errors
    /// As [`Self::template`], and a parameter that has no value.
    pub async fn logical(&self, query: &ast::Query) -> Result<LogicalPlan> {
        let plan = self.template(query).await?;
        self.with_values(plan)
    }

    /// Plan a statement of DataFusion's (EXPLAIN).
    ///
    /// # Errors
    /// As [`Self::template`].
    pub async fn statement(&self, statement: ast::Statement) -> Result<LogicalPlan> {
        let mut statement = statement;
        crate::statement::columns::fold_each(&mut statement, &self.known_columns());
        crate::statement::names::distinguish(&mut statement);
        crate::statement::values::alike(&mut statement);
        match self.state.statement_to_plan(SqlStatement::Statement(Box::new(statement))).await {
            // Now, and not only when it is optimised: the schema that is told of a plan must be the one it has.
            Ok(plan) => Ok(self.base.meeting.analyze(plan, self.state.config_options())?),
            Err(error) => Err(missing::explain(error, &self.relations()).await),
        }
    }

    /// Put the parameters' values into a plan.
    ///
    /// # Errors
    /// A parameter without a value.
    pub fn with_values(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        match &self.parameters {
            Some(values) if !values.is_empty() => {
                let values = values.iter().cloned().map(Into::into).collect();
                Ok(plan.with_param_values(ParamValues::List(values))?)
            }
            _ => Ok(plan),
        }
    }

    /// Optimise and make executable, until the statement is interrupted.
    ///
    /// # Errors
    /// Type errors, and files that are gone.
    pub async fn physical(&self, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(guard::guarded(self.state.create_physical_plan(plan).await?, &self.interrupt)?)
    }

    /// Plan, run and collect a (small) query.
    ///
    /// # Errors
    /// As planning; and what execution gives.
    pub async fn collect(&self, query: &ast::Query) -> Result<Vec<RecordBatch>> {
        let plan = self.logical(query).await?;
        let plan = self.physical(&plan).await?;
        Ok(datafusion::physical_plan::collect(plan, self.task()).await?)
    }

    /// Start an optimised plan: a stream for each of its partitions.
    ///
    /// # Errors
    /// As [`Self::physical`].
    pub(crate) async fn streams(&self, optimised: &LogicalPlan) -> Result<Vec<SendableRecordBatchStream>> {
        let plan = self.state.query_planner().create_physical_plan(optimised, &self.state).await?;
        Ok(execute_stream_partitioned(guard::guarded(plan, &self.interrupt)?, self.task())?)
    }

    fn known_columns(&self) -> Vec<Vec<String>> {
        self.relations.read().iter().map(Relation::columns).collect()
    }
}

/// The table factor that stands for occurrence `number`, under an alias if one is given.
#[must_use]
pub fn placeholder(number: usize, alias: Option<&str>) -> ast::TableFactor {
    ast::TableFactor::Table {
        name: ast::ObjectName::from(vec![ast::Ident::with_quote('"', PLACEHOLDER_SCHEMA), ast::Ident::with_quote('"', number.to_string())]),
        alias: alias.map(|alias| ast::TableAlias { explicit: true, name: ast::Ident::with_quote('"', alias), columns: vec![], at: None }),
        args: None,
        with_hints: vec![],
        version: None,
        with_ordinality: false,
        partitions: vec![],
        json_path: None,
        sample: None,
        index_hints: vec![],
    }
}
