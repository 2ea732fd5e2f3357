//! Columns of a SELECT that would have one name.
//!
//! `SELECT id, id`, `SELECT count(*), count(*)` and a SELECT of two subqueries are queries everywhere; DataFusion wants names that differ. The
//! second gets `_1` after its name, the third `_2`. Names that the user gave are left alone.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr, Ident, Query, Select, SelectItem, Visit, VisitMut, Visitor, VisitorMut};

use super::relations::folded;

/// Tell apart what every SELECT of the statement gives.
pub fn distinguish(statement: &mut ast::Statement) {
    let _ = VisitMut::visit(statement, &mut Distinguisher);
}

struct Distinguisher;

impl VisitorMut for Distinguisher {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut taken: HashSet<String> = select.projection.iter().filter_map(given).collect();
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if taken.insert(planned(expr)) {
                continue;
            }
            let name = shown(expr);
            let free = (1..).map(|n| format!("{name}_{n}")).find(|name| taken.insert(name.to_lowercase()));
            let Some(alias) = free.map(|name| Ident::with_quote('"', name)) else { continue };
            let expr = std::mem::replace(expr, Expr::value(ast::Value::Null));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
        ControlFlow::Continue(())
    }
}

/// A name the user gave.
fn given(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        _ => None,
    }
}

/// What DataFusion would call it, as far as it can be told from here: subqueries are all alike to it.
fn planned(expr: &Expr) -> String {
    struct Subqueries(bool);
    impl Visitor for Subqueries {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 = true;
            ControlFlow::Break(())
        }
    }
    let mut subqueries = Subqueries(false);
    let _ = expr.visit(&mut subqueries);
    match subqueries.0 {
        true => "<subquery>".to_owned(),
        false => expr.to_string().replace('"', "").to_lowercase(),
    }
}

/// What its user would call it.
fn shown(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => folded(name),
        Expr::CompoundIdentifier(parts) => parts.last().map(folded).unwrap_or_default(),
        _ if planned(expr) == "<subquery>" => "subquery".to_owned(),
        other => other.to_string(),
    }
}
