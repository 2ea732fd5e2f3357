//! Rows of a change for the table's change data feed.
//!
//! Where the feed is on (`delta.enableChangeDataFeed`), a commit that rewrites files says in `cdc` files which rows it changed: they lie in
//! `_change_data` and have the table's columns and `_change_type`. A commit with `cdc` files must hold all of its changes there, for readers
//! look at nothing else; one that only adds or removes whole files needs none.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use asof_storage::transaction::NewFile;
use datafusion::sql::sqlparser::ast;
use serde_json::{Value, json};

use super::Base;
use super::select::named;
use crate::error::Result;
use crate::write::{self, Source, Staged, Target};

/// The column that says what happened to a row.
const CHANGE_TYPE: &str = "_change_type";
/// Where the files lie.
const FOLDER: &str = "_change_data/";

/// Whether the table keeps a feed.
pub(super) fn is_on(base: &Base) -> bool {
    base.snapshot.properties.get("delta.enableChangeDataFeed").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// The table's columns and `_change_type`, in the feed's folder.
pub(super) fn target(table: &Target) -> Target {
    let mut fields: Vec<_> = table.schema.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, true)));
    Target { schema: Arc::new(Schema::new(fields)), folder: FOLDER, ..table.clone() }
}

/// The items of a select, with `_change_type`: `delete`, `update_preimage`, `update_postimage`.
pub(super) fn items(mut items: Vec<ast::SelectItem>, change_type: &str) -> Vec<ast::SelectItem> {
    let value = ast::Expr::Value(ast::Value::SingleQuotedString(change_type.to_owned()).with_empty_span());
    items.push(named(value, CHANGE_TYPE));
    items
}

/// Write the feed's files; they share the fate of `staged`. Gives their actions.
pub(super) async fn write(staged: &mut Staged, target: Target, sources: Vec<Source>) -> Result<Vec<Value>> {
    let feed = write::write(target, sources).await?;
    Ok(staged.share_fate(feed).iter().map(action).collect())
}

fn action(file: &NewFile) -> Value {
    json!({"cdc": {"path": file.path, "partitionValues": file.partition_values, "size": file.size, "dataChange": false}})
}
