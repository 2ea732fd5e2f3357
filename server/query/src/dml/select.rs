//! Queries that statements are turned into.

use datafusion::sql::sqlparser::ast;

use crate::plan::placeholder;
use crate::resolve::{empty_select, query};
use crate::statement::Occurrences;

/// `SELECT items FROM <relation number> [AS alias] [WHERE filter]`.
pub(super) fn select(items: Vec<ast::SelectItem>, number: usize, alias: Option<&str>, filter: Option<ast::Expr>) -> ast::Select {
    ast::Select {
        projection: items,
        from: vec![ast::TableWithJoins { relation: placeholder(number, alias), joins: vec![] }],
        selection: filter,
        ..empty_select()
    }
}

/// The select as a query.
pub(super) fn whole(select: ast::Select) -> ast::Query {
    query(select)
}

/// `"name"`.
pub(super) fn column(name: &str) -> ast::Expr {
    ast::Expr::Identifier(ast::Ident::with_quote('"', name))
}

/// `"name"` as an item.
pub(super) fn item(name: &str) -> ast::SelectItem {
    ast::SelectItem::UnnamedExpr(column(name))
}

/// `(value) AS "name"`.
pub(super) fn named(value: ast::Expr, name: &str) -> ast::SelectItem {
    ast::SelectItem::ExprWithAlias { expr: value, alias: ast::Ident::with_quote('"', name) }
}

/// `(condition) IS NOT TRUE`: false and unknown.
pub(super) fn not_true(condition: &ast::Expr) -> ast::Expr {
    ast::Expr::IsNotTrue(Box::new(ast::Expr::Nested(Box::new(condition.clone()))))
}

/// An expression as its user wrote it, more or less: placeholders show what they stand for.
pub(super) fn shown(expr: &ast::Expr, tables: &Occurrences) -> String {
    let mut text = expr.to_string();
    for (number, table) in tables.iter().enumerate() {
        text = text.replace(&format!("\"__asof\".\"{number}\""), &table.target.to_string());
    }
    text
}
