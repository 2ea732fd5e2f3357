//! Queries that statements are turned into.

use datafusion::sql::sqlparser::ast;

use crate::error::{Error, Result};
use crate::plan::placeholder;
use crate::statement::{self, Kind, Occurrences};

/// `SELECT items FROM <relation number> [AS alias] [WHERE filter]`.
pub(super) fn select(items: Vec<ast::SelectItem>, number: usize, alias: Option<&str>, filter: Option<ast::Expr>) -> Result<ast::Query> {
    let odd = || Error::Internal("SELECT 1 is no select".to_owned());
    // The tree has more fields than matter here; the parser knows their empty values.
    let Kind::Query(mut query) = statement::parse("SELECT 1")?.kind else { return Err(odd()) };
    let ast::SetExpr::Select(select) = query.body.as_mut() else { return Err(odd()) };
    select.projection = items;
    select.from = vec![ast::TableWithJoins { relation: placeholder(number, alias), joins: vec![] }];
    select.selection = filter;
    Ok(*query)
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
