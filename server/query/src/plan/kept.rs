//! Plans that are kept, for texts that come again: a prepared statement is planned when it is prepared and each time it is executed, and
//! tools send the same text over and over.
//!
//! A text's plan depends on what its tables are (their versions, their columns), on the session's time zone, and on nothing else: names
//! are resolved each time, before. So a plan is found by text, zone and versions, and taken if it is over the very same snapshots and
//! indexes. Statements over views and over rows made by the server (`information_schema`, metadata tables) are planned each time.
//!
//! Two stages are kept: the plan as its text says, in which parameters have no values yet; and, once it has been run, the same optimised, if
//! it has neither parameters nor functions whose value depends on the statement (`now()`). Physical plans are not: they keep state of
//! their run.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use asof_storage::{FileIndex, Snapshot};
use datafusion::common::TableReference;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use moka::sync::Cache;

use super::Relation;
use crate::error::Result;
use crate::scan::PinnedTable;

/// Plans kept at most. Each keeps its tables' indexes in memory too.
const PLANS: u64 = 256;
/// How long a plan is kept after its last use.
const IDLE: Duration = Duration::from_secs(60);
/// Bytes of a text up to which its plan is kept.
const TEXT: usize = 64 << 10;

/// Plans of one engine.
#[derive(Debug)]
pub(crate) struct KeptPlans {
    plans: Cache<Key, Arc<KeptPlan>>,
}

/// What a plan is found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    text: String,
    zone: String,
    tables: Vec<(TableReference, i64)>,
}

/// A plan, and what it is over.
#[derive(Debug)]
pub(crate) struct KeptPlan {
    over: Vec<(Arc<Snapshot>, Arc<FileIndex>)>,
    /// As the text says, without parameters' values.
    pub template: LogicalPlan,
    is_fixed: bool,
    optimised: OnceLock<LogicalPlan>,
}

impl KeptPlan {
    fn new(template: LogicalPlan, relations: &[Relation]) -> Result<Self> {
        let is_fixed = is_fixed(&template)?;
        let over = relations.iter().filter_map(pinned).map(|t| (Arc::clone(&t.snapshot), Arc::clone(&t.index))).collect();
        Ok(Self { over, template, is_fixed, optimised: OnceLock::new() })
    }

    fn is_over(&self, relations: &[Relation]) -> bool {
        let same = |((snapshot, index), relation): (&(Arc<Snapshot>, Arc<FileIndex>), &Relation)| {
            pinned(relation).is_some_and(|t| Arc::ptr_eq(snapshot, &t.snapshot) && Arc::ptr_eq(index, &t.index))
        };
        self.over.len() == relations.len() && self.over.iter().zip(relations).all(same)
    }

    /// Optimised, of a statement that has no parameters.
    ///
    /// # Errors
    /// What optimising finds.
    pub(crate) fn optimised(&self, state: &SessionState) -> Result<LogicalPlan> {
        if let Some(plan) = self.optimised.get() {
            return Ok(plan.clone());
        }
        let plan = state.optimize(&self.template)?;
        if self.is_fixed {
            let _ = self.optimised.set(plan.clone()); // or another run was faster: the same plan
        }
        Ok(plan)
    }
}

impl KeptPlans {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { plans: Cache::builder().max_capacity(PLANS).time_to_idle(IDLE).build() }
    }

    /// The plan of a text over these relations: kept, or made by `plan` and kept.
    ///
    /// # Errors
    /// What `plan` gives.
    pub(crate) async fn get(
        &self,
        text: &str,
        zone: &str,
        relations: &[Relation],
        plan: impl Future<Output = Result<LogicalPlan>>,
    ) -> Result<Arc<KeptPlan>> {
        let key = Key::new(text, zone, relations);
        if let Some(kept) = key.as_ref().and_then(|key| self.plans.get(key)).filter(|kept| kept.is_over(relations)) {
            return Ok(kept);
        }
        let made = Arc::new(KeptPlan::new(plan.await?, relations)?);
        if let Some(key) = key {
            self.plans.insert(key, Arc::clone(&made));
        }
        Ok(made)
    }
}

impl Key {
    /// `None` for a statement whose plan is not kept.
    fn new(text: &str, zone: &str, relations: &[Relation]) -> Option<Self> {
        let table = |relation: &Relation| match relation {
            Relation::Table { name, table } => Some((name.clone(), table.snapshot.version)),
            Relation::View { .. } | Relation::Rows { .. } => None,
        };
        let tables = relations.iter().map(table).collect::<Option<Vec<_>>>().filter(|_| text.len() <= TEXT)?;
        Some(Self { text: text.to_owned(), zone: zone.to_owned(), tables })
    }
}

fn pinned(relation: &Relation) -> Option<&PinnedTable> {
    match relation {
        Relation::Table { table, .. } => Some(table),
        Relation::View { .. } | Relation::Rows { .. } => None,
    }
}

/// Whether a plan means the same each time it is run, so that it may be kept when it is optimised: without parameters, and without
/// functions that have another value in each statement. (A volatile function, such as `random()`, is never computed ahead.)
fn is_fixed(plan: &LogicalPlan) -> Result<bool> {
    let mut fixed = true;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                fixed &= match expr {
                    Expr::Placeholder(_) => false,
                    Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Stable,
                    _ => true,
                };
                Ok(if fixed { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })
    })?;
    Ok(fixed)
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn a_text_is_planned_once_for_each_zone() {
        let plans = KeptPlans::new();
        let planned = std::cell::Cell::new(0);
        let ask = async |text: &str, zone: &str| {
            let plan = async {
                planned.set(planned.get() + 1);
                Ok(SessionContext::new().state().create_logical_plan("SELECT 1").await?)
            };
            plans.get(text, zone, &[], plan).await.unwrap();
            planned.get()
        };
        assert_eq!(ask("SELECT 1", "UTC").await, 1);
        assert_eq!(ask("SELECT 1", "UTC").await, 1);
        assert_eq!(ask("SELECT 1", "Asia/Tokyo").await, 2);
        assert_eq!(ask("SELECT 2", "UTC").await, 3);
        let long = format!("SELECT {}", "1 + ".repeat(TEXT));
        assert_eq!(ask(&long, "UTC").await, 4);
        assert_eq!(ask(&long, "UTC").await, 5);
    }

    #[tokio::test]
    async fn what_depends_on_the_statement_is_optimised_each_time() {
        async fn check(sql: &str, expect: bool) {
            let plan = SessionContext::new().state().create_logical_plan(sql).await.unwrap();
            assert_eq!(is_fixed(&plan).unwrap(), expect, "{sql}");
        }
        check("SELECT upper('a') || 'b', random() FROM (VALUES (1)) t(a) WHERE a > 1", true).await;
        check("SELECT now()", false).await;
        check("SELECT a FROM (VALUES (1)) t(a) WHERE a = $1", false).await;
        check("SELECT a FROM (VALUES (1)) t(a) WHERE EXISTS (SELECT 1 WHERE current_date() > DATE '2020-01-01')", false).await;
        check("SELECT a + (SELECT count(*) FROM (SELECT now())) FROM (VALUES (1)) t(a)", false).await;
    }
}
