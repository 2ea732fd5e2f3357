//! VALUES of which a column holds DOUBLEs and DECIMALs: all are DOUBLE.
//!
//! `1e-20` is a DOUBLE and `0.1` a DECIMAL; the planner gives a column of both a DECIMAL of fifteen decimals when it builds the rows, and 1e-20
//! becomes 0. (Elsewhere the types meet after planning: [`crate::plan`].)

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, CastKind, DataType, ExactNumberInfo, Expr, Query, SetExpr, Value, VisitMut, VisitorMut};

/// Makes the values of each column alike, in every VALUES of the statement.
pub fn alike(statement: &mut ast::Statement) {
    let _ = VisitMut::visit(statement, &mut Alike);
}

struct Alike;

impl VisitorMut for Alike {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Values(values) = query.body.as_mut() {
            let columns = values.rows.first().map_or(0, |row| row.len());
            for at in 0..columns {
                let mut cells: Vec<&mut Expr> = values.rows.iter_mut().filter_map(|row| row.get_mut(at)).collect();
                if cells.iter().any(|cell| is_double(cell)) {
                    cells.iter_mut().for_each(|cell| double(cell));
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn is_double(cell: &Expr) -> bool {
    match cell {
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Double(_) | DataType::DoublePrecision | DataType::Real | DataType::Float(_))
        }
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => is_double(expr),
        _ => false,
    }
}

/// A literal with a point becomes a DOUBLE of the same text.
pub fn double(cell: &mut Expr) {
    match cell {
        Expr::Value(value) => {
            if let Value::Number(digits, _) = &value.value
                && digits.contains('.')
            {
                let text = Expr::value(Value::SingleQuotedString(digits.clone()));
                let data_type = DataType::Double(ExactNumberInfo::None);
                *cell = Expr::Cast { kind: CastKind::Cast, expr: Box::new(text), data_type, array: false, format: None };
            }
        }
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => double(expr),
        _ => {}
    }
}
