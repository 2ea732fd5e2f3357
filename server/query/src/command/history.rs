//! DESCRIBE HISTORY t [LIMIT n]: Delta's fifteen columns, and whether each version can still be read. Newest first.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, MapBuilder, MapFieldNames, RecordBatch, StringArray, StringBuilder, StructArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Fields};
use asof_storage::{Commit, HistoryRange};

use crate::error::{Error, Result};
use crate::plan::StatementContext;
use crate::statement::Statement;

/// Fields of the column `job`, as Delta names them.
const JOB: [&str; 6] = ["jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType"];
const NOTEBOOK: [&str; 1] = ["notebookId"];

type Texts = BTreeMap<String, Option<String>>;

pub(super) async fn rows(ctx: &StatementContext, statement: &Statement, limit: Option<usize>) -> Result<RecordBatch> {
    let Some(occurrence) = statement.tables.first() else {
        return Err(Error::Internal("DESCRIBE HISTORY without a table".to_owned()));
    };
    if occurrence.selector.is_some() {
        let message = "DESCRIBE HISTORY takes no selector: it shows every version; use LIMIT, or query it for one".to_owned();
        return Err(Error::Invalid { message, location: Some(occurrence.location) });
    }
    let table = crate::resolve::table(ctx, &occurrence.target).await?;
    batch(&table.history(HistoryRange { limit }).await?)
}

/// Commits as rows.
pub(crate) fn batch(commits: &[Commit]) -> Result<RecordBatch> {
    let text =
        |get: fn(&Commit) -> &Option<String>| Arc::new(commits.iter().map(|c| get(c).as_deref()).collect::<StringArray>()) as ArrayRef;
    let timestamps: TimestampMicrosecondArray = commits.iter().map(|c| Some(c.timestamp.0)).collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("version", Arc::new(commits.iter().map(|c| Some(c.version)).collect::<Int64Array>()), true),
        ("timestamp", Arc::new(timestamps.with_timezone("UTC")), true),
        ("userId", text(|c| &c.user_id), true),
        ("userName", text(|c| &c.user_name), true),
        ("operation", text(|c| &c.operation), true),
        ("operationParameters", map(commits.iter().map(|c| c.operation_parameters.as_ref()))?, true),
        ("job", structure(&JOB, &commits.iter().map(|c| c.job.as_ref()).collect::<Vec<_>>())?, true),
        ("notebook", structure(&NOTEBOOK, &commits.iter().map(|c| c.notebook.as_ref()).collect::<Vec<_>>())?, true),
        ("clusterId", text(|c| &c.cluster_id), true),
        ("readVersion", Arc::new(commits.iter().map(|c| c.read_version).collect::<Int64Array>()), true),
        ("isolationLevel", text(|c| &c.isolation_level), true),
        ("isBlindAppend", Arc::new(commits.iter().map(|c| c.is_blind_append).collect::<BooleanArray>()), true),
        ("operationMetrics", map(commits.iter().map(|c| c.operation_metrics.as_ref()))?, true),
        ("userMetadata", text(|c| &c.user_metadata), true),
        ("engineInfo", text(|c| &c.engine_info), true),
        ("readable", Arc::new(commits.iter().map(|c| Some(c.readable)).collect::<BooleanArray>()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(internal)
}

/// A column of maps from text to text.
pub(crate) fn map<'a>(rows: impl Iterator<Item = Option<&'a Texts>>) -> Result<ArrayRef> {
    let names = MapFieldNames { entry: "entries".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    let mut builder = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for row in rows {
        for (key, value) in row.into_iter().flatten() {
            builder.keys().append_value(key);
            builder.values().append_option(value.as_deref());
        }
        builder.append(row.is_some()).map_err(internal)?;
    }
    Ok(Arc::new(builder.finish()))
}

fn structure(names: &[&str], rows: &[Option<&Texts>]) -> Result<ArrayRef> {
    let fields: Fields = names.iter().map(|n| Field::new(*n, DataType::Utf8, true)).collect();
    let column = |name: &&str| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row.and_then(|r| r.get(*name)).and_then(|v| v.as_deref())).collect::<StringArray>())
    };
    let valid = rows.iter().map(Option::is_some).collect::<Vec<_>>();
    let array = StructArray::try_new(fields, names.iter().map(column).collect(), Some(valid.into())).map_err(internal)?;
    Ok(Arc::new(array))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn internal(error: arrow::error::ArrowError) -> Error {
    Error::Internal(error.to_string())
}
