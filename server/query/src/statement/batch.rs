//! One INSERT for many rows of parameters.
//!
//! A driver's batch (`addBatch`, `executemany`) is a statement and rows of parameters. Run row by row, `INSERT INTO t VALUES (?, ?)` would be a
//! commit and a file for each, and an error in the middle would leave the rows before it. So such a statement becomes one with a row of
//! VALUES for each row of parameters.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Value, VisitMut, VisitorMut};

use super::{InsertMode, Kind, Statement};

/// The statement for `rows` rows of parameters together, whose parameters are those of all rows, one row after the other; `None` where
/// each row must be a statement of its own.
#[must_use]
pub fn of_rows(statement: &Statement, rows: usize) -> Option<Statement> {
    let Kind::Insert { source, mode, .. } = &statement.kind else { return None };
    let plain = *mode == InsertMode::Append && source.with.is_none() && source.order_by.is_none() && source.limit_clause.is_none();
    let SetExpr::Values(values) = source.body.as_ref() else { return None };
    if !plain || !statement.tables.is_empty() || values.rows.len() != 1 || statement.parameters == 0 {
        return None;
    }
    let mut all = statement.clone();
    all.parameters = statement.parameters.checked_mul(rows)?;
    let Kind::Insert { source, .. } = &mut all.kind else { return None };
    let SetExpr::Values(values) = source.body.as_mut() else { return None };
    let row = values.rows.first()?.clone();
    values.rows = (0..rows)
        .map(|number| {
            let mut row = row.clone();
            for cell in row.iter_mut() {
                let _ = VisitMut::visit(cell, &mut Renumber(number * statement.parameters));
            }
            row
        })
        .collect();
    Some(all)
}

/// Moves the numbers of placeholders up.
struct Renumber(usize);

impl VisitorMut for Renumber {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &mut value.value
            && let Some(number) = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok())
        {
            *name = format!("${}", number + self.0);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::parse;

    #[test]
    fn rows_become_values() {
        let statement = parse("INSERT INTO t (a, b) VALUES (?, upper(?) || 'x')").unwrap();
        let all = of_rows(&statement, 2).unwrap();
        let Kind::Insert { source, .. } = &all.kind else { panic!("{all:?}") };
        assert_eq!((source.to_string().as_str(), all.parameters), ("VALUES ($1, upper($2) || 'x'), ($3, upper($4) || 'x')", 4));
        for alone in ["INSERT INTO t VALUES (1)", "INSERT INTO t SELECT ?", "INSERT INTO t VALUES (?), (?)", "DELETE FROM t WHERE a = ?"] {
            assert_eq!(of_rows(&parse(alone).unwrap(), 2), None, "{alone}");
        }
    }
}
