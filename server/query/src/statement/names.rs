//! Columns of a SELECT that would have one name.
//!
//! `SELECT id, id`, `SELECT count(*), count(*)` and a SELECT of two subqueries are queries everywhere; DataFusion wants names that differ. The
//! second gets `_1` after its name, the third `_2`. Names that the user gave are left alone. A column beside a wildcard that has it already
//! (`SELECT *, id`, `SELECT t.*, t.id`) is a second one too.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, TableFactor, Visit,
    VisitMut, Visitor, VisitorMut, WildcardAdditionalOptions,
};

use super::relations::folded;

/// Tell apart what every SELECT of the statement gives.
pub fn distinguish(statement: &mut ast::Statement) {
    let _ = VisitMut::visit(statement, &mut Distinguisher);
}

struct Distinguisher;

impl VisitorMut for Distinguisher {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let scope = Scope::of(select);
        let wildcards = Wildcards::of(select);
        let mut taken: HashSet<String> = select.projection.iter().filter_map(given).collect();
        // A subquery has the name of what it selects, which may be another's.
        let several = select.projection.len() > 1;
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let first = taken.insert(scope.planned(expr));
            let name = shown(expr);
            // And a column that is cast has, for DataFusion, the name of both its parts: `t.a`.
            let misnamed = (several && matches!(expr, Expr::Subquery(_))) || (is_cast(expr) && scope.column(without_casts(expr)).is_some());
            let free = if first && misnamed && !wildcards.have(without_casts(expr), &scope) {
                taken.insert(name.to_lowercase()).then_some(name)
            } else if first && !wildcards.have(without_casts(expr), &scope) {
                continue;
            } else {
                (1..).map(|n| format!("{name}_{n}")).find(|name| taken.insert(name.to_lowercase()))
            };
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

/// The names by which a SELECT's relations are referred to, in small letters.
struct Scope(Vec<String>);

impl Scope {
    fn of(select: &Select) -> Self {
        let factors = select.from.iter().flat_map(|t| std::iter::once(&t.relation).chain(t.joins.iter().map(|j| &j.relation)));
        Self(factors.map(|f| relation_name(f).unwrap_or_default()).collect())
    }

    /// A column of one of the relations, as (relation if written or the only one, column).
    fn column(&self, expr: &Expr) -> Option<(Option<String>, String)> {
        match expr {
            Expr::Identifier(name) => match self.0.as_slice() {
                [only] => Some((Some(only.clone()), folded(name).to_lowercase())),
                _ => Some((None, folded(name).to_lowercase())),
            },
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [relation, name] if self.0.contains(&relation.value.to_lowercase()) => {
                    Some((Some(relation.value.to_lowercase()), folded(name).to_lowercase()))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// What DataFusion would call it, as far as it can be told from here: it leaves casts out, and subqueries are all alike to it.
    fn planned(&self, expr: &Expr) -> String {
        struct Plain<'s>(&'s Scope);
        impl VisitorMut for Plain<'_> {
            type Break = ();
            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                if let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
                    *expr = std::mem::replace(inner, Expr::value(ast::Value::Null));
                } else if let Some((relation, name)) = self.0.column(expr) {
                    *expr = Expr::CompoundIdentifier(relation.into_iter().chain([name]).map(Ident::new).collect());
                }
                ControlFlow::Continue(())
            }
        }
        if has_subquery(expr) {
            return "<subquery>".to_owned();
        }
        let mut plain = expr.clone();
        let _ = VisitMut::visit(&mut plain, &mut Plain(self));
        plain.to_string().replace('"', "").to_lowercase()
    }
}

fn relation_name(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table { alias: None, name, .. } => last_part(name),
        TableFactor::Table { alias, .. } | TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => {
            alias.as_ref().map(|a| a.name.value.to_lowercase())
        }
        _ => None,
    }
}

fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.to_lowercase())
}

/// The wildcards of a SELECT list.
#[derive(Default)]
struct Wildcards {
    /// For each: `None` for `*`, the relation for `t.*`; and what it leaves out. All in small letters.
    each: Vec<(Option<String>, Vec<String>)>,
}

impl Wildcards {
    fn of(select: &Select) -> Self {
        let each = select.projection.iter().filter_map(|item| match item {
            SelectItem::Wildcard(options) => Some((None, left_out(options))),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                last_part(name).map(|relation| (Some(relation), left_out(options)))
            }
            _ => None,
        });
        Self { each: each.collect() }
    }

    /// Is this one of the columns that a wildcard stands for?
    fn have(&self, expr: &Expr, scope: &Scope) -> bool {
        let Some((relation, column)) = scope.column(expr) else { return false };
        let covers = |name: Option<&str>| {
            self.each.iter().any(|(of, left_out)| (of.is_none() || of.as_deref() == name) && !left_out.contains(&column))
        };
        // A column without its relation's name is one of the relations': they must all be there.
        match relation {
            Some(name) => covers(Some(&name)),
            None => covers(None) || (!scope.0.is_empty() && scope.0.iter().all(|name| covers(Some(name)))),
        }
    }
}

/// What `EXCLUDE (…)` or `EXCEPT (…)` leaves out.
fn left_out(options: &WildcardAdditionalOptions) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => names.extend(last_part(name)),
        Some(ExcludeSelectItem::Multiple(all)) => names.extend(all.iter().filter_map(last_part)),
        None => {}
    }
    if let Some(except) = &options.opt_except {
        names.push(except.first_element.value.to_lowercase());
        names.extend(except.additional_elements.iter().map(|name| name.value.to_lowercase()));
    }
    names
}

fn has_subquery(expr: &Expr) -> bool {
    struct Subqueries;
    impl Visitor for Subqueries {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    expr.visit(&mut Subqueries).is_break()
}

fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast { .. })
}

fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => without_casts(expr),
        other => other,
    }
}

/// What its user would call it.
fn shown(expr: &Expr) -> String {
    match without_casts(expr) {
        Expr::Identifier(name) => folded(name),
        Expr::CompoundIdentifier(parts) => parts.last().map(folded).unwrap_or_default(),
        _ if has_subquery(expr) => "subquery".to_owned(),
        other => other.to_string(),
    }
}
