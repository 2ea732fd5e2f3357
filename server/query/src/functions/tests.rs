//! What users type, planned and run by DataFusion as the engine does.

use std::sync::Arc;

use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::sqlparser::ast;

use super::register;
use crate::statement::{Kind, Options, parse_with};

async fn rows(sql: &str, zone: &str) -> Result<String> {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    config.options_mut().execution.time_zone = Some(zone.to_owned());
    let mut context = SessionContext::new_with_config(config);
    register(&mut context)?;
    let statement = parse_with(sql, Options::default()).map_err(|error| datafusion::error::DataFusionError::External(Box::new(error)))?;
    let Kind::Query(query) = statement.kind else { panic!("a query: {sql}") };
    let plan =
        context.state().statement_to_plan(datafusion::sql::parser::Statement::Statement(Box::new(ast::Statement::Query(query)))).await?;
    let batches = context.execute_logical_plan(plan).await?.collect().await?;
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in batches {
        let columns =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<std::result::Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            lines.push(columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join(" | "));
        }
    }
    Ok(lines.join(" / "))
}

fn answer(sql: &str, zone: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    match runtime.block_on(rows(sql, zone)) {
        Ok(rows) => rows,
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn spellings() {
    let mut wrong = Vec::new();
    for (sql, expect) in [
        ("SELECT to_timestamp('07/05/2026', 'dd/MM/yyyy')", "2026-05-07T00:00:00Z"),
        ("SELECT to_timestamp('2026-5-5 1:02:03.5')", "2026-05-05T01:02:03.500Z"),
        ("SELECT try_to_timestamp('x'), try_cast('y' AS TIMESTAMP), try_cast('x' AS DATE)", "NULL | NULL | NULL"),
        (
            "SELECT date_sub(DATE'2026-05-07', 1), date_add('2026-05-07', 1), date_add(TIMESTAMP'2026-05-07 12:00:00', -1)",
            "2026-05-06 | 2026-05-08 | 2026-05-06",
        ),
        (
            "SELECT datediff('2026-05-07', DATE'2026-05-01'), last_day(DATE'2026-02-03'), add_months(DATE'2026-01-31', 1)",
            "6 | 2026-02-28 | 2026-02-28",
        ),
        (
            "SELECT timestamp_seconds(1777939200), timestamp_millis(1777939200001), timestamp_seconds(1.5)",
            "2026-05-05T00:00:00Z | 2026-05-05T00:00:00.001Z | 1970-01-01T00:00:01.500Z",
        ),
        ("SELECT TIMESTAMP'2026-05-07 00:00:00' - INTERVAL 1 DAY", "2026-05-06T00:00:00Z"),
        ("SELECT TIMESTAMP'2026-05-07 00:00:00' + INTERVAL '2' HOUR - INTERVAL '30 minutes'", "2026-05-07T01:30:00Z"),
        (
            "SELECT CAST('2026-05-05 02:00:00+02:00' AS TIMESTAMP), CAST('2026-05-05 00:00:00' AS TIMESTAMP_NTZ)",
            "2026-05-05T00:00:00Z | 2026-05-05T00:00:00",
        ),
        (
            "SELECT TIMESTAMP_NTZ'0001-01-01 00:00:00', TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP'9999-12-31 23:59:59.999999'",
            "0001-01-01T00:00:00 | 0001-01-01T00:00:00Z | 9999-12-31T23:59:59.999999Z",
        ),
        (
            "SELECT TIMESTAMP'2026-05-05 00:00:00 America/New_York', timestamp '2026-05-05T00:00:00Z'",
            "2026-05-05T04:00:00Z | 2026-05-05T00:00:00Z",
        ),
        ("SELECT TIMESTAMP_NTZ'2026-01-01' < TIMESTAMP'2026-01-01 00:00:01', DATE'2026-01-01' = TIMESTAMP'2026-01-01'", "true | true"),
        ("SELECT 1312750.00D, 4.9E-324D, 1e300, -1e300, 5e-324 > 0", "1312750.0 | 5e-324 | 1e300 | -1e300 | true"),
        ("SELECT 66L, 7Y, 8S, 1.50BD, 2.5F", "66 | 7 | 8 | 1.50 | 2.5"),
        (
            "SELECT 9999999999999999999999999999.9999999999, -9223372036854775808",
            "9999999999999999999999999999.9999999999 | -9223372036854775808",
        ),
        (
            "SELECT FORMAT(TIMESTAMP'2024-06-15 09:32:05', 'yyyy-MM-dd HH:mm:ss'), date_format(DATE'2024-06-15', 'EEE d MMM')",
            "2024-06-15 09:32:05 | Sat 15 Jun",
        ),
        ("SELECT [x] FROM (SELECT 'in brackets' AS [x]) AS t", "in brackets"),
        ("SELECT concat('2026-05', '-06'), 'a' || 'b', upper('é'), repeat('x', 3), concat('a', NULL)", "2026-05-06 | ab | É | xxx | NULL"),
        ("SELECT X'00FF', hex(X'00FF'), decode(unhex('C3A9'), 'UTF-8'), decode('ff', 'hex')", "00ff | 00FF | é | ff"),
        ("SELECT length(repeat(decode(unhex('F48FBFBF'), 'UTF-8'), 40))", "40"),
        ("SELECT 'a''b', \"x\" FROM (SELECT 1 AS \"x\") AS t", "a'b | 1"),
        ("SELECT isnan(CAST('NaN' AS DOUBLE)), CAST('NaN' AS DOUBLE) > 1e308, CAST('-Infinity' AS FLOAT)", "true | true | -inf"),
        (
            "SELECT array(1, NULL, 3), named_struct('a', 1, 'b', 'x'), map('k', 1)['k'], map('a', 1, 'b', 2), array()",
            "[1, NULL, 3] | {a: 1, b: x} | 1 | {a: 1, b: 2} | []",
        ),
        ("SELECT map(['a', 'b'], [1, 2])['b'], MAP {'x': 1}", "2 | {x: 1}"),
        ("SELECT count(*), min(id), max(id) FROM range(0, 10, 1, 1)", "10 | 0 | 9"),
        ("SELECT r.id FROM range(2) r", "0 / 1"),
        ("SELECT coalesce(NULL, 'x'), nvl(NULL, 'y'), isnull(NULL, 'z'), len('abc'), if(true, 1, 2)", "x | y | z | 3 | 1"),
        (
            "SELECT CAST(TIMESTAMP'2026-01-07 23:59:59' AS DATE), year(DATE'2026-01-07'), date_trunc('month', TIMESTAMP'2026-01-07 12:00:00')",
            "2026-01-07 | 2026 | 2026-01-01T00:00:00Z",
        ),
        (
            "SELECT month('2026-02-03'), dayofweek(DATE'2026-01-04'), hour(TIMESTAMP'2026-01-01 05:06:07'), weekofyear(DATE'2026-01-04')",
            "2 | 1 | 5 | 1",
        ),
        ("SELECT CAST(20.00 AS DECIMAL(10,2)) + 5, CAST(2.6 AS DECIMAL)", "25.00 | 3"),
        ("SELECT dateadd(day, -1, TIMESTAMP'2026-01-02'), unix_timestamp('1970-01-02')", "2026-01-01T00:00:00Z | 86400"),
        ("SELECT 7 DIV 2, !true, 'abc' RLIKE 'b', 'abc' NOT REGEXP 'z', NULL <=> NULL, 1 == 1", "3 | false | true | true | true | true"),
        (
            "SELECT CAST('ab' AS BINARY), CAST(1 AS LONG), CAST(2 AS STRING), CAST('x' AS CHARACTER VARYING(5)), '5'::int",
            "6162 | 1 | 2 | x | 5",
        ),
        ("SELECT count(*) FROM VALUES (1, 'a'), (2, 'b') AS v (n, s) WHERE s > 'a'", "1"),
        ("SELECT extract(year FROM DATE'2026-01-07'), CASE 1 WHEN 1 THEN 'one' END, substring('abc' FROM 2 FOR 1)", "2026 | one | b"),
    ] {
        let got = answer(sql, "UTC");
        if got != expect {
            wrong.push(format!("{sql}\n  expected {expect}\n  got      {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_sessions_zone_counts() {
    let check = |sql: &str, expect: &str| assert_eq!(answer(sql, "Europe/Berlin"), expect, "{sql}");
    check("SELECT TIMESTAMP'2026-07-01 00:00:00'", "2026-06-30T22:00:00Z");
    check("SELECT CAST(TIMESTAMP'2026-06-30 22:30:00Z' AS DATE), hour(TIMESTAMP'2026-06-30 22:30:00Z')", "2026-07-01 | 0");
    check("SELECT date_format(TIMESTAMP'2026-06-30 22:30:00Z', 'HH:mm XXX')", "00:30 +02:00");
    check("SELECT CAST(TIMESTAMP_NTZ'2026-06-30 22:30:00' AS DATE)", "2026-06-30");
}

#[test]
fn wrong_values_are_named() {
    let check = |sql: &str, part: &str| {
        let got = answer(sql, "UTC");
        assert!(got.starts_with("! ") && got.contains(part), "{sql}: {got}");
    };
    check("SELECT CAST('yesterday' AS TIMESTAMP)", "'yesterday' is no timestamp");
    check("SELECT to_timestamp('x', 'dd/MM/yyyy')", "does not fit the pattern 'dd/MM/yyyy'");
    check("SELECT to_timestamp('x', 'QQ')", "the letters 'QQ' mean nothing");
    check("SELECT to_date('2026-13-01')", "no date");
    check("SELECT map('a', 1, 'a', 2)", "duplicate key");
    check("SELECT format(1.5, 'N2')", "format writes dates and times");
    check("SELECT decode(unhex('FF'), 'EBCDIC')", "the character set 'EBCDIC'");
}

#[test]
fn datafusions_own_stay_where_spark_differs() {
    let mut context = SessionContext::new();
    register(&mut context).expect("registers");
    let (state, default, another) = (context.state(), SessionContext::new().state(), SessionContext::new().state());
    // Those that DataFusion makes anew each time cannot be told apart.
    let shared = default.scalar_functions().iter().filter(|(name, function)| Arc::ptr_eq(function, &another.scalar_functions()[*name]));
    for (name, function) in shared {
        let replaced = !Arc::ptr_eq(function, &state.scalar_functions()[name]);
        let meant = ["to_timestamp", "to_date", "date_format", "concat"].contains(&name.as_str());
        assert!(!replaced || meant, "{name}");
    }
    for (name, function) in default.aggregate_functions() {
        assert!(Arc::ptr_eq(function, &state.aggregate_functions()[name]), "{name}");
    }
    assert!(state.scalar_functions().contains_key("unhex") && state.aggregate_functions().contains_key("collect_list"));
}
