//! From a selector as written to a version or moment.
//!
//! Its expression needs no table of its own, but may be anything else: a literal, arithmetic on `now()`, a cast, a parameter, a scalar
//! subquery. Literals are read directly; the rest is planned and run as `SELECT <expr>`.

use std::ops::ControlFlow;

use arrow::datatypes::{DataType, TimeUnit};
use asof_storage::{Micros, SnapshotSelector};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, Visit, Visitor};

use super::moment::{compact_moment, parse_moment, wall_clock};
use crate::error::{Error, Location, Result};
use crate::plan::{Planner, Relation, StatementContext, parameters};
use crate::statement::{PLACEHOLDER_SCHEMA, Selector};

/// Evaluate a selector. While a statement is only described, a selector whose parameters have no value yet is the latest version.
///
/// # Errors
/// `Invalid`, naming the value, when it is neither a version nor a moment.
pub async fn evaluate(
    ctx: &StatementContext,
    selector: &Selector,
    relations: &[Option<Relation>],
    at: Location,
) -> Result<SnapshotSelector> {
    let refuse = |message: String| Error::Invalid { message, location: Some(at) };
    let (expr, version) = match selector {
        Selector::Ref(name) => return Ok(SnapshotSelector::Ref(name.clone())),
        Selector::CompactTimestamp(digits) => {
            let zone = ctx.session.time_zone();
            return compact_moment(digits, &zone).map(SnapshotSelector::Timestamp).map_err(refuse);
        }
        Selector::Version(expr) => (expr, true),
        Selector::Timestamp(expr) => (expr, false),
    };
    if ctx.parameters.is_none() && has_parameter(expr) {
        return Ok(SnapshotSelector::Latest);
    }
    let value = match literal(expr) {
        Some(value) => value,
        None => scalar(ctx, expr, relations, at).await?,
    };
    let zone = ctx.session.time_zone();
    if version {
        version_of(&value, &zone).map_err(refuse)
    } else {
        moment_of(&value, &zone).map(SnapshotSelector::Timestamp).map_err(refuse)
    }
}

/// Numbers of the occurrences inside a selector's subqueries.
pub(super) fn placeholders(selector: &Selector) -> Vec<usize> {
    let (Selector::Version(expr) | Selector::Timestamp(expr)) = selector else { return vec![] };
    let mut found = Placeholders::default();
    let _ = expr.visit(&mut found);
    found.tables
}

fn has_parameter(expr: &ast::Expr) -> bool {
    let mut found = Placeholders::default();
    let _ = expr.visit(&mut found);
    found.parameter
}

#[derive(Default)]
struct Placeholders {
    tables: Vec<usize>,
    parameter: bool,
}

impl Visitor for Placeholders {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ast::ObjectName) -> ControlFlow<()> {
        if let [schema, number] = name.0.as_slice()
            && schema.as_ident().is_some_and(|s| s.value == PLACEHOLDER_SCHEMA)
            && let Some(number) = number.as_ident().and_then(|n| n.value.parse().ok())
        {
            self.tables.push(number);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        self.parameter |= parameters::number(expr).is_some();
        ControlFlow::Continue(())
    }
}

/// Number and string literals, so that the common selectors cost no planning. Other numbers than 64-bit integers stay text, to be
/// named as written when refused.
fn literal(expr: &ast::Expr) -> Option<ScalarValue> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => Some(match digits.parse() {
                Ok(number) => ScalarValue::Int64(Some(number)),
                Err(_) => ScalarValue::Utf8View(Some(digits.clone())),
            }),
            ast::Value::SingleQuotedString(text) => Some(ScalarValue::Utf8(Some(text.clone()))),
            ast::Value::Null => Some(ScalarValue::Null),
            _ => None,
        },
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match literal(expr)? {
            ScalarValue::Int64(Some(number)) => Some(ScalarValue::Int64(Some(-number))),
            _ => None,
        },
        ast::Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}

async fn scalar(ctx: &StatementContext, expr: &ast::Expr, relations: &[Option<Relation>], at: Location) -> Result<ScalarValue> {
    // Occurrences that are not resolved yet cannot be inside this expression; anything may stand for them.
    let nothing = || Relation::Rows {
        name: "none".into(),
        rows: std::sync::Arc::new(datafusion::datasource::empty::EmptyTable::new(std::sync::Arc::new(arrow::datatypes::Schema::empty()))),
    };
    let relations = relations.iter().map(|r| r.clone().unwrap_or_else(nothing)).collect();
    let planner = Planner::new(ctx, relations)?;
    let batches = planner.collect(&select(expr)).await.map_err(|error| match error {
        Error::Invalid { message, .. } => Error::Invalid {
            message: format!("a selector is an expression without columns of its own: {expr}: {message}"),
            location: Some(at),
        },
        other => other,
    })?;
    let rows: usize = batches.iter().map(arrow::record_batch::RecordBatch::num_rows).sum();
    match batches.iter().find(|b| b.num_rows() > 0) {
        Some(batch) if rows == 1 => Ok(ScalarValue::try_from_array(batch.column(0), 0)?),
        _ => Err(Error::Invalid { message: format!("the selector {expr} gives {rows} rows instead of one value"), location: Some(at) }),
    }
}

fn select(expr: &ast::Expr) -> ast::Query {
    let select = ast::Select { projection: vec![ast::SelectItem::UnnamedExpr(expr.clone())], ..empty_select() };
    query(select)
}

/// A SELECT of nothing, to be filled in.
pub(crate) fn empty_select() -> ast::Select {
    ast::Select {
        select_token: ast::helpers::attached_token::AttachedToken::empty(),
        optimizer_hints: vec![],
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: vec![],
        exclude: None,
        into: None,
        from: vec![],
        lateral_views: vec![],
        prewhere: None,
        selection: None,
        connect_by: vec![],
        group_by: ast::GroupByExpr::Expressions(vec![], vec![]),
        cluster_by: vec![],
        distribute_by: vec![],
        sort_by: vec![],
        having: None,
        named_window: vec![],
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: ast::SelectFlavor::Standard,
    }
}

/// A query of one SELECT.
pub(crate) fn query(select: ast::Select) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(ast::SetExpr::Select(Box::new(select))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: vec![],
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: vec![],
    }
}

fn version_of(value: &ScalarValue, zone: &str) -> Result<SnapshotSelector, String> {
    if let Ok(ScalarValue::Int64(Some(version))) = value.cast_to(&DataType::Int64)
        && value.data_type().is_integer()
    {
        return Ok(SnapshotSelector::Version(version));
    }
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => match text.trim().parse() {
            Ok(version) => Ok(SnapshotSelector::Version(version)),
            Err(_) if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => Err(not_a_version(text)),
            Err(_) => Ok(SnapshotSelector::Ref(text.clone())),
        },
        _ if value.is_null() => Err("VERSION AS OF NULL names no version: give a whole number".to_owned()),
        ScalarValue::TimestampMicrosecond(..)
        | ScalarValue::TimestampNanosecond(..)
        | ScalarValue::TimestampMillisecond(..)
        | ScalarValue::TimestampSecond(..)
        | ScalarValue::Date32(_) => moment_of(value, zone).map(SnapshotSelector::Timestamp),
        other => Err(not_a_version(&other.to_string())),
    }
}

fn not_a_version(text: &str) -> String {
    format!("VERSION AS OF {text}: a version is a whole number of 64 bits, a tag or a name; for a time use TIMESTAMP AS OF")
}

fn moment_of(value: &ScalarValue, zone: &str) -> Result<Micros, String> {
    match value {
        _ if value.is_null() => Err("TIMESTAMP AS OF NULL names no moment".to_owned()),
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) => parse_moment(text, zone),
        ScalarValue::Utf8View(Some(text)) => match text.parse::<f64>() {
            Ok(_) => seconds(value),
            Err(_) => parse_moment(text, zone),
        },
        ScalarValue::Date32(_) | ScalarValue::Date64(_) => wall_clock(micros(value, None)?, zone),
        ScalarValue::TimestampSecond(_, tz)
        | ScalarValue::TimestampMillisecond(_, tz)
        | ScalarValue::TimestampMicrosecond(_, tz)
        | ScalarValue::TimestampNanosecond(_, tz) => match tz {
            Some(_) => Ok(Micros(micros(value, Some("UTC"))?)),
            None => wall_clock(micros(value, None)?, zone),
        },
        other if other.data_type().is_numeric() => seconds(other),
        other => Err(format!("TIMESTAMP AS OF {other} of type {} is no moment", other.data_type())),
    }
}

fn micros(value: &ScalarValue, zone: Option<&str>) -> Result<i64, String> {
    match value.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into))) {
        Ok(ScalarValue::TimestampMicrosecond(Some(micros), _)) => Ok(micros),
        _ => Err(format!("{value} is no moment")),
    }
}

/// A number is seconds since 1970, as in Spark.
fn seconds(value: &ScalarValue) -> Result<Micros, String> {
    match value.cast_to(&DataType::Decimal128(38, 6)) {
        Ok(ScalarValue::Decimal128(Some(micros), ..)) => {
            i64::try_from(micros).map(Micros).map_err(|_| format!("{value} seconds after 1970 is out of range"))
        }
        _ => Err(format!("{value} is no moment")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let check = |value: ScalarValue, expect: Result<SnapshotSelector, &str>| match (version_of(&value, "UTC"), expect) {
            (Ok(got), Ok(want)) => assert_eq!(got, want),
            (Err(got), Err(want)) => assert!(got.contains(want), "{got} lacks {want}"),
            (got, want) => panic!("{value}: {got:?}, not {want:?}"),
        };
        check(ScalarValue::from(3i32), Ok(SnapshotSelector::Version(3)));
        check(ScalarValue::from("2"), Ok(SnapshotSelector::Version(2)));
        check(ScalarValue::from("month_end"), Ok(SnapshotSelector::Ref("month_end".into())));
        check(ScalarValue::Float64(Some(1.5)), Err("1.5"));
        check(ScalarValue::from("99999999999999999999"), Err("99999999999999999999"));
        check(ScalarValue::Int64(None), Err("NULL"));
        check(ScalarValue::TimestampMicrosecond(Some(5), Some("UTC".into())), Ok(SnapshotSelector::Timestamp(Micros(5))));
    }

    #[test]
    fn moments() {
        let check = |value: ScalarValue, zone: &str, expect: i64| assert_eq!(moment_of(&value, zone), Ok(Micros(expect)), "{value}");
        check(ScalarValue::from(1i64), "UTC", 1_000_000);
        check(ScalarValue::Float64(Some(1.25)), "UTC", 1_250_000);
        check(ScalarValue::Date32(Some(1)), "UTC", 86_400_000_000);
        check(ScalarValue::Date32(Some(1)), "+01:00", 82_800_000_000);
        check(ScalarValue::TimestampMillisecond(Some(7), Some("+05:00".into())), "+01:00", 7_000);
        check(ScalarValue::TimestampMicrosecond(Some(3_600_000_000), None), "+01:00", 0);
        assert!(moment_of(&ScalarValue::Boolean(Some(true)), "UTC").is_err());
    }
}
