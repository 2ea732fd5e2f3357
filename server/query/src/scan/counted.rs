//! Rows of no columns, from the index alone.
//!
//! `SELECT count(*)`, `EXISTS` and a cross join that only counts want rows and none of their columns. How many there are, the log says
//! where it counts each file's rows: no file is opened, nor even listed, however many there are.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties};
use futures::stream;

use super::considered::Considered;

/// So many rows without columns.
#[derive(Debug)]
pub(super) struct CountedExec {
    rows: usize,
    considered: Considered,
    properties: Arc<PlanProperties>,
}

impl CountedExec {
    pub(super) fn new(rows: usize, considered: Considered) -> Self {
        let equivalences = EquivalenceProperties::new(Arc::new(Schema::empty()));
        let properties =
            PlanProperties::new(equivalences, Partitioning::UnknownPartitioning(1), EmissionType::Incremental, Boundedness::Bounded);
        Self { rows, considered, properties: Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative)) }
    }
}

impl DisplayAs for CountedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountedExec: rows={}, from the index, {}", self.rows, self.considered)
    }
}

impl ExecutionPlan for CountedExec {
    fn name(&self) -> &'static str {
        "CountedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(&self, _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("counted rows have no input") }
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (rows, most) = (self.rows, context.session_config().batch_size().max(1));
        let schema = self.schema();
        let batch = move |first: usize| {
            let options = RecordBatchOptions::new().with_row_count(Some(most.min(rows - first)));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options)?)
        };
        let batches = stream::iter((0..rows).step_by(most).map(batch));
        Ok(Box::pin(cooperative(RecordBatchStreamAdapter::new(self.schema(), batches))))
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::default().with_num_rows(Precision::Exact(self.rows)).with_total_byte_size(Precision::Exact(0))))
    }
}
