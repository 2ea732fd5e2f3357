//! Which files hold rows that a predicate selects, and how many in each.

use std::collections::BTreeMap;

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt32Type};
use asof_storage::DataFile;
use datafusion::sql::sqlparser::ast;

use super::select::{column, item, named, select};
use super::{Base, live_rows};
use crate::error::{Error, Result};
use crate::plan::{Planner, StatementContext};
use crate::scan::FILE_ORDINAL;

/// A file with rows that a statement changes.
#[derive(Clone, Debug)]
pub(super) struct Touched {
    /// Its ordinal in the index.
    pub ordinal: u32,
    /// The file.
    pub file: DataFile,
    /// Its selected rows.
    pub selected: i64,
}

impl Touched {
    /// Every row of the file is selected.
    pub(super) fn wholly(&self) -> bool {
        live_rows(&self.file) == Some(self.selected)
    }
}

/// Files with rows for which the predicate is true (all rows without one), in the order of the index.
pub(super) async fn touched(
    ctx: &StatementContext,
    planner: &Planner,
    base: &Base,
    alias: Option<&str>,
    predicate: Option<&ast::Expr>,
) -> Result<Vec<Touched>> {
    let files = base.files();
    let selected = count_by_file(ctx, planner, base, alias, predicate).await?;
    let mut touched = Vec::with_capacity(selected.len());
    for (ordinal, selected) in selected {
        let file = files
            .get(ordinal as usize)
            .ok_or_else(|| Error::Internal(format!("file {ordinal} of table {} is not in its index", base.table.name())))?;
        touched.push(Touched { ordinal, file: file.clone(), selected });
    }
    Ok(touched)
}

async fn count_by_file(
    ctx: &StatementContext,
    planner: &Planner,
    base: &Base,
    alias: Option<&str>,
    predicate: Option<&ast::Expr>,
) -> Result<BTreeMap<u32, i64>> {
    let number = planner.bind(base.relation(ctx, base.pinned().with_file_ordinal())?);
    let items = vec![item(FILE_ORDINAL), named(count_all(), "rows")];
    let query = select(items, number, alias, predicate.cloned(), vec![column(FILE_ORDINAL)])?;
    let mut counts = BTreeMap::new();
    for batch in planner.collect(&query).await? {
        let (ordinals, rows) = (batch.column(0).as_primitive::<UInt32Type>(), batch.column(1).as_primitive::<Int64Type>());
        for (ordinal, rows) in ordinals.values().iter().zip(rows.values()) {
            *counts.entry(*ordinal).or_default() += rows;
        }
    }
    Ok(counts)
}

/// `count(*)`.
fn count_all() -> ast::Expr {
    ast::Expr::Function(ast::Function {
        name: ast::ObjectName::from(vec![ast::Ident::new("count")]),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)],
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}
