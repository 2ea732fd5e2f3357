//! Columns by name without case, where that is unambiguous.
//!
//! Spark's and T-SQL's users write `id`, `ID` or `Id` for the column `Id`. DataFusion lower-cases what is not quoted and then compares
//! with case, so that such a column is reached only as `"Id"`. [`fold`] runs once the tables are known: a name without quotes becomes
//! the quoted name of the column it means. The rule, for each name, from the innermost SELECT outwards:
//!
//! 1. a column (or alias) that is spelled like the lower-cased name: DataFusion finds it, nothing changes;
//! 2. exactly one that differs in case only: that one;
//! 3. several: nothing changes, and DataFusion says what there is.
//!
//! In ORDER BY the SELECT's own names come first, elsewhere its tables' columns. Quoted names are left alone. Aliases of the outermost
//! SELECT keep their case in the result (`AS TotalSales`), and are found by any.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use datafusion::sql::sqlparser::ast::{
    self, Cte, ExceptSelectItem, ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
    With,
};

use super::PLACEHOLDER_SCHEMA;
use super::relations::folded;

/// Fold the names of a statement over placeholders. `known`: the columns of all its tables together.
pub fn fold(statement: &mut ast::Statement, known: &[String]) {
    let names = Rc::new(Names::of(known.iter().cloned()));
    run(statement, Rc::new(move |_| Rc::clone(&names)));
}

/// As [`fold`], with the columns of each table apart: entry `n` is the table of placeholder `n`. Tells `a.ID` from `b.id`.
pub fn fold_each(statement: &mut ast::Statement, known: &[Vec<String>]) {
    let names: Vec<Rc<Names>> = known.iter().map(|columns| Rc::new(Names::of(columns.iter().cloned()))).collect();
    run(statement, Rc::new(move |n| names.get(n).cloned().unwrap_or_default()));
}

fn run(statement: &mut ast::Statement, tables: Tables) {
    let mut folder = Folder { tables, ctes: Vec::new(), scopes: Vec::new(), queries: Vec::new(), outermost: true };
    let _ = VisitMut::visit(statement, &mut folder);
}

type Tables = Rc<dyn Fn(usize) -> Rc<Names>>;

/// Names, by their lower case.
#[derive(Debug, Default)]
struct Names {
    by_lower: HashMap<String, Vec<String>>,
}

impl Names {
    fn of(names: impl Iterator<Item = String>) -> Self {
        let mut all = Self::default();
        names.for_each(|name| all.add(name));
        all
    }

    fn add(&mut self, name: String) {
        let same = self.by_lower.entry(name.to_lowercase()).or_default();
        if !same.contains(&name) {
            same.push(name);
        }
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.by_lower.values().flatten()
    }
}

/// What a name without quotes means among some names.
enum Meaning {
    Nothing,
    AsItIs,
    This(String),
}

fn meaning<'a>(lower: &str, groups: impl Iterator<Item = &'a Rc<Names>>) -> Meaning {
    let mut candidates: Vec<&str> = Vec::new();
    for name in groups.filter_map(|names| names.by_lower.get(lower)).flatten() {
        if name == lower {
            return Meaning::AsItIs;
        }
        if !candidates.contains(&name.as_str()) {
            candidates.push(name);
        }
    }
    match candidates.as_slice() {
        [] => Meaning::Nothing,
        [one] => Meaning::This((*one).to_owned()),
        _ => Meaning::AsItIs,
    }
}

/// The names that a SELECT's expressions see.
#[derive(Default)]
struct Scope {
    /// Columns of each table of FROM.
    from: Vec<Rc<Names>>,
    /// The same, by the table's name.
    qualified: HashMap<String, Rc<Names>>,
    /// What the SELECT gives.
    own: Rc<Names>,
    /// In ORDER BY: its own names come first.
    ordering: bool,
}

struct Folder {
    tables: Tables,
    ctes: Vec<(String, Rc<Names>)>,
    scopes: Vec<Scope>,
    /// For each query: its WITH, and how many CTEs and scopes there were before it.
    queries: Vec<(Option<With>, usize, usize)>,
    outermost: bool,
}

impl Folder {
    fn resolve(&self, ident: &Ident, qualifier: Option<&str>) -> Option<String> {
        if ident.quote_style.is_some() {
            return None;
        }
        let lower = ident.value.to_lowercase();
        for scope in self.scopes.iter().rev() {
            let own = std::iter::once(&scope.own);
            let found = match qualifier {
                Some(qualifier) => match scope.qualified.get(qualifier) {
                    Some(names) => return this(meaning(&lower, std::iter::once(names))),
                    None => Meaning::Nothing,
                },
                None if scope.ordering => or_else(meaning(&lower, own), || meaning(&lower, scope.from.iter())),
                None => or_else(meaning(&lower, scope.from.iter()), || meaning(&lower, own)),
            };
            if !matches!(found, Meaning::Nothing) {
                return this(found);
            }
        }
        None
    }

    fn fold(&self, ident: &mut Ident, qualifier: Option<&str>) {
        if let Some(name) = self.resolve(ident, qualifier) {
            *ident = Ident { value: name, quote_style: Some('"'), span: ident.span };
        }
    }

    fn is_table(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.qualified.contains_key(name))
    }

    /// The columns of a FROM item's tables, with their names.
    fn columns(&mut self, table: &TableWithJoins, found: &mut Vec<(Option<String>, Rc<Names>)>) {
        for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
            let (alias, names) = match factor {
                TableFactor::Table { name, alias, args: None, .. } => (alias, self.table(name)),
                TableFactor::Derived { subquery, alias, .. } => (alias, Rc::new(self.outputs(subquery))),
                TableFactor::NestedJoin { table_with_joins, alias } => {
                    if alias.is_none() {
                        self.columns(table_with_joins, found);
                    }
                    continue;
                }
                TableFactor::Table { alias, .. }
                | TableFactor::UNNEST { alias, .. }
                | TableFactor::TableFunction { alias, .. }
                | TableFactor::Function { alias, .. } => (alias, Rc::default()),
                _ => continue,
            };
            let names = match alias {
                Some(alias) if !alias.columns.is_empty() => Rc::new(Names::of(alias.columns.iter().map(|column| folded(&column.name)))),
                _ => names,
            };
            let qualifier = match (alias, factor) {
                (Some(alias), _) => Some(folded(&alias.name)),
                (None, TableFactor::Table { name, .. }) => name.0.last().and_then(ObjectNamePart::as_ident).map(folded),
                _ => None,
            };
            found.push((qualifier, names));
        }
    }

    /// A placeholder's or a CTE's columns.
    fn table(&self, name: &ObjectName) -> Rc<Names> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
        match parts.as_slice() {
            [schema, number] if schema.value == PLACEHOLDER_SCHEMA => number.value.parse().map(|n| (self.tables)(n)).unwrap_or_default(),
            [cte] => {
                let name = folded(cte);
                self.ctes.iter().rev().find(|(known, _)| *known == name).map(|(_, names)| Rc::clone(names)).unwrap_or_default()
            }
            _ => Rc::default(),
        }
    }

    fn scope(&mut self, select: &Select) -> Scope {
        let mut found = Vec::new();
        for table in &select.from {
            self.columns(table, &mut found);
        }
        let mut scope = Scope::default();
        for (name, names) in found {
            if let Some(name) = name {
                scope.qualified.insert(name, Rc::clone(&names));
            }
            scope.from.push(names);
        }
        scope
    }

    /// The names that a SELECT gives.
    fn own(&mut self, select: &Select, scope: Scope) -> (Scope, Names) {
        let mut own = Names::default();
        self.scopes.push(scope);
        for item in &select.projection {
            match item {
                SelectItem::UnnamedExpr(Expr::Identifier(ident)) => own.add(self.resolve(ident, None).unwrap_or_else(|| folded(ident))),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(idents)) => {
                    if let [qualifier @ .., ident] = idents.as_slice() {
                        let qualifier = qualifier.last().map(folded);
                        own.add(self.resolve(ident, qualifier.as_deref()).unwrap_or_else(|| folded(ident)));
                    }
                }
                SelectItem::ExprWithAlias { alias, .. } => own.add(folded(alias)),
                SelectItem::ExprWithAliases { aliases, .. } => aliases.iter().for_each(|alias| own.add(folded(alias))),
                SelectItem::Wildcard(_) => {
                    for names in self.scopes.last().iter().flat_map(|scope| &scope.from) {
                        names.all().cloned().for_each(|name| own.add(name));
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let table = name.0.last().and_then(ObjectNamePart::as_ident).map(folded).unwrap_or_default();
                    if let Some(names) = self.scopes.last().and_then(|scope| scope.qualified.get(&table)) {
                        names.all().cloned().for_each(|name| own.add(name));
                    }
                }
                SelectItem::QualifiedWildcard(..) | SelectItem::UnnamedExpr(_) => {}
            }
        }
        (self.scopes.pop().unwrap_or_default(), own)
    }

    /// The names that a query gives: those of its first SELECT.
    fn outputs(&mut self, query: &Query) -> Names {
        let before = self.ctes.len();
        self.enter_with(query.with.as_ref());
        let mut body = query.body.as_ref();
        let names = loop {
            match body {
                SetExpr::Select(select) => {
                    let scope = self.scope(select);
                    break self.own(select, scope).1;
                }
                SetExpr::SetOperation { left, .. } => body = left,
                SetExpr::Query(query) => break self.outputs(query),
                _ => break Names::default(),
            }
        };
        self.ctes.truncate(before);
        names
    }

    /// Note what the CTEs give, for the names behind them.
    fn enter_with(&mut self, with: Option<&With>) {
        for cte in with.iter().flat_map(|with| &with.cte_tables) {
            self.note_cte(cte);
        }
    }

    fn note_cte(&mut self, cte: &Cte) {
        let names = if cte.alias.columns.is_empty() {
            self.outputs(&cte.query)
        } else {
            Names::of(cte.alias.columns.iter().map(|column| folded(&column.name)))
        };
        self.ctes.push((folded(&cte.alias.name), Rc::new(names)));
    }

    fn wildcard(&self, options: &mut WildcardAdditionalOptions) {
        if let Some(ExceptSelectItem { first_element, additional_elements }) = &mut options.opt_except {
            std::iter::once(first_element).chain(additional_elements).for_each(|ident| self.fold(ident, None));
        }
        let excluded: Vec<&mut ObjectName> = match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => vec![name],
            Some(ExcludeSelectItem::Multiple(names)) => names.iter_mut().collect(),
            None => Vec::new(),
        };
        excluded.into_iter().for_each(|name| self.fold_name(name));
        for element in options.opt_replace.iter_mut().flat_map(|replace| &mut replace.items) {
            self.fold(&mut element.column_name, None);
        }
    }

    fn fold_name(&self, name: &mut ObjectName) {
        if let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() {
            self.fold(ident, None);
        }
    }

    /// `USING (k)`.
    fn joins(&self, table: &mut TableWithJoins) {
        for join in &mut table.joins {
            let constraint = match &mut join.join_operator {
                JoinOperator::Join(c)
                | JoinOperator::Inner(c)
                | JoinOperator::Left(c)
                | JoinOperator::LeftOuter(c)
                | JoinOperator::Right(c)
                | JoinOperator::RightOuter(c)
                | JoinOperator::FullOuter(c)
                | JoinOperator::Semi(c)
                | JoinOperator::LeftSemi(c)
                | JoinOperator::RightSemi(c)
                | JoinOperator::Anti(c)
                | JoinOperator::LeftAnti(c)
                | JoinOperator::RightAnti(c) => c,
                _ => continue,
            };
            if let JoinConstraint::Using(names) = constraint {
                names.iter_mut().for_each(|name| self.fold_name(name));
            }
        }
    }
}

fn or_else(found: Meaning, other: impl FnOnce() -> Meaning) -> Meaning {
    if matches!(found, Meaning::Nothing) { other() } else { found }
}

fn this(found: Meaning) -> Option<String> {
    match found {
        Meaning::This(name) => Some(name),
        Meaning::AsItIs | Meaning::Nothing => None,
    }
}

/// Aliases of a result keep their case.
fn keep_case(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                if let SelectItem::ExprWithAlias { alias, .. } = item
                    && alias.value.chars().any(char::is_uppercase)
                {
                    alias.quote_style = Some('"');
                }
            }
        }
        SetExpr::SetOperation { left, .. } => keep_case(left),
        SetExpr::Query(query) => keep_case(&mut query.body),
        _ => {}
    }
}

impl VisitorMut for Folder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if std::mem::take(&mut self.outermost) {
            keep_case(&mut query.body);
        }
        let mut with = query.with.take();
        let before = self.ctes.len();
        for cte in with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            VisitMut::visit(&mut cte.query, self)?;
            self.note_cte(cte);
        }
        self.queries.push((with, before, self.scopes.len()));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some((with, ctes, scopes)) = self.queries.pop() {
            query.with = with;
            self.ctes.truncate(ctes);
            self.scopes.truncate(scopes);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // The scope that another SELECT of a set operation left for ORDER BY.
        let outside = self.queries.last().map_or(0, |(_, _, scopes)| *scopes);
        if self.scopes.len() > outside && self.scopes.last().is_some_and(|scope| scope.ordering) {
            self.scopes.pop();
        }
        let scope = self.scope(select);
        let (mut scope, own) = self.own(select, scope);
        scope.own = Rc::new(own);
        self.scopes.push(scope);
        for item in &mut select.projection {
            if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
                self.wildcard(options);
            }
        }
        for table in &mut select.from {
            self.joins(table);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        if let Some(scope) = self.scopes.last_mut() {
            scope.ordering = true;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.fold(ident, None),
            Expr::CompoundIdentifier(idents) => {
                if let [first, second, ..] = idents.as_mut_slice() {
                    let qualifier = folded(first);
                    if self.is_table(&qualifier) {
                        self.fold(second, Some(&qualifier));
                    } else {
                        self.fold(first, None);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{Kind, parse};

    fn text(sql: &str, known: &[&[&str]]) -> String {
        let Ok(Kind::Query(query)) = parse(sql).map(|s| s.kind) else { panic!("a query: {sql}") };
        let mut statement = ast::Statement::Query(query);
        let known: Vec<Vec<String>> = known.iter().map(|columns| columns.iter().map(|c| (*c).to_owned()).collect()).collect();
        fold_each(&mut statement, &known);
        statement.to_string().replace("\"__asof\".", "")
    }

    #[test]
    fn names_find_their_column() {
        let check = |sql: &str, known: &[&[&str]], expect: &str| assert_eq!(text(sql, known), expect, "{sql}");
        check(
            "SELECT id, ID, \"id\", x FROM t WHERE iD = 1",
            &[&["Id", "x"]],
            r#"SELECT "Id", "Id", "id", x FROM "0" AS t WHERE "Id" = 1"#,
        );
        check("SELECT ID FROM t", &[&["id", "ID"]], r#"SELECT ID FROM "0" AS t"#);
        check("SELECT ID FROM t", &[&["Id", "iD"]], r#"SELECT ID FROM "0" AS t"#);
        check(
            "SELECT a.id, b.id FROM t a JOIN u b ON a.id = b.ID",
            &[&["ID"], &["id"]],
            r#"SELECT a."ID", b.id FROM "0" a JOIN "1" b ON a."ID" = b.ID"#,
        );
        check(
            "SELECT * EXCLUDE (ID) FROM t a JOIN u USING (key)",
            &[&["Id", "KEY"], &["KEY"]],
            r#"SELECT * EXCLUDE ("Id") FROM "0" a JOIN "1" AS u USING("KEY")"#,
        );
        check(
            "SELECT name FROM (SELECT upper(name) AS name FROM t) s",
            &[&["Name"]],
            r#"SELECT name FROM (SELECT upper("Name") AS name FROM "0" AS t) s"#,
        );
        check("SELECT NAME FROM (SELECT * FROM t) s", &[&["Name"]], r#"SELECT "Name" FROM (SELECT * FROM "0" AS t) s"#);
        check(
            "WITH c AS (SELECT id FROM t) SELECT c.ID FROM c",
            &[&["Id"]],
            r#"WITH c AS (SELECT "Id" FROM "0" AS t) SELECT c."Id" FROM c"#,
        );
        check(
            "SELECT sum(Revenue) AS revenue FROM t ORDER BY revenue",
            &[&["Revenue"]],
            r#"SELECT sum("Revenue") AS revenue FROM "0" AS t ORDER BY revenue"#,
        );
        check(
            "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.K)",
            &[&["K", "A"], &["k"]],
            r#"SELECT "A" FROM "0" AS t WHERE EXISTS (SELECT 1 FROM "1" AS u WHERE u.k = t."K")"#,
        );
        check("SELECT s.f FROM t", &[&["S"]], r#"SELECT "S".f FROM "0" AS t"#);
        check(
            "SELECT a FROM t UNION ALL SELECT b FROM u ORDER BY a",
            &[&["A"], &["B"]],
            r#"SELECT "A" FROM "0" AS t UNION ALL SELECT "B" FROM "1" AS u ORDER BY a"#,
        );
    }

    #[test]
    fn aliases_of_the_result_keep_their_case() {
        let check = |sql: &str, expect: &str| assert_eq!(text(sql, &[&["x"]]), expect, "{sql}");
        check("SELECT x AS Total FROM t ORDER BY total DESC", r#"SELECT x AS "Total" FROM "0" AS t ORDER BY "Total" DESC"#);
        check("SELECT x AS Total, count(*) FROM t GROUP BY TOTAL", r#"SELECT x AS "Total", count(*) FROM "0" AS t GROUP BY "Total""#);
        check("SELECT Total FROM (SELECT x AS Total FROM t) s", r#"SELECT Total FROM (SELECT x AS Total FROM "0" AS t) s"#);
    }
}
