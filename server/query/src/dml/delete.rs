//! DELETE.
//!
//! Rows for which the predicate is true go; those for which it is false or NULL stay. Files that lose all their rows are removed by
//! metadata alone, the others are rewritten without the rows. Nothing to delete: nothing is committed.

use asof_storage::{Change, ReadSet};

use super::select::{item, not_true, select, shown};
use super::touched::{Touched, touched};
use super::{Attempt, Base, Rows, bytes_of, commit, count_of, counted, feed, json_list, live_rows, operation, vectors_of};
use crate::error::{Error, Result};
use crate::plan::{Planner, StatementContext};
use crate::statement::Statement;
use crate::write::{self, Rules, Source, Staged, Target};

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, rows: &Rows<'_>) -> Result<Attempt> {
    let started = ctx.env.clock.now();
    let base = Base::resolve(ctx, rows.target).await?;
    base.refuse_append_only("DELETE")?;
    let (planner, _) = base.planner(ctx, statement).await?;
    let files = match rows.predicate {
        None => every_file(ctx, &planner, &base).await?,
        Some(_) => touched(ctx, &planner, &base, rows.alias, rows.predicate).await?,
    };
    if files.is_empty() {
        return Ok(Attempt::Done(counted(0)));
    }
    let scanned = ctx.env.clock.now();
    let deleted: i64 = files.iter().map(|file| file.selected).sum();
    let mut staged = keep_others(ctx, &planner, &base, rows, &files).await?;
    let feed = match feed::is_on(&base) && files.iter().any(|file| !file.wholly()) {
        true => tell_feed(ctx, &planner, &base, rows, &files, &mut staged).await?,
        false => vec![],
    };
    let written = ctx.env.clock.now();

    let removed: Vec<_> = files.into_iter().map(|touched| touched.file).collect();
    let predicate = rows.predicate.map_or_else(|| "true".to_owned(), |p| shown(p, &statement.tables));
    let metrics = [
        ("numRemovedFiles", count_of(&removed)),
        ("numRemovedBytes", bytes_of(&removed)),
        ("numAddedFiles", count_of(&staged.files)),
        ("numAddedBytes", staged.bytes()),
        ("numCopiedRows", staged.rows),
        ("numDeletedRows", deleted),
        ("numAddedChangeFiles", count_of(&feed)),
        ("numDeletionVectorsAdded", 0),
        ("numDeletionVectorsRemoved", vectors_of(&removed)),
        ("numDeletionVectorsUpdated", 0),
        ("executionTimeMs", written.millis() - started.millis()),
        ("scanTimeMs", scanned.millis() - started.millis()),
        ("rewriteTimeMs", written.millis() - scanned.millis()),
    ];
    let change = Change {
        operation: operation(ctx, "DELETE", &[("predicate", Some(json_list(&[predicate])))], &metrics),
        removed,
        added: staged.files.clone(),
        raw: feed,
        reads: ReadSet::Table,
        data_change: true,
        ..Change::default()
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, staged, counted(deleted)).await
}

/// All files with their rows; read only where the statistics do not say how many.
async fn every_file(ctx: &StatementContext, planner: &Planner, base: &Base) -> Result<Vec<Touched>> {
    let files = base.files();
    let known: Option<Vec<_>> = files
        .iter()
        .zip(0..)
        .map(|(file, ordinal)| live_rows(file).map(|selected| Touched { ordinal, file: file.clone(), selected }))
        .collect();
    if let Some(known) = known {
        return Ok(known);
    }
    let counted = touched(ctx, planner, base, None, None).await?;
    let selected = |ordinal| counted.iter().find(|t| t.ordinal == ordinal).map_or(0, |t| t.selected);
    // A file that holds no rows goes too.
    Ok(files.iter().zip(0..).map(|(file, ordinal)| Touched { ordinal, file: file.clone(), selected: selected(ordinal) }).collect())
}

/// Rewrite the rows that stay of files that lose only some.
async fn keep_others(ctx: &StatementContext, planner: &Planner, base: &Base, rows: &Rows<'_>, files: &[Touched]) -> Result<Staged> {
    let Some(predicate) = rows.predicate else { return Ok(Staged::none()) };
    let partly: Vec<&Touched> = files.iter().filter(|file| !file.wholly()).collect();
    if partly.is_empty() {
        return Ok(Staged::none());
    }
    let target = Target::of(base.table.as_ref(), &base.snapshot, &ctx.env)?;
    let number = planner.bind(base.relation(ctx, base.pinned().only_files(partly.iter().map(|f| f.ordinal).collect()))?);
    let items = target.schema.fields().iter().map(|field| item(field.name())).collect();
    let query = select(items, number, rows.alias, Some(not_true(predicate)), vec![])?;
    let source = Source::plan(planner, &query, &target, Rules::copy(&target)).await?;
    let staged = write::write(target, vec![source]).await?;
    expect_rows(&partly, staged, |file| live_rows(&file.file).map(|rows| rows - file.selected)).await
}

/// All deleted rows, also those of files that go wholly.
async fn tell_feed(
    ctx: &StatementContext,
    planner: &Planner,
    base: &Base,
    rows: &Rows<'_>,
    files: &[Touched],
    staged: &mut Staged,
) -> Result<Vec<serde_json::Value>> {
    let target = feed::target(&Target::of(base.table.as_ref(), &base.snapshot, &ctx.env)?);
    let number = planner.bind(base.relation(ctx, base.pinned().only_files(files.iter().map(|f| f.ordinal).collect()))?);
    let items = feed::items(base.snapshot.schema.fields().iter().map(|field| item(field.name())).collect(), "delete");
    let query = select(items, number, rows.alias, rows.predicate.cloned(), vec![])?;
    let source = Source::plan(planner, &query, &target, Rules::copy(&target)).await?;
    feed::write(staged, target, vec![source]).await
}

/// The two passes over a file must have agreed on its rows; a predicate that changes its mind (`random() < 0.5`) is refused.
pub(super) async fn expect_rows(files: &[&Touched], staged: Staged, rows: impl Fn(&Touched) -> Option<i64>) -> Result<Staged> {
    let expected: Option<i64> = files.iter().map(|file| rows(file)).sum();
    match expected {
        Some(expected) if expected != staged.rows => {
            let message = format!(
                "the predicate gave different answers for the same rows ({} rows kept, {expected} expected): use one that is deterministic",
                staged.rows
            );
            staged.discard().await;
            Err(Error::Invalid { message, location: None })
        }
        _ => Ok(staged),
    }
}
