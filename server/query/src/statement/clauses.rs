//! Clauses that the planner would drop, and those it knows under another name.
//!
//! The parser reads the clauses of every dialect; DataFusion's planner looks at those it knows, and says nothing of the others:
//! `TABLESAMPLE (10 PERCENT)` gave all rows. A clause that would change the answer is refused by name here, or rewritten where there is a
//! form that is planned: `TOP` and `FETCH FIRST` to LIMIT, `WITH ROLLUP` to ROLLUP (…).

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, JoinOperator, LimitClause, Query, Select, SelectItem, SetExpr, TableFactor, TopQuantity,
    WildcardAdditionalOptions,
};

use super::{position, spelling};
use crate::error::{Error, Result};

fn refuse(clause: &str, instead: &str) -> Error {
    let message = if instead.is_empty() { clause.to_owned() } else { format!("{clause}; {instead}") };
    position::unsupported(message, None)
}

/// The first of these that is there is refused.
fn none_of(clauses: &[(bool, &str, &str)]) -> Result<()> {
    match clauses.iter().find(|(is_there, ..)| *is_there) {
        Some((_, clause, instead)) => Err(refuse(clause, instead)),
        None => Ok(()),
    }
}

/// A query's own clauses.
pub(super) fn query(query: &mut Query) -> Result<()> {
    none_of(&[
        (!query.locks.is_empty(), "FOR UPDATE and FOR SHARE", "a query reads a snapshot and locks nothing"),
        (query.for_clause.is_some(), "FOR XML, FOR JSON and FOR BROWSE", ""),
        (query.settings.is_some(), "SETTINGS", "use SET before the query"),
        (query.format_clause.is_some(), "FORMAT", "the client chooses the format"),
    ])?;
    top_to_limit(query)?;
    fetch_to_limit(query)
}

/// T-SQL's `SELECT TOP 5 …` as LIMIT.
fn top_to_limit(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let Some(top) = select.top.take() else { return Ok(()) };
    if top.percent || top.with_ties || query.limit_clause.is_some() || query.fetch.is_some() {
        return Err(position::unsupported(format!("{top}; write LIMIT"), None));
    }
    let limit = top.quantity.map(|quantity| match quantity {
        TopQuantity::Expr(expr) => expr,
        TopQuantity::Constant(number) => spelling::number(number.to_string()),
    });
    query.limit_clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() });
    Ok(())
}

/// The standard's `FETCH FIRST 5 ROWS ONLY` as LIMIT.
fn fetch_to_limit(query: &mut Query) -> Result<()> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    let one = || spelling::number("1".to_owned());
    match &mut query.limit_clause {
        _ if fetch.percent || fetch.with_ties => return Err(refuse(&fetch.to_string(), "write FETCH FIRST n ROWS ONLY or LIMIT")),
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(fetch.quantity.unwrap_or_else(one)),
        Some(_) => return Err(refuse("LIMIT and FETCH together", "write one of them")),
        clause @ None => {
            let limit = Some(fetch.quantity.unwrap_or_else(one));
            *clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() });
        }
    }
    Ok(())
}

/// A SELECT's clauses.
pub(super) fn select(select: &mut Select) -> Result<()> {
    none_of(&[
        (select.into.is_some(), "SELECT … INTO", "write CREATE TABLE … AS SELECT"),
        (!select.connect_by.is_empty(), "CONNECT BY and START WITH", "write WITH RECURSIVE"),
        (select.select_modifiers.is_some(), "MySQL's modifiers of SELECT", ""),
        (select.exclude.is_some(), "EXCLUDE behind the list", "write * EXCLUDE (…)"),
        (select.prewhere.is_some(), "PREWHERE", "write WHERE"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW", "write unnest(…) in the list"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY", ""),
        (!select.cluster_by.is_empty(), "CLUSTER BY", "write ORDER BY"),
        (!select.sort_by.is_empty(), "SORT BY", "write ORDER BY"),
        (select.value_table_mode.is_some(), "SELECT AS STRUCT and AS VALUE", "write named_struct(…)"),
    ])?;
    for item in &select.projection {
        if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
            wildcard(options)?;
        }
    }
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let JoinOperator::AsOf { .. } = join.join_operator {
            return Err(refuse("ASOF JOIN", "join on a window, or on the last row before by a lateral subquery"));
        }
    }
    group_by(&mut select.group_by)
}

fn wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    none_of(&[
        (options.opt_ilike.is_some(), "* ILIKE", "name the columns"),
        (options.opt_rename.is_some(), "* RENAME", "name the columns, each AS its new name"),
        (options.opt_alias.is_some(), "* AS", "name the columns"),
    ])
}

/// `GROUP BY a, b WITH ROLLUP` as `GROUP BY ROLLUP (a, b)`.
fn group_by(clause: &mut GroupByExpr) -> Result<()> {
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = &*clause;
    let Some(modifier) = modifiers.first() else { return Ok(()) };
    match (&*clause, modifier) {
        (GroupByExpr::Expressions(exprs, all), GroupByWithModifier::Rollup | GroupByWithModifier::Cube) if all.len() == 1 => {
            let sets = exprs.iter().map(|expr| vec![expr.clone()]).collect();
            let grouped = if *modifier == GroupByWithModifier::Rollup { Expr::Rollup(sets) } else { Expr::Cube(sets) };
            *clause = GroupByExpr::Expressions(vec![grouped], Vec::new());
            Ok(())
        }
        _ => Err(refuse(&format!("GROUP BY … {modifier}"), "write GROUP BY ROLLUP (…), CUBE (…) or GROUPING SETS (…)")),
    }
}

/// What stands in FROM.
pub(super) fn factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table { with_ordinality, partitions, json_path, sample, .. } => none_of(&[
            (sample.is_some(), "TABLESAMPLE", "write WHERE random() < 0.1, or LIMIT"),
            (*with_ordinality, "WITH ORDINALITY", "write row_number() OVER ()"),
            (!partitions.is_empty(), "PARTITION (…)", "write WHERE on the partition columns"),
            (json_path.is_some(), "a path into JSON in FROM", ""),
        ]),
        TableFactor::Derived { sample: Some(_), .. } => Err(refuse("TABLESAMPLE", "write WHERE random() < 0.1, or LIMIT")),
        TableFactor::Pivot { .. } => Err(refuse("PIVOT", "write an aggregate with FILTER (WHERE …) for each column")),
        TableFactor::Unpivot { .. } => Err(refuse("UNPIVOT", "write a UNION ALL of the columns")),
        TableFactor::MatchRecognize { .. } => Err(refuse("MATCH_RECOGNIZE", "")),
        TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => Err(refuse("JSON_TABLE and OPENJSON", "")),
        TableFactor::XmlTable { .. } => Err(refuse("XMLTABLE", "")),
        TableFactor::SemanticView { .. } => Err(refuse("SEMANTIC_VIEW", "")),
        _ => Ok(()),
    }
}
