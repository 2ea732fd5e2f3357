//! Table occurrences, taken out of the tree.
//!
//! A walk over the whole statement (joins, CTEs, subqueries in every place an expression can stand, set operations, DML sources)
//! replaces each table by the placeholder `"__asof"."<n>"` and puts name and selector into [`Occurrences`]. Names of CTEs stay, with the
//! scoping of SQL: a CTE is seen by the CTEs after it and by its query, and by itself when RECURSIVE. Table functions stay too.
//!
//! A placeholder keeps the name by which columns refer to it: its alias, else the table's last name part. Columns qualified by more
//! (`main.t.x`) are rewritten to that alias; when two tables of one FROM end in the same part, the alias is the whole name.
//!
//! The same walk rewrites literals (see [`super::spelling`]) and keeps trees shallow (see [`super::nesting`]).

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias,
    TableAliasColumnDef, TableFactor, TableFunctionArgs, TableVersion, TableWithJoins, VisitMut, VisitorMut, With,
};

use super::selector::{self, Site, Spelling};
use super::{Occurrences, PLACEHOLDER_SCHEMA, Selector, TableOccurrence, TableTarget, clauses, nesting, position, spelling};
use crate::error::{Error, Location, Result};

/// A table of a FROM that is written with several parts and no alias.
struct Qualified {
    parts: Vec<String>,
    alias: Ident,
}

/// The walk.
pub(super) struct Relations {
    sites: Vec<Option<Site>>,
    option: Option<Selector>,
    tables: Occurrences,
    /// CTEs in scope, with how many of that name.
    ctes: HashMap<String, usize>,
    /// Names in the order they came into scope.
    cte_order: Vec<String>,
    /// For each query being walked: its WITH, how many CTEs and frames there were before it.
    queries: Vec<(Option<With>, usize, usize)>,
    /// For each SELECT in scope, its qualified tables.
    frames: Vec<Vec<Qualified>>,
    depth: usize,
}

impl Relations {
    pub(super) fn new(sites: Vec<Site>, option: Option<Selector>) -> Self {
        Self {
            sites: sites.into_iter().map(Some).collect(),
            option,
            tables: Vec::new(),
            ctes: HashMap::new(),
            cte_order: Vec::new(),
            queries: Vec::new(),
            frames: Vec::new(),
            depth: 0,
        }
    }

    /// Take the tables out of a part of the statement.
    pub(super) fn walk<T: VisitMut>(&mut self, part: &mut T) -> Result<()> {
        match part.visit(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// A table that stands alone, as in DESCRIBE.
    pub(super) fn alone(&mut self, name: &ObjectName, version: Option<TableVersion>) -> Result<()> {
        let (_, alias) = self.occurrence(name, version)?;
        match alias {
            Some(alias) => Err(position::syntax(format!("an alias, {}, says nothing here", alias.name), position::of(alias.name.span))),
            None => Ok(()),
        }
    }

    /// Has any table so far a selector?
    pub(super) fn has_selector(&self) -> bool {
        self.tables.iter().any(|table| table.selector.is_some())
    }

    /// Has no table been seen so far?
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The selector of RESTORE.
    pub(super) fn claim(&mut self, version: TableVersion) -> Result<Selector> {
        let (mut selector, _) = self.selector(version)?;
        self.enter(&mut selector)?;
        Ok(selector)
    }

    /// Everything has been walked: each selector must have found its table.
    pub(super) fn finish(self) -> Result<Occurrences> {
        match self.sites.into_iter().flatten().next() {
            Some(site) => {
                Err(position::invalid("a selector that belongs to no table: it stands right behind a table's name or alias", site.location))
            }
            None => Ok(self.tables),
        }
    }

    /// What a table version of the parser says; and the alias that stood before it.
    fn selector(&mut self, version: TableVersion) -> Result<(Selector, Option<TableAlias>)> {
        let (spelling, value, alias) = match version {
            TableVersion::ForSystemTimeAsOf(Expr::Prefixed { prefix, value }) if selector::is_marker(&prefix.value) => {
                let site = selector::site_of(&prefix.value).and_then(|n| self.sites.get_mut(n)).and_then(Option::take);
                let Some(site) = site else { return Err(Error::Internal("a selector was read twice".to_owned())) };
                (site.spelling, *value, site.alias)
            }
            TableVersion::ForSystemTimeAsOf(value) | TableVersion::TimestampAsOf(value) => (Spelling::Timestamp, value, None),
            TableVersion::VersionAsOf(value) => (Spelling::Version, value, None),
            TableVersion::Function(call) => {
                return Err(position::unsupported(format!("{call}; write AT (VERSION => n) or AT (TIMESTAMP => moment)"), None));
            }
            TableVersion::Changes { .. } => return Err(position::unsupported("CHANGES (…); use table_changes(…)", None)),
        };
        Ok((selector::selector(spelling, value), alias))
    }

    /// Walk a selector's own expression: it may hold scalar subqueries, which see no CTE, and no columns.
    fn enter(&mut self, selector: &mut Selector) -> Result<()> {
        let (Selector::Version(expr) | Selector::Timestamp(expr)) = selector else { return Ok(()) };
        reject_columns(expr)?;
        let outer = (std::mem::take(&mut self.ctes), std::mem::take(&mut self.cte_order), std::mem::take(&mut self.frames));
        let option = self.option.take();
        let walked = self.walk(expr);
        (self.ctes, self.cte_order, self.frames) = outer;
        self.option = option;
        walked
    }

    /// A table's name, its selector taken from a path's suffix if there.
    fn occurrence(&mut self, name: &ObjectName, version: Option<TableVersion>) -> Result<(usize, Option<TableAlias>)> {
        let (target, suffix) = target(name)?;
        let location = location_of(name);
        let (mut selector, alias) = match version.map(|v| self.selector(v)).transpose()? {
            Some((selector, alias)) => (Some(selector), alias),
            None => (None, None),
        };
        if suffix.is_some() && selector.is_some() {
            return Err(position::invalid(format!("two selectors for {target}: one in its path, one behind it; keep one"), location));
        }
        selector = selector.or(suffix);
        if let Some(selector) = &mut selector {
            self.enter(selector)?;
        }
        match (&selector, &self.option) {
            (Some(_), Some(_)) => {
                let what = format!(
                    "{target} has a selector of its own, and OPTION (FOR TIMESTAMP AS OF …) is for every table; keep one of the two"
                );
                return Err(position::invalid(what, location));
            }
            (None, Some(option)) => selector = Some(option.clone()),
            _ => {}
        }
        let location = location.unwrap_or(Location { line: 1, column: 1 });
        self.tables.push(TableOccurrence { target, selector, location });
        Ok((self.tables.len() - 1, alias))
    }

    fn is_cte(&self, name: &ObjectName) -> bool {
        match name.0.as_slice() {
            [ObjectNamePart::Identifier(ident)] => self.ctes.contains_key(&folded(ident)),
            _ => false,
        }
    }

    fn add_cte(&mut self, name: String) {
        *self.ctes.entry(name.clone()).or_default() += 1;
        self.cte_order.push(name);
    }

    fn remove_ctes(&mut self, keep: usize) {
        for name in self.cte_order.drain(keep..) {
            if let Some(count) = self.ctes.get_mut(&name) {
                *count -= 1;
                if *count == 0 {
                    self.ctes.remove(&name);
                }
            }
        }
    }

    fn enter_with(&mut self, with: &mut With) -> Result<()> {
        for cte in &mut with.cte_tables {
            let name = folded(&cte.alias.name);
            if with.recursive {
                self.add_cte(name.clone());
            }
            self.walk(&mut cte.query)?;
            if !with.recursive {
                self.add_cte(name);
            }
        }
        Ok(())
    }

    fn replace(&mut self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, alias, args, version, with_hints, partitions, .. } = factor else { return Ok(()) };
        let location = location_of(name);
        if args.is_some() || self.is_cte(name) {
            let Some(version) = version.take() else {
                spark_range(name, args.as_mut(), alias);
                return Ok(());
            };
            let at = self.place_of(&version).or(location);
            let (what, instead) = if args.is_some() {
                ("table function", "leave the selector out")
            } else {
                ("common table expression", "put the selector on the tables inside its query")
            };
            return Err(position::invalid(format!("{name} is a {what} and has no versions: {instead}"), at));
        }
        if !partitions.is_empty() {
            return Err(position::unsupported("PARTITION (…) behind a table; filter its partition columns in WHERE", location));
        }
        with_hints.clear();
        let (number, own_alias) = self.occurrence(name, version.take())?;
        if own_alias.is_some() && alias.is_some() {
            return Err(position::syntax(
                format!("{name} has two aliases: keep the one before the selector, or the one behind it"),
                location,
            ));
        }
        if alias.is_none() {
            *alias = own_alias.or_else(|| self.alias_of(name));
        }
        let part = |text: String| ObjectNamePart::Identifier(Ident::with_quote('"', text));
        *name = ObjectName(vec![part(PLACEHOLDER_SCHEMA.to_owned()), part(number.to_string())]);
        Ok(())
    }

    /// Where a selector stands, if it is one of ours.
    fn place_of(&self, version: &TableVersion) -> Option<Location> {
        let TableVersion::ForSystemTimeAsOf(Expr::Prefixed { prefix, .. }) = version else { return None };
        selector::site_of(&prefix.value).and_then(|n| self.sites.get(n)).and_then(|site| site.as_ref()?.location)
    }

    /// The name by which columns refer to a table without an alias.
    fn alias_of(&self, name: &ObjectName) -> Option<TableAlias> {
        let parts: Vec<String> = name.0.iter().filter_map(|p| p.as_ident().map(folded)).collect();
        let known = self.frames.iter().rev().flatten().find(|known| known.parts == parts);
        let ident = match known {
            Some(known) => known.alias.clone(),
            None => name.0.last()?.as_ident()?.clone(),
        };
        Some(TableAlias { explicit: true, name: ident, columns: Vec::new(), at: None })
    }

    /// Note the tables of a FROM that are written with several parts.
    fn note_tables(&mut self, from: &[TableWithJoins]) {
        let mut names = Vec::new();
        for table in from {
            collect_names(table, &mut names);
        }
        let mut frame = Vec::new();
        for (parts, last, has_alias) in &names {
            if *has_alias || parts.len() < 2 {
                continue;
            }
            let same = names.iter().filter(|(other, _, aliased)| !aliased && other.last() == parts.last() && other != parts).count();
            let alias = if same == 0 { last.clone() } else { Ident::with_quote('"', parts.join(".")) };
            frame.push(Qualified { parts: parts.clone(), alias });
        }
        self.frames.push(frame);
    }

    /// `main.t.x` → `t.x`. `idents` is what qualifies and the column; false when nothing matches.
    fn shorten(&self, idents: &mut Vec<Ident>, at_least: usize) -> bool {
        let folded: Vec<String> = idents.iter().map(folded).collect();
        for known in self.frames.iter().rev().flatten() {
            for length in (2..=known.parts.len()).rev() {
                if folded.len() >= length + at_least && known.parts.ends_with(&folded[..length]) {
                    idents.splice(..length, [known.alias.clone()]);
                    return true;
                }
            }
        }
        false
    }
}

/// Spark's `range(start, end, step, partitions)`, whose column is `id`.
fn spark_range(name: &ObjectName, args: Option<&mut TableFunctionArgs>, alias: &mut Option<TableAlias>) {
    let is_range = matches!(name.0.as_slice(), [ObjectNamePart::Identifier(ident)] if ident.value.eq_ignore_ascii_case("range"));
    let Some(args) = args.filter(|_| is_range) else { return };
    args.args.truncate(3);
    let alias = alias.get_or_insert_with(|| TableAlias { explicit: true, name: Ident::new("range"), columns: Vec::new(), at: None });
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: Ident::new("id"), data_type: None });
    }
}

/// The tables written in a FROM item: parts, last part, has it an alias?
fn collect_names(table: &TableWithJoins, names: &mut Vec<(Vec<String>, Ident, bool)>) {
    for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let idents: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
                if let Some(last) = idents.last() {
                    names.push((idents.iter().map(|i| folded(i)).collect(), (*last).clone(), alias.is_some()));
                }
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => collect_names(table_with_joins, names),
            _ => {}
        }
    }
}

/// An identifier as names compare: lower case unless quoted.
pub(super) fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// Where a name stands.
pub(super) fn location_of(name: &ObjectName) -> Option<Location> {
    name.0.first().and_then(ObjectNamePart::as_ident).and_then(|ident| position::of(ident.span))
}

/// The parts of a name, unquoted ones in lower case.
pub(super) fn parts_of(name: &ObjectName) -> Result<Vec<String>> {
    let part = |part: &ObjectNamePart| part.as_ident().map(folded).filter(|text| !text.is_empty());
    name.0.iter().map(part).collect::<Option<Vec<_>>>().ok_or_else(|| position::syntax(format!("{name} is no name"), location_of(name)))
}

/// What a name stands for, and the selector in a path's suffix.
pub(super) fn target(name: &ObjectName) -> Result<(TableTarget, Option<Selector>)> {
    let parts = parts_of(name)?;
    if let [ObjectNamePart::Identifier(format), ObjectNamePart::Identifier(path)] = name.0.as_slice() {
        let known = format.quote_style.is_none() && ["delta", "iceberg"].iter().any(|known| format.value.eq_ignore_ascii_case(known));
        if known && path.quote_style.is_some() {
            let (path, selector) = path_suffix(&path.value);
            return Ok((TableTarget::Path { format: folded(format), path }, selector));
        }
    }
    if parts.len() > 4 {
        let what = format!("{name} has {} parts; a table's name is [catalog.][schema.]table", parts.len());
        return Err(position::invalid(what, location_of(name)));
    }
    Ok((TableTarget::Name(parts), None))
}

/// `/x@v1` → `/x`, version 1.
fn path_suffix(path: &str) -> (String, Option<Selector>) {
    let Some((head, tail)) = path.rsplit_once('@') else { return (path.to_owned(), None) };
    match selector::read_suffix(tail) {
        Some((Spelling::Version, version)) if !head.is_empty() => (head.to_owned(), Some(Selector::Version(spelling::number(version)))),
        Some((_, digits)) if !head.is_empty() => (head.to_owned(), Some(Selector::CompactTimestamp(digits))),
        _ => (path.to_owned(), None),
    }
}

/// A selector's expression names no column, save within its subqueries.
fn reject_columns(expr: &mut Expr) -> Result<()> {
    struct Columns {
        subqueries: usize,
    }
    impl VisitorMut for Columns {
        type Break = (String, Option<Location>);
        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
            self.subqueries += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
            self.subqueries -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
            let first = match &*expr {
                Expr::Identifier(ident) => Some(ident),
                Expr::CompoundIdentifier(idents) => idents.first(),
                _ => None,
            };
            match first {
                Some(ident) if self.subqueries == 0 => ControlFlow::Break((expr.to_string(), position::of(ident.span))),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match VisitMut::visit(expr, &mut Columns { subqueries: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break((name, location)) => {
            let what = format!(
                "a selector is one moment for the whole table, so it cannot use the column {name}; a tag or branch is written in quotes: '{name}'"
            );
            Err(position::invalid(what, location))
        }
    }
}

/// The same for a selector.
pub(super) fn reject_columns_of(selector: &Selector) -> Result<()> {
    match selector {
        Selector::Version(expr) | Selector::Timestamp(expr) => reject_columns(&mut expr.clone()),
        Selector::CompactTimestamp(_) | Selector::Ref(_) => Ok(()),
    }
}

fn flow(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Relations {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let SetExpr::Table(_) = query.body.as_ref() {
            return ControlFlow::Break(position::unsupported(format!("{}; write SELECT * FROM …", query.body), None));
        }
        if matches!(query.body.as_ref(), SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)) {
            return ControlFlow::Break(position::unsupported("a change inside a query; send it as a statement of its own", None));
        }
        flow(clauses::query(query))?;
        let mut with = query.with.take();
        let before = (self.cte_order.len(), self.frames.len());
        if let Some(with) = &mut with {
            flow(self.enter_with(with))?;
        }
        self.queries.push((with, before.0, before.1));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let Some((with, ctes, frames)) = self.queries.pop() {
            query.with = with;
            self.remove_ctes(ctes);
            self.frames.truncate(frames);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(clauses::select(select))?;
        self.note_tables(&select.from);
        for item in &mut select.projection {
            let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item else { continue };
            let mut idents: Vec<Ident> = name.0.iter().filter_map(|p| p.as_ident().cloned()).collect();
            if idents.len() == name.0.len() && self.shorten(&mut idents, 0) {
                name.0 = idents.into_iter().map(ObjectNamePart::Identifier).collect();
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        flow(clauses::factor(factor))?;
        flow(self.replace(factor))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        nesting::balance(expr);
        self.depth += 1;
        if self.depth > nesting::MAX_CHAIN {
            let what = format!("an expression has more than {} operators in a row; use IN (…), parentheses or VALUES", nesting::MAX_CHAIN);
            return ControlFlow::Break(position::syntax(what, None));
        }
        if let Expr::CompoundIdentifier(idents) = expr {
            self.shorten(idents, 1);
        }
        spelling::rewrite(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}
