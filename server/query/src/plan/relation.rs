//! What a table occurrence became, and the planner extension that puts it in its place.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{DataFusionError, TableReference, internal_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{ObjectName, TableFactor};
use parking_lot::RwLock;

use crate::scan::PinnedTable;
use crate::statement::PLACEHOLDER_SCHEMA;

/// A resolved table occurrence.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table at one version, under its full name.
    Table {
        /// Its name, for qualified columns.
        name: TableReference,
        /// The table.
        table: Arc<PinnedTable>,
    },
    /// A view: its own plan, over its own pinned tables.
    View {
        /// Its name.
        name: TableReference,
        /// Its query, planned.
        plan: LogicalPlan,
    },
    /// Rows made by the server: `information_schema`, metadata tables.
    Rows {
        /// Its name.
        name: TableReference,
        /// The rows.
        rows: Arc<dyn TableProvider>,
    },
}

impl Relation {
    /// Its columns.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        match self {
            Self::Table { table, .. } => TableProvider::schema(table.as_ref()),
            Self::View { plan, .. } => Arc::clone(plan.schema().inner()),
            Self::Rows { rows, .. } => rows.schema(),
        }
    }

    /// Names of its columns.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        self.schema().fields().iter().map(|f| f.name().clone()).collect()
    }

    fn plan(&self) -> datafusion::common::Result<LogicalPlan> {
        match self {
            Self::Table { name, table } => {
                // DataFusion takes scans of one name for one scan, whatever their source, and computes equal subqueries once. So a scan
                // is named with its version, and an alias gives columns the table's own name.
                let pinned = TableReference::bare(format!("{name}@v{}", table.snapshot.version));
                let source = provider_as_source(Arc::clone(table) as Arc<dyn TableProvider>);
                LogicalPlanBuilder::scan(pinned, source, None)?.alias(name.clone())?.build()
            }
            Self::View { name, plan } => LogicalPlanBuilder::from(plan.clone()).alias(name.clone())?.build(),
            Self::Rows { name, rows } => LogicalPlanBuilder::scan(name.clone(), provider_as_source(Arc::clone(rows)), None)?.build(),
        }
    }
}

/// Reads relations only; does no I/O (it is synchronous).
#[derive(Debug)]
pub(super) struct PinnedRelations {
    relations: Arc<RwLock<Vec<Relation>>>,
}

impl PinnedRelations {
    pub(super) fn new(relations: Arc<RwLock<Vec<Relation>>>) -> Self {
        Self { relations }
    }
}

fn occurrence(name: &ObjectName) -> Option<usize> {
    let [schema, number] = name.0.as_slice() else { return None };
    if schema.as_ident()?.value != PLACEHOLDER_SCHEMA {
        return None;
    }
    number.as_ident()?.value.parse().ok()
}

impl RelationPlanner for PinnedRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _context: &mut dyn RelationPlannerContext,
    ) -> datafusion::common::Result<RelationPlanning> {
        let TableFactor::Table { name, alias, version, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if version.is_some() {
            return internal_err!("a version clause of {name} reached planning");
        }
        let Some(number) = occurrence(name) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let plan = self
            .relations
            .read()
            .get(number)
            .ok_or_else(|| DataFusionError::Internal(format!("no relation for occurrence {number}")))?
            .plan()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}
