//! TRUNCATE TABLE: all files go, by metadata alone.

use asof_storage::{Change, ReadSet};

use super::{Attempt, Base, commit, count_of, live_rows, operation};
use crate::engine::Outcome;
use crate::error::Result;
use crate::plan::StatementContext;
use crate::statement::TableTarget;
use crate::write::Staged;

pub(super) async fn attempt(ctx: &StatementContext, target: &TableTarget) -> Result<Attempt> {
    let started = ctx.env.clock.now();
    let base = Base::resolve(ctx, target).await?;
    base.refuse_append_only("TRUNCATE")?;
    let removed = base.files();
    let outcome = Outcome { count: removed.iter().map(live_rows).sum(), rows: None };
    if removed.is_empty() {
        return Ok(Attempt::Done(outcome));
    }
    let metrics = [("numRemovedFiles", count_of(&removed)), ("executionTimeMs", ctx.env.clock.now().millis() - started.millis())];
    let change = Change {
        operation: operation(ctx, "TRUNCATE", &[], &metrics),
        removed,
        reads: ReadSet::Table,
        data_change: true,
        ..Change::default()
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, Staged::none(), outcome).await
}
