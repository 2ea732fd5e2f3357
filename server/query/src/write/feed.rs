//! Rows of a change for the table's change data feed.
//!
//! Where the feed is on (`delta.enableChangeDataFeed`), a commit that changes rows within files says in `cdc` files which: they lie in
//! `_change_data` and have the table's columns and `_change_type`. A commit with `cdc` files must hold all of its changes there, for readers
//! look at nothing else; one that only adds or removes whole files needs none.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use super::Target;
use crate::error::{Error, Result};

/// The column that says what happened to a row: `insert`, `delete`, `update_preimage`, `update_postimage`.
const CHANGE_TYPE: &str = "_change_type";
/// Where the files lie.
const FOLDER: &str = "_change_data/";

/// The table's columns and `_change_type`, in the feed's folder.
pub(super) fn target(table: &Target) -> Target {
    let schema = with_change_type(&table.schema);
    Target { schema: Arc::new(schema), folder: FOLDER, ..table.clone() }
}

/// Rows of the table as changes of one type.
pub(super) fn rows(batch: &RecordBatch, change: &str) -> Result<RecordBatch> {
    let types: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(change, batch.num_rows())));
    let columns = batch.columns().iter().cloned().chain([types]).collect();
    RecordBatch::try_new(Arc::new(with_change_type(batch.schema_ref())), columns).map_err(|e| Error::Internal(e.to_string()))
}

fn with_change_type(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().cloned().chain([Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, true))]);
    Schema::new(fields.collect::<Vec<_>>())
}
