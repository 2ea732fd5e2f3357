//! Statements that change tables: each becomes one [`Change`] and one commit.
//!
//! An attempt plans on a pinned base (the target's newest version), stages data files, and commits. When the commit loses against
//! another one in a way that storage cannot rebase, the whole statement is run again from the new head, a bounded number of times with
//! growing, jittered pauses. Staged files of a lost or failed attempt are removed; those of an attempt whose outcome is unknown stay,
//! for a commit may name them.

mod alter;
mod columns;
mod create;
mod delete;
mod drop;
mod feed;
mod fields;
mod insert;
mod losses;
mod nested;
mod optimize;
mod parameters;
mod properties;
mod restore;
mod select;
mod touched;
mod truncate;
mod update;
mod vacuum;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use asof_storage::snapshot::SnapshotSelector;
use asof_storage::transaction::Conflict;
use asof_storage::{Change, CommitOutcome, DataFile, FileIndex, Operation, Snapshot, TableFormat};
use datafusion::common::TableReference;

use crate::engine::{Outcome, Pin};
use crate::error::{Error, Result};
use crate::plan::{Planner, Relation, StatementContext};
use crate::resolve;
use crate::scan::PinnedTable;
use crate::statement::{Kind, Statement, TableTarget};
use crate::write::{Staged, Target};

pub use parameters::parameters;

/// How often a statement is run again after a conflict.
const RERUNS: u32 = 8;
/// The first pause before running again; it doubles each time.
const PAUSE: Duration = Duration::from_millis(20);

/// Run a statement that changes tables, once: CREATE TABLE, INSERT, DELETE, UPDATE, TRUNCATE, ALTER TABLE, DROP TABLE, OPTIMIZE, VACUUM, RESTORE.
///
/// # Errors
/// Whatever planning, constraints and execution give; `Conflict` when running again did not help either. Unless the error is
/// `UnknownOutcome`, nothing was changed.
pub async fn run(ctx: &StatementContext, statement: &Statement) -> Result<Outcome> {
    let mut reruns = 0;
    loop {
        match attempt(ctx, statement).await? {
            Attempt::Done(outcome) => return Ok(outcome),
            Attempt::Lost(conflict) if reruns < RERUNS => {
                tracing::debug!(with = conflict.with, detail = %conflict.detail, reruns, "conflict, running again");
                pause(ctx, reruns).await;
                reruns += 1;
            }
            Attempt::Lost(conflict) => return Err(lost(&conflict)),
        }
    }
}

/// Schema of the rows that a statement gives, beside what it changes.
#[must_use]
pub fn result_schema(kind: &Kind) -> SchemaRef {
    match kind {
        Kind::Optimize { .. } => optimize::result_schema(),
        Kind::Vacuum { dry_run, .. } => vacuum::result_schema(*dry_run),
        _ => restore::result_schema(),
    }
}

/// How one attempt ended.
enum Attempt {
    Done(Outcome),
    Lost(Conflict),
}

async fn attempt(ctx: &StatementContext, statement: &Statement) -> Result<Attempt> {
    match &statement.kind {
        Kind::CreateTable(create) => create::attempt(ctx, statement, create).await,
        Kind::DropTable { target, if_exists } => drop::run(ctx, target, *if_exists).await.map(Attempt::Done),
        Kind::Insert { target, columns, source, mode } => {
            Box::pin(insert::attempt(ctx, statement, &insert::Insert { target, columns, source, mode })).await
        }
        Kind::Delete { target, alias, predicate } => {
            delete::attempt(ctx, statement, &Rows { target, alias: alias.as_deref(), predicate: predicate.as_ref() }).await
        }
        Kind::Update { target, alias, assignments, predicate } => {
            let rows = Rows { target, alias: alias.as_deref(), predicate: predicate.as_ref() };
            update::attempt(ctx, statement, &rows, assignments).await
        }
        Kind::Truncate { target } => truncate::attempt(ctx, target).await,
        Kind::Alter { target, change } => alter::attempt(ctx, statement, target, change).await,
        Kind::Optimize { target, predicate, purge } => {
            optimize::attempt(ctx, statement, &optimize::Optimize { target, predicate: predicate.as_ref(), purge: *purge }).await
        }
        Kind::Vacuum { target, retain_hours, dry_run } => {
            vacuum::run(ctx, &vacuum::Vacuum { target, retain_hours: *retain_hours, dry_run: *dry_run }).await.map(Attempt::Done)
        }
        Kind::Restore { target, to } => restore::attempt(ctx, statement, target, to).await,
        other => Err(Error::Internal(format!("not a statement that changes tables: {other:?}"))),
    }
}

/// Which rows of which table a DELETE or UPDATE is about.
struct Rows<'a> {
    target: &'a TableTarget,
    alias: Option<&'a str>,
    predicate: Option<&'a datafusion::sql::sqlparser::ast::Expr>,
}

fn lost(conflict: &Conflict) -> Error {
    Error::Conflict(format!(
        "another commit ({}, version {}) came first, and running again {RERUNS} times did not help: {}; nothing was changed, try again",
        conflict.operation, conflict.with, conflict.detail
    ))
}

async fn pause(ctx: &StatementContext, reruns: u32) {
    let full = PAUSE.saturating_mul(1 << reruns.min(6));
    let jitter = u32::try_from(ctx.env.entropy.number() % 1000).unwrap_or(0);
    tokio::time::sleep(full / 2 + full / 2 * jitter / 1000).await;
}

/// The target of a statement at its newest version, on which the statement's attempt is based.
struct Base {
    target: TableTarget,
    table: Arc<dyn TableFormat>,
    snapshot: Arc<Snapshot>,
    index: Arc<FileIndex>,
}

impl Base {
    async fn resolve(ctx: &StatementContext, target: &TableTarget) -> Result<Self> {
        if let TableTarget::Name(parts) = target
            && let [name] = parts.as_slice()
            && ctx.session.temp_views().contains_key(name)
        {
            return Err(invalid(format!("{name} is a view; only tables can be changed")));
        }
        let table = resolve::table(ctx, target).await?;
        let snapshot = table.resolve(&SnapshotSelector::Latest).await?;
        // What is gone is told by those who read it: a table with lost files must still take a RESTORE or new rows.
        let index = table.logged_index(&snapshot).await?;
        Ok(Self { target: target.clone(), table, snapshot, index })
    }

    /// Resolve the statement's other tables so that occurrences of the target at its newest version are this base.
    async fn planner(&self, ctx: &StatementContext, statement: &Statement) -> Result<(Planner, Vec<Pin>)> {
        let mut ctx = ctx.clone();
        ctx.pins.push(self.pin());
        Planner::resolve(&ctx, statement).await
    }

    fn pin(&self) -> Pin {
        Pin { table: self.table.id().location().to_string(), selector: "latest".to_owned(), version: self.snapshot.version }
    }

    /// Its files, in the order of the index.
    fn files(&self) -> Vec<DataFile> {
        self.index.files().collect()
    }

    /// The base as a table to write to.
    fn target(&self, ctx: &StatementContext) -> Target {
        Target {
            name: self.table.name().to_owned(),
            store: self.table.store().clone(),
            schema: Arc::clone(&self.snapshot.schema),
            partition_columns: self.snapshot.partition_columns.clone(),
            mapping: self.snapshot.column_mapping,
            properties: self.snapshot.properties.clone(),
            env: ctx.env.clone(),
            folder: "",
        }
    }

    /// The base as a table to plan with.
    fn pinned(&self) -> PinnedTable {
        PinnedTable::new(Arc::clone(&self.table), Arc::clone(&self.snapshot), Arc::clone(&self.index))
    }

    fn relation(&self, ctx: &StatementContext, table: PinnedTable) -> Result<Relation> {
        let name = match &self.target {
            TableTarget::Path { format, path } => TableReference::partial(format.clone(), path.clone()),
            TableTarget::Name(parts) => {
                let name = ctx.session.qualify(parts)?;
                TableReference::full(name.catalog, name.schema, name.table)
            }
        };
        Ok(Relation::Table { name, table: Arc::new(table) })
    }

    /// Refuse to remove rows where the table takes only appends.
    fn refuse_append_only(&self, statement: &str) -> Result<()> {
        match self.snapshot.properties.get("delta.appendOnly") {
            Some(value) if value.eq_ignore_ascii_case("true") => {
                Err(invalid(format!("table {} takes appends only (delta.appendOnly = true): {statement} is refused", self.table.name())))
            }
            _ => Ok(()),
        }
    }
}

/// Commit a change; files that it stages stay or go by the outcome.
async fn commit(
    table: &dyn TableFormat,
    base: Option<&Arc<Snapshot>>,
    change: Change,
    mut staged: Staged,
    outcome: Outcome,
) -> Result<Attempt> {
    let files = staged.commit_starts();
    match table.commit(base, change).await {
        Ok(CommitOutcome::Committed { .. }) => Ok(Attempt::Done(outcome)),
        Ok(CommitOutcome::Conflict(conflict)) => {
            files.now().await;
            Ok(Attempt::Lost(conflict))
        }
        Err(error) => {
            if surely_not_committed(&error) {
                files.now().await;
            }
            Err(error.into())
        }
    }
}

/// Whether a failed commit can be told from one whose log file was written before something else failed.
fn surely_not_committed(error: &asof_storage::Error) -> bool {
    use asof_storage::Error as E;
    !matches!(error, E::UnknownOutcome { .. } | E::Store { .. } | E::Internal(_))
}

fn operation(ctx: &StatementContext, name: &str, parameters: &[(&str, Option<String>)], metrics: &[(&str, i64)]) -> Operation {
    Operation {
        name: name.to_owned(),
        parameters: parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        metrics: metrics.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect::<BTreeMap<_, _>>(),
        user_metadata: None,
        user_name: Some(ctx.session.principal()),
    }
}

/// Rows of a file that are not deleted, where its statistics say.
fn live_rows(file: &DataFile) -> Option<i64> {
    file.rows.map(|rows| rows - file.deletion_vector.as_ref().map_or(0, |vector| vector.cardinality))
}

fn bytes_of(files: &[DataFile]) -> i64 {
    files.iter().map(|file| file.size).sum()
}

fn vectors_of(files: &[DataFile]) -> i64 {
    files.iter().map(|file| i64::from(file.deletion_vector.is_some())).sum()
}

fn count_of<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

fn json_list<T: AsRef<str>>(items: &[T]) -> String {
    serde_json::Value::from(items.iter().map(AsRef::as_ref).collect::<Vec<_>>()).to_string()
}

fn counted(count: i64) -> Outcome {
    Outcome { count: Some(count), rows: None }
}

fn invalid(message: String) -> Error {
    Error::Invalid { message, location: None }
}
