//! DELETE.
//!
//! Rows for which the predicate is true go; those for which it is false or NULL stay. Files that lose all their rows are removed by
//! metadata alone; the others get a deletion vector or, where the table has those off, are rewritten without the rows. Nothing to delete:
//! nothing is committed.

use asof_storage::{Change, ReadSet};

use super::losses::{Losses, by_vectors};
use super::select::shown;
use super::touched::{Touched, other_rows, selected_rows, touched};
use super::{Attempt, Base, Rows, commit, count_of, counted, feed, json_list, live_rows, operation};
use crate::error::Result;
use crate::plan::{Planner, StatementContext};
use crate::statement::Statement;
use crate::write::{self, Staged, Target};

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, rows: &Rows<'_>) -> Result<Attempt> {
    let started = ctx.env.clock.now();
    let base = Base::resolve(ctx, rows.target).await?;
    base.refuse_append_only("DELETE")?;
    let (planner, _) = base.planner(ctx, statement).await?;
    if rows.predicate.is_none()
        && !(feed::is_on(&base) && base.files().iter().any(|file| file.deletion_vector.is_some()))
        && let Some(deleted) = base.files().iter().map(live_rows).sum()
    {
        let losses = Losses { removed: base.files(), deletes: vec![] };
        return finish(
            ctx,
            statement,
            rows,
            Deleted { base, losses, deleted, reads: ReadSet::Table, staged: Staged::none(), started, scanned: started },
        )
        .await;
    }
    let (files, reads) = touched(ctx, &planner, &base, rows).await?;
    let scanned = ctx.env.clock.now();
    let deleted = files.iter().map(Touched::selected).sum();
    let staged = stage(ctx, &planner, &base, &files).await?;
    let losses = match rows.predicate {
        // A file that holds no rows goes too.
        None => Losses { removed: base.files(), deletes: vec![] },
        Some(_) if by_vectors(&base) => Losses::of_rows(&base, &files).await?,
        Some(_) => Losses::of_files(&files),
    };
    finish(ctx, statement, rows, Deleted { base, losses, deleted, reads, staged, started, scanned }).await
}

/// A DELETE that only needs to be committed.
struct Deleted {
    base: Base,
    losses: Losses,
    deleted: i64,
    reads: ReadSet,
    staged: Staged,
    started: asof_storage::Micros,
    scanned: asof_storage::Micros,
}

async fn finish(ctx: &StatementContext, statement: &Statement, rows: &Rows<'_>, done: Deleted) -> Result<Attempt> {
    let Deleted { base, losses, deleted, reads, staged, started, scanned } = done;
    if losses.removed.is_empty() && losses.deletes.is_empty() {
        return Ok(Attempt::Done(counted(0)));
    }
    let written = ctx.env.clock.now();
    let predicate = rows.predicate.map_or_else(|| "true".to_owned(), |p| shown(p, &statement.tables));
    let mut metrics = losses.metrics().to_vec();
    metrics.extend([
        ("numAddedFiles", count_of(&staged.files)),
        ("numAddedBytes", staged.bytes()),
        ("numCopiedRows", staged.rows),
        ("numDeletedRows", deleted),
        ("numAddedChangeFiles", count_of(&staged.changes)),
        ("executionTimeMs", written.millis() - started.millis()),
        ("scanTimeMs", scanned.millis() - started.millis()),
        ("rewriteTimeMs", written.millis() - scanned.millis()),
    ]);
    let change = Change {
        operation: operation(ctx, "DELETE", &[("predicate", Some(json_list(&[predicate])))], &metrics),
        removed: losses.removed,
        deletes: losses.deletes,
        added: staged.files.clone(),
        raw: feed::actions(&staged),
        reads,
        data_change: true,
        ..Change::default()
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, staged, counted(deleted)).await
}

/// Rewrite the rows that stay of files that lose only some, unless those get vectors, and tell the feed what goes. A commit that only removes
/// whole files needs no feed; but where those have deletion vectors, not all readers know how to tell which rows went.
async fn stage(ctx: &StatementContext, planner: &Planner, base: &Base, files: &[Touched]) -> Result<Staged> {
    let partly: Vec<Touched> = files.iter().filter(|file| !file.wholly()).cloned().collect();
    let target = Target::of(base.table.as_ref(), &base.snapshot, &ctx.env)?;
    let mut sources = vec![];
    if !by_vectors(base) && !partly.is_empty() {
        sources.push(feed::as_it_was(ctx, planner, base, other_rows(base, &partly), &target).await?);
    }
    if feed::is_on(base) && (!partly.is_empty() || files.iter().any(|touched| touched.file.deletion_vector.is_some())) {
        sources.push(feed::as_it_was(ctx, planner, base, selected_rows(base, files), &target).await?.for_feed_alone("delete"));
    }
    match sources.is_empty() {
        true => Ok(Staged::none()),
        false => write::write(target.clone(), sources).await,
    }
}
