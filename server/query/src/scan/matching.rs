//! Whether a file that another commit adds could hold rows which a statement's filters let through.

use std::collections::BTreeMap;

use asof_storage::snapshot::FormatSnapshot;
use asof_storage::transaction::ReadPredicate;
use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;

use super::considered::Considered;
use super::{PinnedTable, select};

/// The filters that a statement put on a table.
#[derive(Debug)]
pub(crate) struct Matching {
    table: PinnedTable,
    filters: Vec<Expr>,
    state: SessionState,
}

impl Matching {
    /// Filters on a table's columns; all must be true.
    pub(crate) fn new(table: PinnedTable, filters: Vec<Expr>, state: SessionState) -> Self {
        Self { table, filters, state }
    }
}

impl ReadPredicate for Matching {
    fn may_match(&self, partition_values: &BTreeMap<String, Option<String>>, stats: Option<&str>) -> bool {
        let FormatSnapshot::Delta(delta) = &self.table.snapshot.format;
        // What cannot be judged may match.
        let Ok(index) = delta.index_of(partition_values, stats) else { return true };
        let mut considered = Considered::new(&self.table.snapshot);
        let selected = select::select(&self.state, &self.table.columns, &index, None, &self.filters, &mut considered);
        selected.map_or(true, |chunks| chunks.iter().any(|chunk| !chunk.files.is_empty()))
    }
}
