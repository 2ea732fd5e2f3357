//! Rows of a change for the table's change data feed.
//!
//! Where the feed is on (`delta.enableChangeDataFeed`), a commit that rewrites files says in `cdc` files which rows it changed: they lie in
//! `_change_data` and have the table's columns and `_change_type`. A commit with `cdc` files must hold all of its changes there, for readers
//! look at nothing else; one that only adds or removes whole files needs none.

use serde_json::{Value, json};

use super::Base;
use super::select::{item, select};
use crate::error::Result;
use crate::plan::{Planner, StatementContext};
use crate::scan::PinnedTable;
use crate::write::{Rules, Source, Staged, Target};

/// Whether the table keeps a feed.
pub(super) fn is_on(base: &Base) -> bool {
    base.snapshot.properties.get("delta.enableChangeDataFeed").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// The log's actions of the feed's files.
pub(super) fn actions(staged: &Staged) -> Vec<Value> {
    let action = |file: &asof_storage::transaction::NewFile| json!({"cdc": {"path": file.path, "partitionValues": file.partition_values, "size": file.size, "dataChange": false}});
    staged.changes.iter().map(action).collect()
}

/// Rows that are in the table already, to be written once more: into another file, or for the feed.
pub(super) async fn as_it_was(
    ctx: &StatementContext,
    planner: &Planner,
    base: &Base,
    table: PinnedTable,
    target: &Target,
) -> Result<Source> {
    let number = planner.bind(base.relation(ctx, table)?);
    let items = target.schema.fields().iter().map(|field| item(field.name())).collect();
    Source::plan(planner, &select(items, number, None, None)?, target, Rules::copy(target)).await
}
