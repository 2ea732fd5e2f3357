//! Operators that may work for long without giving way.
//!
//! DataFusion's leaves give way to other tasks now and then; an operator that makes more rows than it reads (a join, an unnest) does not
//! get to a leaf for as long as that takes, and a join whose filter lets nothing pass does not even return from one poll. On a runtime of
//! few threads one such statement holds up all others, and nothing stops it: an abortion takes effect between polls.
//!
//! [`guarded`] puts a `CooperativeExec` over operators of the first kind, and into the filters of joins a look at the statement's
//! [`Interrupt`]; after [`BREATH`] in one place the filter also hands its worker's queue to another thread. F2 rests on this.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow::datatypes::{DataType, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, HashJoinExecBuilder, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec,
};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::interrupt::Interrupt;

/// How long a filter computes before it lets others use its worker: what a short statement waits at most for a long one.
const BREATH: Duration = Duration::from_millis(20);

/// What another thread needs to take a queue over; when it has, the filter computes on beside it.
const HANDOVER: Duration = Duration::from_micros(100);

/// The plan, with operators that give way and filters that end when interrupted. For execution only: nothing optimises it after.
pub(crate) fn guarded(plan: Arc<dyn ExecutionPlan>, interrupt: &Interrupt) -> Result<Arc<dyn ExecutionPlan>> {
    let guarded = plan.transform_up(|node| {
        let Some(node) = multiplying(&node, interrupt)? else { return Ok(Transformed::no(node)) };
        Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>))
    });
    Ok(guarded?.data)
}

/// An operator that may make many rows of one, with its filter guarded.
fn multiplying(node: &Arc<dyn ExecutionPlan>, interrupt: &Interrupt) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let filter = join.filter().map(|filter| Guard::over(filter, interrupt));
        return Ok(Some(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let filter = join.filter().map(|filter| Guard::over(filter, interrupt));
        return Ok(Some(HashJoinExecBuilder::from(join).with_filter(filter).build_exec()?));
    }
    let multiplies =
        node.is::<CrossJoinExec>() || node.is::<SortMergeJoinExec>() || node.is::<UnnestExec>() || node.is::<RecursiveQueryExec>();
    Ok(multiplies.then(|| Arc::clone(node)))
}

/// A filter that looks up from its work.
#[derive(Debug)]
struct Guard {
    filter: Arc<dyn PhysicalExpr>,
    interrupt: Interrupt,
    breathing: Arc<Breathing>,
}

impl Guard {
    fn over(filter: &JoinFilter, interrupt: &Interrupt) -> JoinFilter {
        let guard = Self { filter: Arc::clone(filter.expression()), interrupt: interrupt.clone(), breathing: Arc::default() };
        JoinFilter::new(Arc::new(guard), filter.column_indices().to_vec(), Arc::clone(filter.schema()))
    }
}

impl PhysicalExpr for Guard {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.filter.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.filter.nullable(schema)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.filter.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.interrupt.check().map_err(|e| DataFusionError::External(Box::new(e)))?;
        self.breathing.breathe();
        self.filter.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.filter]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let filter = children.pop().unwrap_or_else(|| Arc::clone(&self.filter));
        Ok(Arc::new(Self { filter, interrupt: self.interrupt.clone(), breathing: Arc::clone(&self.breathing) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_sql(f)
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl PartialEq for Guard {
    fn eq(&self, other: &Self) -> bool {
        self.filter.eq(&other.filter) && self.interrupt.is(&other.interrupt)
    }
}

impl Eq for Guard {}

impl Hash for Guard {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}

/// When a filter last let others run, over all its partitions.
#[derive(Debug)]
struct Breathing {
    start: Instant,
    /// Microseconds after `start`.
    last: AtomicU64,
}

impl Default for Breathing {
    fn default() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl Breathing {
    /// Gives this worker's queue away if it is time: `block_in_place` offers it to another thread, and takes it back when nobody came.
    fn breathe(&self) {
        let now = self.start.elapsed();
        let last = Duration::from_micros(self.last.load(Ordering::Relaxed));
        if now.saturating_sub(last) < BREATH {
            return;
        }
        self.last.store(u64::try_from(now.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        // A runtime of one thread has nobody to give it to.
        if Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
            tokio::task::block_in_place(|| std::thread::sleep(HANDOVER));
        }
    }
}
