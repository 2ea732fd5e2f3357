//! Column names without regard to case.
//!
//! Spark's users type `orderId` and `ORDERID` for one column; DataFusion lower-cases what is not quoted and compares exactly. So before
//! planning, an unquoted name that no table has in lower case, but that exactly one spelling among the statement's tables matches without
//! regard to case, is given that spelling. Quoted names, aliases of the statement and ambiguous names stay as they are.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Visit, VisitMut, Visitor, VisitorMut};

/// Spell unquoted column names as the tables do.
pub(super) fn fold(statement: &mut ast::Statement, known: &[String]) {
    let spellings = spellings(known);
    if spellings.is_empty() {
        return;
    }
    let mut aliases = Aliases::default();
    let _ = Visit::visit(statement, &mut aliases);
    let _ = VisitMut::visit(statement, &mut Fold { spellings: &spellings, aliases: &aliases.names });
}

/// Lower case → the one spelling, for columns that cannot be reached in lower case.
fn spellings(known: &[String]) -> HashMap<String, String> {
    let mut found: HashMap<String, HashSet<&String>> = HashMap::new();
    for column in known {
        found.entry(column.to_lowercase()).or_default().insert(column);
    }
    let only = |(lower, names): (String, HashSet<&String>)| match names.into_iter().collect::<Vec<_>>().as_slice() {
        [name] if **name != lower => Some((lower, (*name).clone())),
        _ => None,
    };
    found.into_iter().filter_map(only).collect()
}

#[derive(Default)]
struct Aliases {
    names: HashSet<String>,
}

impl Visitor for Aliases {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        if let ast::SetExpr::Select(select) = query.body.as_ref() {
            for item in &select.projection {
                if let ast::SelectItem::ExprWithAlias { alias, .. } = item
                    && alias.quote_style.is_none()
                {
                    self.names.insert(alias.value.to_lowercase());
                }
            }
        }
        ControlFlow::Continue(())
    }
}

struct Fold<'a> {
    spellings: &'a HashMap<String, String>,
    aliases: &'a HashSet<String>,
}

impl Fold<'_> {
    fn ident(&self, ident: &mut ast::Ident) {
        if ident.quote_style.is_some() {
            return;
        }
        let lower = ident.value.to_lowercase();
        if let Some(spelling) = self.spellings.get(&lower).filter(|_| !self.aliases.contains(&lower)) {
            ident.value.clone_from(spelling);
            ident.quote_style = Some('"');
        }
    }
}

impl VisitorMut for Fold<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Identifier(ident) => self.ident(ident),
            ast::Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(|part| self.ident(part)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn folding() {
        let check = |sql: &str, expect: &str| {
            let known = ["orderId", "plain", "Twice", "TWICE", "Total"].map(str::to_owned);
            let mut statement = Parser::parse_sql(&GenericDialect {}, sql).unwrap().remove(0);
            fold(&mut statement, &known);
            assert_eq!(statement.to_string(), expect);
        };
        check("SELECT ORDERID, t.orderid FROM t", "SELECT \"orderId\", t.\"orderId\" FROM t");
        check("SELECT PLAIN FROM t", "SELECT PLAIN FROM t");
        check("SELECT twice FROM t", "SELECT twice FROM t");
        check("SELECT \"orderid\" FROM t", "SELECT \"orderid\" FROM t");
        check("SELECT plain AS total FROM t ORDER BY total", "SELECT plain AS total FROM t ORDER BY total");
        check(
            "SELECT 1 FROM t WHERE orderid IN (SELECT ORDERID FROM u)",
            "SELECT 1 FROM t WHERE \"orderId\" IN (SELECT \"orderId\" FROM u)",
        );
    }
}
