//! VACUUM: files that left the table long ago are deleted for good, and with them the versions that hold them.
//!
//! What is garbage is storage's to say. A retention shorter than the table's own is refused unless the session says that it is meant, for a
//! query or a commit under way may need what it would delete. Two commits tell the history when it started and how it ended; they change nothing
//! else.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use asof_storage::{Change, CommitOutcome, Micros, ReadSet};
use object_store::ObjectMeta;

use super::{Base, invalid, operation};
use crate::engine::Outcome;
use crate::error::{Error, Result};
use crate::plan::StatementContext;
use crate::statement::TableTarget;

/// How long files are kept unless the table says otherwise, ms: a week.
const WEEK: i64 = 7 * 24 * HOUR;
const HOUR: i64 = 3_600_000;
/// Table property: how long files are kept after they left.
const RETENTION: &str = "delta.deletedFileRetentionDuration";
/// Session setting, as users of Spark know it: is a short retention refused?
const CHECK: &str = "spark.databricks.delta.retentiondurationcheck.enabled";
/// Files that a dry run names at most.
const MOST_NAMED: usize = 1000;

/// What the statement says.
pub(super) struct Vacuum<'a> {
    pub target: &'a TableTarget,
    pub retain_hours: Option<f64>,
    pub dry_run: bool,
}

/// Schema of the rows: the table and what was deleted; of a dry run, the files that would be.
#[must_use]
pub fn result_schema(dry_run: bool) -> SchemaRef {
    let numbers: &[&str] = if dry_run { &["size"] } else { &["num_deleted_files", "deleted_bytes"] };
    let numbers = numbers.iter().map(|name| Field::new(*name, DataType::Int64, true));
    Arc::new(Schema::new(std::iter::once(Field::new("path", DataType::Utf8, true)).chain(numbers).collect::<Vec<_>>()))
}

pub(super) async fn run(ctx: &StatementContext, vacuum: &Vacuum<'_>) -> Result<Outcome> {
    let base = Base::resolve(ctx, vacuum.target).await?;
    let own = retention(&base)?;
    // Hours and fractions of them, far below what a double counts exactly.
    #[allow(clippy::cast_possible_truncation)]
    let retained = vacuum.retain_hours.map_or(own, |hours| (hours * HOUR as f64) as i64);
    let checked = !ctx.session.get(CHECK).is_ok_and(|value| value.eq_ignore_ascii_case("false"));
    if checked && retained < own {
        return Err(invalid(format!(
            "VACUUM with RETAIN {} HOURS is shorter than the {} hours that table {} keeps files for ({RETENTION}): versions and queries that need \
             them would be lost; SET spark.databricks.delta.retentionDurationCheck.enabled = false says that it is meant",
            retained / HOUR,
            own / HOUR,
            base.table.name()
        )));
    }
    let horizon = Micros(ctx.env.clock.now().0.saturating_sub(retained.saturating_mul(1000)));
    let garbage = base.table.garbage(&base.snapshot, horizon, &[]).await?;
    if vacuum.dry_run {
        return named(&base, &garbage);
    }
    let bytes = garbage.iter().map(|object| i64::try_from(object.size).unwrap_or(0)).sum::<i64>();
    let count = i64::try_from(garbage.len()).unwrap_or(i64::MAX);
    let started = [("retentionCheckEnabled", Some(checked.to_string())), ("defaultRetentionMillis", Some(own.to_string()))];
    let specified = vacuum.retain_hours.map(|_| ("specifiedRetentionMillis", Some(retained.to_string())));
    let started: Vec<_> = started.into_iter().chain(specified).collect();
    tell(ctx, &base, "VACUUM START", &started, &[("numFilesToDelete", count), ("sizeOfDataToDelete", bytes)]).await?;
    let folders: HashSet<&str> = garbage.iter().filter_map(|object| Some(object.location.as_ref().rsplit_once('/')?.0)).collect();
    let folders = i64::try_from(folders.len()).unwrap_or(i64::MAX);
    let deleted = base.table.delete(garbage.iter().map(|object| object.location.clone()).collect()).await;
    let status = if deleted.is_ok() { "COMPLETED" } else { "FAILED" };
    let gone = deleted.as_ref().map_or(0, |n| i64::try_from(*n).unwrap_or(i64::MAX));
    let metrics = [("numDeletedFiles", gone), ("numVacuumedDirectories", folders)];
    tell(ctx, &base, "VACUUM END", &[("status", Some(status.to_owned()))], &metrics).await?;
    deleted?;
    let path: ArrayRef = Arc::new(StringArray::from(vec![base.table.id().location().as_str()]));
    let number = |n: i64| Arc::new(Int64Array::from(vec![n])) as ArrayRef;
    rows(false, vec![path, number(gone), number(bytes)])
}

fn rows(dry_run: bool, columns: Vec<ArrayRef>) -> Result<Outcome> {
    let schema = result_schema(dry_run);
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(Outcome { count: None, rows: Some((schema, vec![batch])) })
}

fn named(base: &Base, garbage: &[ObjectMeta]) -> Result<Outcome> {
    let mut shown: Vec<_> = garbage.iter().map(|object| (base.table.store().shown(&object.location), object.size)).collect();
    shown.sort();
    shown.truncate(MOST_NAMED);
    let paths: StringArray = shown.iter().map(|(path, _)| Some(path.as_str())).collect();
    let sizes: Int64Array = shown.iter().map(|(_, size)| i64::try_from(*size).ok()).collect();
    rows(true, vec![Arc::new(paths), Arc::new(sizes)])
}

/// A commit that changes nothing.
async fn tell(
    ctx: &StatementContext,
    base: &Base,
    name: &str,
    parameters: &[(&str, Option<String>)],
    metrics: &[(&str, i64)],
) -> Result<()> {
    let change =
        Change { operation: operation(ctx, name, parameters, metrics), reads: ReadSet::Nothing, data_change: false, ..Change::default() };
    match base.table.commit(Some(&base.snapshot), change).await? {
        CommitOutcome::Committed { .. } => Ok(()),
        CommitOutcome::Conflict(conflict) => Err(super::lost(&conflict)),
    }
}

/// How long the table keeps files, ms.
fn retention(base: &Base) -> Result<i64> {
    let Some(text) = base.snapshot.properties.get(RETENTION) else { return Ok(WEEK) };
    interval(text).ok_or_else(|| invalid(format!("{RETENTION} of table {} is {text:?}, which is no interval", base.table.name())))
}

/// `interval 1 week`, `interval 30 days 12 hours`, `168 hours` in milliseconds.
fn interval(text: &str) -> Option<i64> {
    let lower = text.trim().to_ascii_lowercase();
    let mut words = lower.strip_prefix("interval").unwrap_or(&lower).split_whitespace();
    let mut total = 0_i64;
    let mut any = false;
    while let Some(number) = words.next() {
        let number: i64 = number.parse().ok()?;
        let unit = match words.next()?.trim_end_matches('s') {
            "week" => 7 * 24 * HOUR,
            "day" => 24 * HOUR,
            "hour" => HOUR,
            "minute" => 60_000,
            "second" => 1000,
            "millisecond" => 1,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        any = true;
    }
    (any && total >= 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        let check = |text: &str, expect: Option<i64>| assert_eq!(interval(text), expect, "{text}");
        check("interval 1 week", Some(WEEK));
        check("interval 7 days", Some(WEEK));
        check("168 hours", Some(WEEK));
        check("INTERVAL 1 day 2 HOURS", Some(26 * HOUR));
        check("interval 0 hours", Some(0));
        check("interval", None);
        check("", None);
        check("interval -1 days", None);
        check("a week", None);
        check("interval 1 month", None);
    }
}
