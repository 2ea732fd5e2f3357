//! RESTORE TABLE.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use asof_storage::{Change, SnapshotSelector};

use super::{Attempt, Base, commit, operation};
use crate::engine::Outcome;
use crate::error::{Error, Location, Result};
use crate::plan::StatementContext;
use crate::resolve;
use crate::statement::{Selector, Statement, TableTarget};
use crate::write::Staged;

/// Column of the result, and the metric's name in the log.
const METRICS: [(&str, &str); 6] = [
    ("table_size_after_restore", "tableSizeAfterRestore"),
    ("num_of_files_after_restore", "numOfFilesAfterRestore"),
    ("num_removed_files", "numRemovedFiles"),
    ("num_restored_files", "numRestoredFiles"),
    ("removed_files_size", "removedFilesSize"),
    ("restored_files_size", "restoredFilesSize"),
];

/// Schema of the row that a RESTORE gives.
#[must_use]
pub fn result_schema() -> SchemaRef {
    Arc::new(Schema::new(METRICS.map(|(column, _)| Field::new(column, DataType::Int64, true)).to_vec()))
}

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, target: &TableTarget, to: &Selector) -> Result<Attempt> {
    let base = Base::resolve(ctx, target).await?;
    let (relations, _) = resolve::resolve(ctx, &statement.tables).await?;
    let relations: Vec<_> = relations.into_iter().map(Some).collect();
    let selector = resolve::evaluate(ctx, to, &relations, Location { line: 1, column: 1 }).await?;
    let to = base.table.resolve(&selector).await?;
    let mut change = base.table.restore(&base.snapshot, &to).await?;
    let (version, timestamp) = match &selector {
        SnapshotSelector::Timestamp(at) => (None, Some(java_timestamp(at.0))),
        _ => (Some(to.version.to_string()), None),
    };
    let described = operation(ctx, "RESTORE", &[("version", version), ("timestamp", timestamp)], &[]);
    let metrics = std::mem::take(&mut change.operation.metrics);
    change.operation = asof_storage::Operation { metrics, ..described };
    let outcome = Outcome { count: None, rows: Some((result_schema(), vec![row(&change)?])) };
    commit(base.table.as_ref(), Some(&base.snapshot), change, Staged::none(), outcome).await
}

fn row(change: &Change) -> Result<RecordBatch> {
    let value = |metric: &str| change.operation.metrics.get(metric).and_then(|value| value.parse::<i64>().ok());
    let columns = METRICS.map(|(_, metric)| Arc::new(Int64Array::from(vec![value(metric)])) as ArrayRef).to_vec();
    RecordBatch::try_new(result_schema(), columns).map_err(|e| Error::Internal(e.to_string()))
}

/// As Java prints a timestamp: `2024-06-26 12:34:45.0`, with as many decimals as needed and at least one.
fn java_timestamp(micros: i64) -> String {
    let Some(time) = chrono::DateTime::from_timestamp_micros(micros) else { return micros.to_string() };
    let decimals = format!("{:06}", time.timestamp_subsec_micros());
    let decimals = decimals.trim_end_matches('0');
    format!("{}.{}", time.format("%Y-%m-%d %H:%M:%S"), if decimals.is_empty() { "0" } else { decimals })
}

#[cfg(test)]
mod tests {
    use super::java_timestamp;

    #[test]
    fn timestamps_as_java_prints_them() {
        let check = |micros: i64, expect: &str| assert_eq!(java_timestamp(micros), expect);
        check(1_719_405_285_000_000, "2024-06-26 12:34:45.0");
        check(1_719_405_285_120_000, "2024-06-26 12:34:45.12");
    }
}
