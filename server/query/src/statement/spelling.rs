//! Literals and functions as their users spell them, in the form DataFusion plans.

use datafusion::sql::sqlparser::ast::{Expr, Value};

use crate::error::Result;

/// A number literal.
pub(super) fn number(digits: String) -> Expr {
    Expr::value(Value::Number(digits, false))
}

/// Rewrite one expression; its children follow.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    let _ = expr;
    Ok(())
}
