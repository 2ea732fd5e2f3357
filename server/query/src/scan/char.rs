//! Comparisons with CHAR(n), as SQL has them.
//!
//! A CHAR(n) column's values are blank-padded to n characters, so `c = 'ab'` would find nothing. In SQL the shorter side is padded for the
//! comparison; for a literal beside a column that is done once, here. Scans mark such columns in the field's metadata, as Spark does.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use super::columns::char_length;

/// Pads the literals that CHAR(n) columns are compared with. Belongs among a session's analyzer rules.
#[derive(Debug, Default)]
pub struct CharComparisons;

impl AnalyzerRule for CharComparisons {
    fn name(&self) -> &str {
        "char_comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let padded = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            if !schema.fields().iter().any(|f| char_length(f).is_some()) {
                return Ok(Transformed::no(plan));
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                Ok(expr.transform_up(|expr| Ok(pad(expr, &schema)))?.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(padded.data)
    }
}

fn pad(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let (of_left, of_right) = (length(&left, schema), length(&right, schema));
            let (left, right) = (padded(*left, of_right), padded(*right, of_left));
            let changed = left.transformed || right.transformed;
            let binary = BinaryExpr::new(Box::new(left.data), op, Box::new(right.data));
            Transformed::new_transformed(Expr::BinaryExpr(binary), changed)
        }
        Expr::InList(InList { expr, list, negated }) => {
            let of = length(&expr, schema);
            let list: Vec<_> = list.into_iter().map(|item| padded(item, of)).collect();
            let changed = list.iter().any(|item| item.transformed);
            let list = list.into_iter().map(|item| item.data).collect();
            Transformed::new_transformed(Expr::InList(InList::new(expr, list, negated)), changed)
        }
        other => Transformed::no(other),
    }
}

/// Does an operator compare?
pub(crate) fn compares(op: Operator) -> bool {
    use Operator as O;
    matches!(op, O::Eq | O::NotEq | O::Lt | O::LtEq | O::Gt | O::GtEq | O::IsDistinctFrom | O::IsNotDistinctFrom)
}

/// The n of a CHAR(n) column.
fn length(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    match expr {
        Expr::Column(column) => char_length(schema.field_from_column(column).ok()?),
        Expr::Cast(cast) if cast.field.data_type().is_string() => length(&cast.expr, schema),
        _ => None,
    }
}

/// A literal padded to `n` characters; anything else as it is.
fn padded(expr: Expr, n: Option<usize>) -> Transformed<Expr> {
    let (Some(n), Expr::Literal(value, metadata)) = (n, &expr) else {
        return Transformed::no(expr);
    };
    let fill = |text: &Option<String>| text.as_ref().filter(|t| t.chars().count() < n).map(|t| Some(format!("{t:<n$}")));
    let value = match value {
        ScalarValue::Utf8(text) => fill(text).map(ScalarValue::Utf8),
        ScalarValue::LargeUtf8(text) => fill(text).map(ScalarValue::LargeUtf8),
        ScalarValue::Utf8View(text) => fill(text).map(ScalarValue::Utf8View),
        _ => None,
    };
    match value {
        Some(value) => Transformed::yes(Expr::Literal(value, metadata.clone())),
        None => Transformed::no(expr),
    }
}
