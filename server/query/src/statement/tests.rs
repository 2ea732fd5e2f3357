//! Whole statements: every spelling, every place a table can stand, what is refused, and texts meant to break the parser.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, TableFactor, Visit, Visitor};

use super::*;
use crate::error::Error;

/// `target [selector]` of each occurrence; `!` and the error.
fn tables(sql: &str) -> String {
    match parse(sql) {
        Ok(statement) => {
            assert_nothing_survives(sql, &statement);
            statement.tables.iter().map(|t| format!("{}{}", t.target, shown(t.selector.as_ref()))).collect::<Vec<_>>().join(" | ")
        }
        Err(error) => format!("! {error}"),
    }
}

fn shown(selector: Option<&Selector>) -> String {
    match selector {
        None => String::new(),
        Some(Selector::Version(expr)) => format!(" v {expr}"),
        Some(Selector::Timestamp(expr)) => format!(" t {expr}"),
        Some(Selector::CompactTimestamp(digits)) => format!(" @{digits}"),
        Some(Selector::Ref(name)) => format!(" ref {name}"),
    }
}

/// Q1: no table version, no marker and no table but placeholders and CTEs are left; each placeholder is there once.
#[derive(Default)]
struct Survivors {
    versions: Vec<String>,
    placeholders: Vec<usize>,
    others: BTreeSet<String>,
}

impl Visitor for Survivors {
    type Break = ();
    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, version, args, .. } = factor {
            if version.is_some() {
                self.versions.push(factor.to_string());
            }
            if args.is_none() {
                self.name(name);
            }
        }
        ControlFlow::Continue(())
    }
    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Prefixed { prefix, .. } = expr {
            self.versions.push(prefix.to_string());
        }
        ControlFlow::Continue(())
    }
}

impl Survivors {
    fn name(&mut self, name: &ObjectName) {
        let parts: Vec<String> = name.0.iter().filter_map(|p| p.as_ident().map(|i| i.value.clone())).collect();
        match parts.as_slice() {
            [schema, number] if schema == PLACEHOLDER_SCHEMA => self.placeholders.push(number.parse().expect("a number")),
            _ => {
                self.others.insert(name.to_string().to_lowercase());
            }
        }
    }
}

fn assert_nothing_survives(sql: &str, statement: &Statement) {
    let mut found = Survivors::default();
    let mut visit_query = |query: &Query| {
        let _ = query.visit(&mut found);
    };
    match &statement.kind {
        Kind::Query(query) | Kind::Explain { query, .. } => visit_query(query),
        Kind::Insert { source, .. } => visit_query(source),
        Kind::CreateTable(table) => table.query.iter().for_each(|q| visit_query(q)),
        Kind::Delete { predicate, .. } => {
            let _ = predicate.visit(&mut found);
        }
        Kind::Update { assignments, predicate, .. } => {
            let _ = predicate.visit(&mut found);
            for (_, value) in assignments {
                let _ = value.visit(&mut found);
            }
        }
        _ => return,
    }
    for selector in statement.tables.iter().filter_map(|t| t.selector.as_ref()) {
        if let Selector::Version(expr) | Selector::Timestamp(expr) = selector {
            let _ = expr.visit(&mut found);
        }
    }
    assert!(found.versions.is_empty(), "{sql}: {:?}", found.versions);
    found.placeholders.sort_unstable();
    let all: Vec<usize> = (0..statement.tables.len()).collect();
    assert_eq!(found.placeholders, all, "{sql}: each occurrence is in the tree once");
    for name in found.others {
        assert!(
            sql.to_lowercase().contains(&format!("{name} as (")) || sql.to_lowercase().contains(&format!("{name} (")),
            "{sql}: {name} is no CTE"
        );
    }
}

fn check(sql: &str, expect: &str) {
    assert_eq!(tables(sql), expect, "{sql}");
}

/// The error holds all these parts.
fn refused(sql: &str, parts: &[&str]) {
    let got = tables(sql);
    assert!(got.starts_with("! ") && parts.iter().all(|part| got.contains(part)), "{sql}: {got}");
}

/// Each selector of the table in `product.md`, and the occurrence it makes of `t`.
const SPELLINGS: &[(&str, &str)] = &[
    ("VERSION AS OF 3", "t v 3"),
    ("version as of 3", "t v 3"),
    ("VERSION AS OF '3'", "t v '3'"),
    ("VERSION AS OF 'tag-or-branch'", "t v 'tag-or-branch'"),
    ("VERSION AS OF -1", "t v -1"),
    ("VERSION AS OF 1.5", "t v 1.5"),
    ("VERSION AS OF 99999999999999999999", "t v 99999999999999999999"),
    ("VERSION AS OF ?", "t v $1"),
    ("VERSION AS OF timestamp '2026-01-01'", "t t timestamp('2026-01-01')"),
    ("SYSTEM_VERSION AS OF 2", "t v 2"),
    ("FOR VERSION AS OF 3", "t v 3"),
    ("for system_version AS of 3", "t v 3"),
    ("TIMESTAMP AS OF '2026-05-05'", "t t '2026-05-05'"),
    ("TIMESTAMP AS OF NULL", "t t NULL"),
    ("TIMESTAMP AS OF $1", "t t $1"),
    ("FOR TIMESTAMP AS OF '2026-05-05'", "t t '2026-05-05'"),
    ("FOR SYSTEM_TIME AS OF '2026-05-06'", "t t '2026-05-06'"),
    ("SYSTEM_TIME AS OF '2026-05-06'", "t t '2026-05-06'"),
    ("FOR SYSTEM_TIME AS OF current_timestamp() - INTERVAL 1 HOUR", "t t current_timestamp() - INTERVAL 1 HOUR"),
    ("TIMESTAMP AS OF now() - INTERVAL '1 day'", "t t now() - INTERVAL '1 day'"),
    ("TIMESTAMP AS OF CAST('2026-05-06' AS DATE)", "t t CAST('2026-05-06' AS DATE)"),
    ("TIMESTAMP AS OF date_sub(DATE'2026-05-07', 1)", "t t date_sub(CAST('2026-05-07' AS DATE), 1)"),
    ("AT (VERSION => 3)", "t v 3"),
    ("at(version=>3)", "t v 3"),
    ("AT (TIMESTAMP => '2026-01-01'::timestamp)", "t t timestamp('2026-01-01')"),
    ("AT (TIMESTAMP => now() - INTERVAL '1 day')", "t t now() - INTERVAL '1 day'"),
    ("AT (SNAPSHOT => 'audit')", "t v 'audit'"),
    ("AT SNAPSHOT '8424405668850798838'", "t v '8424405668850798838'"),
    ("AT TAG audit", "t ref audit"),
    ("AT BRANCH \"Main\"", "t ref Main"),
    ("AT TIMESTAMP '2026-01-01'", "t t timestamp('2026-01-01')"),
];

#[test]
fn every_spelling_in_every_place() {
    for (spelling, expect) in SPELLINGS {
        check(&format!("SELECT * FROM t {spelling}"), expect);
        check(&format!("SELECT * FROM t {spelling} x"), expect);
        check(&format!("SELECT * FROM t {spelling} AS x WHERE x.a = 1 ORDER BY 1 LIMIT 5"), expect);
        check(&format!("SELECT * FROM t x {spelling} WHERE x.a = 1"), expect);
        check(&format!("SELECT * FROM t AS x {spelling} WHERE x.a = 1"), expect);
        check(&format!("SELECT * FROM t AS x (a, b) {spelling} WHERE x.a = 1"), expect);
        check(&format!("SELECT * FROM /* c */ T -- c\n {spelling} /* VERSION AS OF 9 */"), expect);
        check(&format!("SELECT * FROM \"t\" {spelling};"), expect);
        check(&format!("SELECT * FROM [t] {spelling}"), expect);
        check(&format!("SELECT * FROM `t` {spelling} GROUP BY ALL"), expect);
        check(&format!("SELECT * FROM u, t {spelling}, w"), &format!("u | {expect} | w"));
        check(&format!("SELECT * FROM u JOIN t {spelling} ON true"), &format!("u | {expect}"));
        check(&format!("SELECT * FROM t {spelling} JOIN u ON true"), &format!("{expect} | u"));
        check(&format!("SELECT * FROM t {spelling} a FULL OUTER JOIN u b USING (k)"), &format!("{expect} | u"));
        check(&format!("SELECT * FROM (t {spelling} CROSS JOIN u)"), &format!("{expect} | u"));
        check(&format!("SELECT * FROM (SELECT * FROM t {spelling}) s"), expect);
        check(&format!("WITH c AS (SELECT * FROM t {spelling}) SELECT * FROM c"), expect);
        check(&format!("SELECT * FROM u WHERE a IN (SELECT a FROM t {spelling})"), &format!("u | {expect}"));
        check(&format!("SELECT (SELECT max(a) FROM t {spelling})"), expect);
        check(&format!("SELECT * FROM t {spelling} UNION ALL SELECT * FROM u"), &format!("{expect} | u"));
        check(&format!("SELECT * FROM u EXCEPT (SELECT * FROM t {spelling})"), &format!("u | {expect}"));
        check(&format!("INSERT INTO d SELECT * FROM t {spelling}"), expect);
        check(&format!("INSERT INTO d (a) (SELECT a FROM t {spelling})"), expect);
        check(&format!("DELETE FROM d WHERE EXISTS (SELECT 1 FROM t {spelling} WHERE t.a = d.a)"), expect);
        check(&format!("UPDATE d SET a = (SELECT a FROM t {spelling}) WHERE b IN (SELECT b FROM u)"), &format!("{expect} | u"));
        check(&format!("CREATE TABLE d AS SELECT * FROM t {spelling}"), expect);
        check("CREATE TEMP VIEW v AS SELECT * FROM w", "w");
        check(&format!("EXPLAIN ANALYZE SELECT * FROM t {spelling}"), expect);
        check(&format!("DESCRIBE t {spelling}"), expect);
        check(&format!("SELECT * FROM main.t {spelling}"), &format!("main.{expect}"));
        check(&format!("SELECT * FROM lake.\"Main\".t AS x {spelling}"), &format!("lake.Main.{expect}"));
    }
}

#[test]
fn suffixes_and_paths() {
    check("SELECT * FROM t@v3", "t v 3");
    check("SELECT * FROM main.t@V3 AS x JOIN u@20240626123453000 y ON x.a = y.a", "main.t v 3 | u @20240626123453000");
    check("SELECT * FROM delta.`/data/x`", "delta.`/data/x`");
    check("SELECT * FROM Delta.`/data/x` VERSION AS OF 2", "delta.`/data/x` v 2");
    check("SELECT * FROM delta.`/data/x@v1` a, delta.\"y@20240626123453000\"", "delta.`/data/x` v 1 | delta.`y` @20240626123453000");
    check("SELECT * FROM delta.`mail@home`", "delta.`mail@home`");
    check("SELECT * FROM delta.t", "delta.t");
    check("SELECT * FROM lake.main.t.history", "lake.main.t.history");
    check("SELECT * FROM \"t$snapshots\"", "t$snapshots");
    check("SELECT * FROM t.branch_x, t.tag_y", "t.branch_x | t.tag_y");
    refused("SELECT * FROM t@main", &["@main selects nothing", "line 1, column 16"]);
    refused("SELECT * FROM t@2024", &["@2024 selects nothing"]);
    refused("SELECT * FROM delta.`x@v1` VERSION AS OF 2", &["two selectors", "line 1, column 15"]);
    refused("SELECT * FROM t@v1 VERSION AS OF 2", &["line 1"]);
    refused("SELECT * FROM a.b.c.d.e", &["5 parts"]);
}

#[test]
fn option_is_for_every_table() {
    check("SELECT * FROM t JOIN main.u ON true OPTION (FOR TIMESTAMP AS OF '2026-01-01')", "t t '2026-01-01' | main.u t '2026-01-01'");
    check(
        "WITH c AS (SELECT * FROM t) SELECT * FROM c, u option (for timestamp as of '2026-01-01');",
        "t t '2026-01-01' | u t '2026-01-01'",
    );
    check("INSERT INTO d SELECT * FROM t OPTION (FOR TIMESTAMP AS OF ?)", "t t $1");
    check("SELECT option (1)", "");
    refused("SELECT * FROM t VERSION AS OF 1 OPTION (FOR TIMESTAMP AS OF '2026-01-01')", &["has a selector of its own", "column 15"]);
    refused("SELECT * FROM t OPTION (FOR VERSION AS OF 1)", &["not supported", "OPTION"]);
    refused("SELECT * FROM t OPTION (FOR TIMESTAMP AS OF a)", &["cannot use the column a"]);
}

#[test]
fn selectors_where_nothing_has_versions() {
    let behind = "stands behind a table's name";
    refused(
        "WITH c AS (SELECT 1) SELECT * FROM c VERSION AS OF 1",
        &["c is a common table expression", "put the selector on the tables inside", "line 1, column 38"],
    );
    refused("WITH c AS (SELECT 1) SELECT * FROM C x FOR SYSTEM_TIME AS OF '2026-01-01'", &["common table expression"]);
    refused("SELECT * FROM (SELECT 1) s VERSION AS OF 1", &[behind, "line 1, column 28"]);
    refused("SELECT * FROM (SELECT 1) VERSION AS OF 1", &[behind]);
    refused("SELECT * FROM (SELECT 1) AS s (a) TIMESTAMP AS OF '2026-01-01'", &[behind]);
    refused("SELECT * FROM (VALUES (1)) v VERSION AS OF 1", &[behind]);
    refused("SELECT * FROM VALUES (1), (2) AS v (a) VERSION AS OF 1", &[behind]);
    refused("SELECT * FROM unnest([1, 2]) u VERSION AS OF 1", &[behind]);
    refused("SELECT * FROM generate_series(1, 2) VERSION AS OF 1", &[behind]);
    refused("SELECT * FROM range(1, 2) AT (VERSION => 1)", &[behind]);
    refused("INSERT INTO t VERSION AS OF 1 VALUES (1)", &["INSERT changes the current version of t", "column 15"]);
    refused("INSERT INTO t@v1 VALUES (1)", &["takes no selector"]);
    refused("UPDATE t VERSION AS OF 1 SET a = 1", &["UPDATE changes the current version of t"]);
    refused("UPDATE t AS x FOR VERSION AS OF 1 SET a = 1", &["takes no selector"]);
    refused("DELETE FROM t TIMESTAMP AS OF '2026-01-01' WHERE a = 1", &["takes no selector"]);
    refused("DELETE FROM delta.`x@v1`", &["takes no selector"]);
    refused("DROP TABLE t VERSION AS OF 1", &["takes no selector"]);
    refused("CREATE TABLE t VERSION AS OF 1 (a INT)", &["takes no selector"]);
    refused("DESCRIBE HISTORY t VERSION AS OF 1", &["leave the selector out"]);
    refused("SELECT * FROM t FOR SYSTEM_TIME FROM '2026-01-01' TO '2026-01-02'", &["not supported", "range of versions"]);
    refused("SELECT * FROM t FOR SYSTEM_TIME BETWEEN '2026-01-01' AND '2026-01-02'", &["not supported"]);
    refused("SELECT * FROM t FOR SYSTEM_TIME ALL", &["not supported"]);
    refused("SELECT * FROM t BEFORE (STATEMENT => 'x')", &["not supported", "DESCRIBE HISTORY"]);
    refused("SELECT * FROM t AT (OFFSET => -60)", &["not supported", "OFFSET"]);
    refused("SELECT * FROM t VERSION AS OF main", &["cannot use the column main", "'main'", "column 31"]);
    refused("SELECT * FROM t TIMESTAMP AS OF d", &["cannot use the column d", "column 33"]);
    refused("SELECT * FROM t x VERSION AS OF 1 y", &["two aliases"]);
    refused("SELECT * FROM t VERSION AS OF 1 VERSION AS OF 2", &["line 1"]);
    refused("SELECT * FROM t VERSION AS OF", &["line 1"]);
    refused("SELECT a VERSION AS OF 1 FROM t", &["line 1"]);
}

#[test]
fn words_of_selectors_as_names() {
    check("SELECT version AS of FROM t", "t");
    check("SELECT version AS of, timestamp AS at FROM t", "t");
    check("SELECT version, timestamp, before, snapshot, option, branch, tag FROM version AS timestamp", "version");
    check("SELECT ts AT TIME ZONE 'UTC' FROM t", "t");
    check("SELECT * FROM version VERSION AS OF 1", "version v 1");
    check("SELECT * FROM history VERSION AS OF 1", "history v 1");
    check("SELECT * FROM timestamp TIMESTAMP AS OF '2026-01-01'", "timestamp t '2026-01-01'");
    check("DESCRIBE history", "history");
    check("DESCRIBE TABLE EXTENDED detail", "detail");
    check("DESCRIBE detail VERSION AS OF 1", "detail v 1");
    check("SELECT substring(a FROM 2 FOR 3) FROM t FOR VERSION AS OF 3", "t v 3");
}

#[test]
fn scopes_of_ctes() {
    check("WITH a AS (SELECT * FROM a) SELECT * FROM a", "a");
    check("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a, b", "b");
    check("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT n + 1 FROM r JOIN t ON true) SELECT * FROM r", "t");
    check("WITH T AS (SELECT 1) SELECT * FROM t", "");
    check("WITH t AS (SELECT 1) SELECT * FROM \"T\"", "T");
    check("WITH t AS (SELECT 1) SELECT * FROM main.t", "main.t");
    check("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) x, t", "t");
    check("WITH t AS (SELECT 1) SELECT (SELECT max(a) FROM t), (WITH u AS (SELECT * FROM t) SELECT 1 FROM u), 2 FROM u", "u");
    check(
        "WITH c AS (SELECT 1) SELECT * FROM t VERSION AS OF (SELECT max(v) FROM c)",
        "c | t v (SELECT max(v) FROM \"__asof\".\"0\" AS c)",
    );
    check("WITH s AS (SELECT * FROM t VERSION AS OF 1) INSERT INTO d SELECT * FROM s", "t v 1");
    check("INSERT INTO d WITH s AS (SELECT * FROM t) SELECT * FROM s", "t");
    check("SELECT * FROM t a, LATERAL (SELECT * FROM u VERSION AS OF 1 WHERE u.x = a.x) l, unnest(a.xs) n", "t | u v 1");
    check("SELECT * FROM generate_series(1, (SELECT max(a) FROM t VERSION AS OF 2))", "t v 2");
    check(
        "SELECT CASE WHEN EXISTS (SELECT 1 FROM a) THEN (SELECT 1 FROM b) END, ARRAY(SELECT 1 FROM c) FROM d GROUP BY (SELECT 1 FROM e) HAVING 1 = ANY(SELECT 1 FROM f) ORDER BY (SELECT 1 FROM g) LIMIT (SELECT 1 FROM h)",
        "a | b | c | d | e | f | g | h",
    );
}

/// The query's text after parsing.
fn rewritten(sql: &str) -> String {
    match parse(sql).map(|s| s.kind) {
        Ok(Kind::Query(query)) => query.to_string(),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn columns_keep_their_qualifiers() {
    let check = |sql: &str, expect: &str| assert_eq!(rewritten(sql), expect, "{sql}");
    check("SELECT t.a FROM t", r#"SELECT t.a FROM "__asof"."0" AS t"#);
    check("SELECT main.t.a, t.b, t.* FROM main.t", r#"SELECT t.a, t.b, t.* FROM "__asof"."0" AS t"#);
    check("SELECT lake.main.t.a, main.t.* FROM lake.main.t ORDER BY main.t.a", r#"SELECT t.a, t.* FROM "__asof"."0" AS t ORDER BY t.a"#);
    check(
        "SELECT x.t.a, y.t.a FROM x.t JOIN y.t ON x.t.k = y.t.k",
        r#"SELECT "x.t".a, "y.t".a FROM "__asof"."0" AS "x.t" JOIN "__asof"."1" AS "y.t" ON "x.t".k = "y.t".k"#,
    );
    check(
        "SELECT * FROM main.t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = main.t.a)",
        r#"SELECT * FROM "__asof"."0" AS t WHERE EXISTS (SELECT 1 FROM "__asof"."1" AS u WHERE u.a = t.a)"#,
    );
    check("SELECT TOP 5 a FROM t ORDER BY a", r#"SELECT a FROM "__asof"."0" AS t ORDER BY a LIMIT 5"#);
    check("SELECT TOP (?) a FROM [t]", r#"SELECT a FROM "__asof"."0" AS "t" LIMIT $1"#);
    check("SELECT x.s.f FROM t x", r#"SELECT x.s.f FROM "__asof"."0" x"#);
    check("SELECT x.a FROM t x VERSION AS OF 1", r#"SELECT x.a FROM "__asof"."0" AS x"#);
}

#[test]
fn parameters_are_numbered() {
    let count = |sql: &str| parse(sql).map(|s| s.parameters).map_err(|e| e.to_string());
    assert_eq!(count("SELECT * FROM t TIMESTAMP AS OF ? WHERE a = ? LIMIT ?"), Ok(3));
    assert_eq!(rewritten("SELECT ?, ? FROM t WHERE a = ?"), r#"SELECT $1, $2 FROM "__asof"."0" AS t WHERE a = $3"#);
    assert_eq!(count("SELECT $2, $1, $2"), Ok(2));
    assert_eq!(count("SELECT '?' -- ?"), Ok(0));
    assert!(count("CREATE TEMP VIEW v AS SELECT ?").is_err());
}

#[test]
fn errors_say_where() {
    refused("SELECT *\nFROM t WHERE", &["line 2, column 13"]);
    refused("SELEC 1", &["expected a statement", "found SELEC", "line 1, column 1"]);
    refused("SELECT 1 +", &["the end of the statement", "line 1, column 11"]);
    refused("SELECT (1", &["( is never closed", "line 1, column 8"]);
    refused("SELECT 1)", &[") closes nothing", "line 1, column 9"]);
    refused("SELECT 'abc", &["line 1, column 8"]);
    refused("SELECT * FROM t WHERE a = = 2", &["line 1, column 27"]);
    refused("SELECT 1; DROP TABLE t", &["one statement at a time", "line 1, column 11"]);
    refused("MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE", &["not supported: MERGE"]);
    refused("SELECT * INTO x FROM t", &["CREATE TABLE … AS"]);
}

/// Texts that broke other parsers: an answer or an error, in little time, on a small stack.
#[test]
fn hostile_texts() {
    let deep = |open: &str, inner: &str, close: &str, n: usize| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    let texts = [
        format!("SELECT {}", deep("(", "1", ")", 10_000)),
        format!("SELECT {}", deep("(1+", "1", ")", 10_000)),
        format!("SELECT {}", "(".repeat(10_000)),
        format!("SELECT * FROM {}", deep("(", "t", ")", 10_000)),
        format!("SELECT * FROM {}", deep("(", "t JOIN u ON true", ")", 40)),
        format!("SELECT * FROM {}", deep("(SELECT * FROM ", "t", ")", 10_000)),
        format!("SELECT * FROM {}", deep("((", "t", ") JOIN u ON true)", 60)),
        deep("(", "SELECT 1", ")", 10_000),
        format!("SELECT {}", deep("f(", "1", ")", 10_000)),
        format!("SELECT {}", deep("CASE WHEN ", "1", " THEN 1 END", 5_000)),
        format!("SELECT {}", deep("CAST(", "x y z", " AS INT)", 60)),
        format!("SELECT {}1", "NOT ".repeat(100_000)),
        format!("SELECT {}1", "- ".repeat(100_000)),
        format!("SELECT {}1", "INTERVAL ".repeat(100_000)),
        format!("SELECT 1{}", " + 1".repeat(100_000)),
        format!("SELECT 1{}", " + 1".repeat(400_000)),
        format!("SELECT a{}", " IS NULL".repeat(100_000)),
        format!("SELECT a{}", "::int".repeat(100_000)),
        format!("SELECT a{}", "[1]".repeat(100_000)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(100_000)),
        format!("SELECT CAST(1 AS {})", deep("ARRAY<", "INT", ">", 50_000)),
        format!("CREATE TABLE t (a {})", deep("STRUCT<x: ", "INT", ">", 50_000)),
        format!("CREATE TABLE t (a INT{})", "[]".repeat(50_000)),
        format!("SELECT {}", "[".repeat(100_000)),
        format!("SELECT {}", deep("[", "1", "]", 10_000)),
        format!("WITH {} SELECT 1", (0..5_000).map(|n| format!("c{n} AS (SELECT 1)")).collect::<Vec<_>>().join(", ")),
        format!("SELECT * FROM t {}", "VERSION AS OF ".repeat(10_000)),
        format!("SELECT * FROM t {}", "AT (VERSION => ".repeat(10_000)),
        "SELECT '".to_owned() + &"x".repeat(1_000_000),
        "/*".repeat(100_000),
        "\u{0}0 \u{0}1".to_owned(),
    ];
    let run = || {
        for text in &texts {
            let shown: String = text.chars().take(60).collect();
            let start = std::time::Instant::now();
            let _ = parse(text).map(drop).map_err(|error| error.to_string());
            assert!(start.elapsed().as_secs() < 20, "{shown} took {:?}", start.elapsed());
        }
    };
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, run).expect("a thread");
        small.join().expect("no overflow, no panic");
    });
    assert_eq!(rewritten(&texts[0]), "SELECT ((1))");
    refused(&texts[1], &["nested too deep", "line 1"]);
    refused(&texts[14], &["operators in a row"]);
}

#[test]
fn long_statements() {
    let ors = format!("SELECT * FROM t WHERE a = 0{}", (1..20_000).map(|n| format!(" OR a = {n}")).collect::<String>());
    let values =
        format!("INSERT INTO t VALUES (0, 'x', -1){}", (1..30_000).map(|n| format!(", ({n}, 'some text', -{n})")).collect::<String>());
    let list = format!("SELECT * FROM t WHERE a IN (0{})", (1..700_000).map(|n| format!(", {n}")).collect::<String>());
    let sum = format!("SELECT 1{}", " + 1".repeat(900));
    let unions = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(900));
    for text in [ors, values, list, sum, unions] {
        let start = std::time::Instant::now();
        let parsed = std::thread::scope(|scope| {
            let small = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, || parse(&text).map(drop)).expect("a thread");
            small.join().expect("no overflow")
        });
        assert!(parsed.is_ok(), "{parsed:?}");
        assert!(start.elapsed().as_secs() < 60, "{} bytes took {:?}", text.len(), start.elapsed());
    }
}

#[test]
fn and_or_chains_are_balanced_and_in_order() {
    let terms: Vec<String> = (0..100).map(|n| format!("a = {n}")).collect();
    let text = rewritten(&format!("SELECT 1 WHERE {}", terms.join(" OR ")));
    assert_eq!(text, format!("SELECT 1 WHERE {}", terms.join(" OR ")));
}

fn kind(sql: &str) -> String {
    match parse(sql) {
        Ok(statement) => format!("{:?}", statement.kind),
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn commands() {
    let check = |sql: &str, expect: &str| assert_eq!(kind(sql), expect, "{sql}");
    check("describe table extended main.t", "Describe");
    check("DESC t", "Describe");
    check("DESCRIBE DETAIL main.t VERSION AS OF 3", "DescribeDetail");
    check("DESCRIBE detail", "Describe");
    check("DESCRIBE HISTORY t LIMIT 5", "DescribeHistory { limit: Some(5) }");
    check("DESCRIBE HISTORY delta.`/x/y`", "DescribeHistory { limit: None }");
    check("SHOW CATALOGS", "ShowCatalogs");
    check("SHOW DATABASES IN Lake LIKE 'm%'", "ShowSchemas { catalog: Some(\"lake\"), like: Some(\"m%\") }");
    check("SHOW SCHEMAS", "ShowSchemas { catalog: None, like: None }");
    check("SHOW TABLES FROM lake.main 'a*'", "ShowTables { schema: Some([\"lake\", \"main\"]), like: Some(\"a*\") }");
    check("SHOW VIEWS", "ShowViews { like: None }");
    check("SHOW COLUMNS FROM t", "ShowColumns");
    check("SHOW ALL", "ShowSetting(None)");
    check("SHOW TIME ZONE", "ShowSetting(Some(\"time_zone\"))");
    check("SHOW spark.sql.ansi.enabled", "ShowSetting(Some(\"spark.sql.ansi.enabled\"))");
    check("SET time_zone = 'Europe/Berlin'", "Set { name: \"time_zone\", value: \"Europe/Berlin\" }");
    check("SET TIME ZONE 'Europe/Berlin'", "Set { name: \"time_zone\", value: \"Europe/Berlin\" }");
    check("SET TIMEZONE TO UTC", "Set { name: \"time_zone\", value: \"UTC\" }");
    check("SET SESSION Statement_Timeout = 30 s;", "Set { name: \"statement_timeout\", value: \"30 s\" }");
    check("SET spark.sql.shuffle.partitions=8", "Set { name: \"spark.sql.shuffle.partitions\", value: \"8\" }");
    check("SET x = -1", "Set { name: \"x\", value: \"-1\" }");
    check("SET", "ShowSetting(None)");
    check("RESET", "Reset(None)");
    check("RESET ALL", "Reset(None)");
    check("RESET time_zone", "Reset(Some(\"time_zone\"))");
    check("USE main", "Use { catalog_only: false, parts: [\"main\"] }");
    check("USE CATALOG lake", "Use { catalog_only: true, parts: [\"lake\"] }");
    check("USE SCHEMA lake.Main", "Use { catalog_only: false, parts: [\"lake\", \"main\"] }");
    check("USE schema", "Use { catalog_only: false, parts: [\"schema\"] }");
    check("CREATE SCHEMA IF NOT EXISTS a.b", "CreateSchema { parts: [\"a\", \"b\"], if_not_exists: true }");
    check("DROP DATABASE IF EXISTS a CASCADE", "DropSchema { parts: [\"a\"], if_exists: true, cascade: true }");
    check("DROP TABLE IF EXISTS main.T", "DropTable { target: Name([\"main\", \"t\"]), if_exists: true }");
    check("DROP VIEW v", "DropView { name: \"v\", if_exists: false }");
    check(
        "create or replace temp view V (A, \"B\") as\n  select * from t@v1 where a = ';' ; -- end",
        "CreateTemporaryView { name: \"v\", or_replace: true, sql: \"select * from t@v1 where a = ';'\", columns: [\"a\", \"B\"] }",
    );
    check(
        "CREATE TEMPORARY VIEW v AS WITH c AS (SELECT 1) SELECT * FROM c",
        "CreateTemporaryView { name: \"v\", or_replace: false, sql: \"WITH c AS (SELECT 1) SELECT * FROM c\", columns: [] }",
    );
    check(
        "RESTORE TABLE main.t TO VERSION AS OF 2",
        "Restore { target: Name([\"main\", \"t\"]), to: Version(Value(ValueWithSpan { value: Number(\"2\", false), span: Span(Location(1,39)..Location(1,40)) })) }",
    );
    for (sql, part) in [
        ("CREATE VIEW v AS SELECT 1", "CREATE TEMPORARY VIEW"),
        ("CREATE TEMP TABLE t (a INT)", "temporary"),
        ("RESTORE TABLE t", "expected TO, found the end"),
        ("RESTORE TABLE t TO 3", "expected VERSION AS OF or TIMESTAMP AS OF, found 3"),
        ("RESTORE t@v1 TO VERSION AS OF 2", "behind TO"),
        ("USE a.b.c", "3 parts"),
        ("SHOW TBLPROPERTIES t ('a.b')", "ShowProperties { key: Some(\"a.b\") }"),
        ("SHOW TBLPROPERTIES t (a, b)", "one property"),
        ("SHOW TBLPROPERTIES t VERSION AS OF 3", "ShowProperties { key: None }"),
        ("SHOW CREATE TABLE t VERSION AS OF 3", "ShowCreateTable"),
        ("TRUNCATE t@v1", "takes no selector"),
        ("TRUNCATE TABLE t PARTITION (a = 1)", "DELETE FROM"),
        ("ALTER TABLE t@v1 DROP COLUMN a", "takes no selector"),
        ("ALTER TABLE t ADD COLUMN s.L.a INT", "inside: [\"s\", \"L\"]"),
        ("ALTER TABLE t ADD COLUMN a GEOMETRY", "GEOMETRY"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (a IN (SELECT b FROM u))", "cannot read tables"),
        ("ALTER TABLE t ALTER COLUMN a", "SET NOT NULL"),
        ("ALTER TABLE t CHANGE COLUMN A COMMENT 'x'", "column: [\"A\"], change: Comment(\"x\")"),
        ("ALTER TABLE t RENAME TO u", "RENAME TO"),
        ("ALTER VIEW v AS SELECT 1", "ALTER VIEW"),
        ("SHOW COLUMNS", "IN and a table"),
        ("SET x", ""),
        ("SET x 1", "= and a value"),
        ("EXPLAIN DELETE FROM t", "EXPLAIN of anything but a query"),
        ("SET SESSION SNAPSHOT TO LATEST", "SET SESSION SNAPSHOT"),
    ] {
        assert!(kind(sql).contains(part), "{sql}: {}", kind(sql));
    }
    assert!(matches!(
        parse("RESTORE t TO TIMESTAMP AS OF '2026-01-01'").map(|s| s.kind),
        Ok(Kind::Restore { to: Selector::Timestamp(_), .. })
    ));
}

#[test]
fn changes() {
    let Ok(Kind::Insert { target, columns, mode, .. }) = parse("INSERT OVERWRITE TABLE Main.T (Id, `b c`) VALUES (1, 2)").map(|s| s.kind)
    else {
        panic!("an INSERT")
    };
    let expect = ("main.t", vec!["Id".to_owned(), "b c".to_owned()], InsertMode::Overwrite);
    assert_eq!((target.to_string().as_str(), columns, mode), expect);
    let replacing = parse("INSERT INTO t (a) REPLACE WHERE a > $1 AND b SELECT 1").map(|s| s.kind);
    let Ok(Kind::Insert { mode: InsertMode::Replace(condition), .. }) = replacing else { panic!("{replacing:?}") };
    assert_eq!(condition.to_string(), "a > $1 AND b");
    let Ok(Kind::Update { alias, assignments, predicate, .. }) =
        parse("UPDATE main.t AS X SET x.A = 1, s.f = x.b + 1 WHERE x.a = 2").map(|s| s.kind)
    else {
        panic!("an UPDATE")
    };
    let shown: Vec<String> = assignments.iter().map(|(column, value)| format!("{} = {value}", column.join("."))).collect();
    assert_eq!((alias.as_deref(), shown.join(", ").as_str()), (Some("x"), "A = 1, s.f = x.b + 1"));
    assert_eq!(predicate.map(|p| p.to_string()).as_deref(), Some("x.a = 2"));
    let Ok(Kind::Update { assignments, .. }) = parse("UPDATE main.t SET main.t.a = 1, t.b = 2").map(|s| s.kind) else {
        panic!("an UPDATE")
    };
    assert_eq!(assignments.iter().map(|(column, _)| column.join(".")).collect::<Vec<_>>(), ["a", "b"]);
    let Ok(Kind::Delete { alias, predicate, .. }) = parse("delete from t where not exists (select 1 from u)").map(|s| s.kind) else {
        panic!("a DELETE")
    };
    assert!(alias.is_none() && predicate.is_some());
    assert!(matches!(parse("DELETE FROM t").map(|s| s.kind), Ok(Kind::Delete { predicate: None, .. })));
    for (sql, part) in [
        ("INSERT INTO t (a) 5", "expected VALUES or a query"),
        ("INSERT t VALUES (1)", "expected INTO or OVERWRITE"),
        ("INSERT INTO t PARTITION (a = 1) SELECT 1", "PARTITION"),
        ("UPDATE t SET a = 1, a = 2", "assigned twice"),
        ("UPDATE t SET (a, b) = (1, 2)", "assign each column"),
        ("UPDATE t SET a = 1 FROM u", "UPDATE … FROM"),
        ("DELETE FROM t USING u WHERE t.a = u.a", "DELETE … USING"),
        ("DELETE t", "expected FROM"),
        ("WITH c AS (SELECT 1) DELETE FROM t", "WITH before DELETE"),
    ] {
        assert!(kind(sql).contains(part), "{sql}: {}", kind(sql));
    }
}

#[test]
fn create_table() {
    let sql = "CREATE OR REPLACE TABLE lake.main.t (Id BIGINT NOT NULL COMMENT 'key', s STRING DEFAULT 'x', CONSTRAINT c CHECK (id > 0))
        USING DELTA PARTITIONED BY (ID) COMMENT 'all' TBLPROPERTIES ('delta.appendOnly' = 'true', delta.checkpointInterval = 10, n = -1)";
    let Ok(Kind::CreateTable(table)) = parse(sql).map(|s| s.kind) else { panic!("{}", kind(sql)) };
    assert!(table.or_replace && !table.if_not_exists && table.query.is_none());
    assert_eq!(table.target.to_string(), "lake.main.t");
    assert_eq!(
        table.columns.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["Id BIGINT NOT NULL COMMENT 'key'", "s STRING DEFAULT 'x'"]
    );
    assert_eq!(table.constraints.iter().map(ToString::to_string).collect::<Vec<_>>(), ["CONSTRAINT c CHECK (id > 0)"]);
    assert_eq!(
        (table.using.as_deref(), table.comment.as_deref(), table.partitioned_by.as_slice()),
        (Some("delta"), Some("all"), ["Id".to_owned()].as_slice())
    );
    let shown: Vec<String> = table.properties.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(shown, ["delta.appendOnly=true", "delta.checkpointInterval=10", "n=-1"]);

    let Ok(Kind::CreateTable(table)) =
        parse("CREATE TABLE t (a TIMESTAMP, d DATE GENERATED ALWAYS AS (CAST(a AS DATE)), CHECK (a > TIMESTAMP '2020-01-01'))")
            .map(|s| s.kind)
    else {
        panic!("expressions")
    };
    assert_eq!(table.columns[1].to_string(), "d DATE GENERATED ALWAYS AS (CAST(a AS DATE))");
    assert_eq!(table.constraints[0].to_string(), "CHECK (a > TIMESTAMP '2020-01-01')");

    let Ok(Kind::CreateTable(table)) = parse("CREATE TABLE IF NOT EXISTS t (a INT) PARTITIONED BY (b STRING)").map(|s| s.kind) else {
        panic!("hive's form")
    };
    assert_eq!(table.columns.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a INT", "b STRING"]);
    for sql in [
        "CREATE TABLE t USING delta AS SELECT 1 AS a",
        "CREATE TABLE t AS (SELECT 1 AS a)",
        "CREATE TABLE t AS WITH c AS (SELECT 1 AS a) SELECT * FROM c",
        "CREATE TABLE t PARTITIONED BY (a) AS VALUES (1)",
    ] {
        assert!(kind(sql).contains("query: Some"), "{sql}: {}", kind(sql));
    }
    for (sql, part) in [
        ("SELECT TOP 5 PERCENT a FROM t", "write LIMIT"),
        ("CREATE TABLE t", "has no columns"),
        ("CREATE TABLE t (a INT, A STRING)", "there twice"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (b)", "PARTITIONED BY names the column b"),
        ("CREATE TABLE t (a INT) AS SELECT 1", "not from both"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT)", "exclude each other"),
        ("CREATE TABLE t (a INT) LOCATION '/x'", "LOCATION in CREATE TABLE"),
        ("CREATE TABLE t (a INT) CLUSTER BY (a)", "CLUSTER in CREATE TABLE"),
        ("CREATE TABLE t (a INT PRIMARY KEY)", "PRIMARY KEY"),
        ("CREATE TABLE t (a INT, UNIQUE (a))", "UNIQUE"),
        ("CREATE TABLE t (a)", "line 1"),
        ("CREATE TABLE t (a INT) PARTITIONED BY (days(a))", "transform days"),
        ("CREATE TABLE t (a INT) TBLPROPERTIES ('a' = '1', 'a' = '2')", "given twice"),
        ("CREATE TABLE t SHALLOW CLONE u", "CLONE"),
        ("CREATE TABLE t (a INT DEFAULT (SELECT max(x) FROM u))", "cannot read tables"),
        ("CREATE TABLE delta.`x` (a INT)", "by name"),
    ] {
        assert!(kind(sql).starts_with("! ") && kind(sql).contains(part), "{sql}: {}", kind(sql));
    }
}

/// The golden tables' selectors, errors and statements, as they were asked of Spark.
#[test]
fn golden_texts() {
    let folder = "../../integration/golden/delta";
    let mut cases = Vec::new();
    for folder in [folder.to_owned(), format!("{folder}/malformed")] {
        for entry in std::fs::read_dir(&folder).expect("the golden tables") {
            let case = entry.expect("an entry").path().join("case.json");
            if case.exists() {
                cases.push(case);
            }
        }
    }
    assert!(cases.len() > 50, "{}", cases.len());
    let mut selectors = 0;
    for case in cases {
        let text = std::fs::read_to_string(&case).expect("text");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
        for selector in list("selectors").iter().chain(&list("errors")) {
            let sql = selector["sql"].as_str().expect("text");
            if sql.contains("{t}") || selector["why"].as_str().is_some_and(|why| why.contains("column")) {
                continue;
            }
            let space = if sql.starts_with('@') { "" } else { " " };
            let statement = parse(&format!("SELECT * FROM t{space}{sql} AS x")).unwrap_or_else(|error| panic!("{case:?} {sql}: {error}"));
            let kind = match &statement.tables[0].selector {
                Some(Selector::Version(_)) => "version",
                Some(Selector::Timestamp(_)) => "time",
                Some(Selector::CompactTimestamp(_)) => "compact",
                other => panic!("{sql}: {other:?}"),
            };
            let upper = sql.to_uppercase();
            let expect = if upper.contains("VERSION AS OF TIMESTAMP") {
                "time"
            } else if upper.contains("VERSION AS OF") || upper.starts_with("@V") {
                "version"
            } else if sql.starts_with('@') {
                "compact"
            } else {
                "time"
            };
            assert_eq!(kind, expect, "{sql}");
            selectors += 1;
        }
        let of_sessions = list("session").iter().filter_map(|entry| entry["ran"].as_str().map(str::to_owned)).collect::<Vec<_>>();
        let of_statements = list("statements").iter().filter_map(|entry| entry["sql"].as_str().map(str::to_owned)).collect::<Vec<_>>();
        for sql in of_sessions.iter().chain(&of_statements) {
            let first = sql.split_whitespace().next().unwrap_or_default();
            if !["CREATE", "INSERT", "UPDATE", "DELETE", "RESTORE", "SELECT", "WITH", "DESCRIBE", "SHOW"].contains(&first)
                || sql.contains("  -- through")
            {
                continue;
            }
            let sql = sql.replace("{t}", "t");
            if let Err(error) = parse(&sql) {
                assert!(matches!(error, Error::Unsupported { .. }), "{case:?} {sql}: {error}");
                eprintln!("{error}: {}", sql.chars().take(100).collect::<String>());
            }
        }
    }
    assert!(selectors > 100, "{selectors}");
}

/// Texts of random tokens never make the parser panic; where one parses, Q1 holds.
#[test]
fn random_texts() {
    const WORDS: &[&str] = &[
        "SELECT",
        "FROM",
        "WHERE",
        "t",
        "u",
        "x",
        "*",
        ",",
        "(",
        ")",
        "VERSION",
        "TIMESTAMP",
        "AS",
        "OF",
        "FOR",
        "SYSTEM_TIME",
        "AT",
        "=>",
        "'2026-01-01'",
        "3",
        "@v1",
        "@",
        "20240626123453000",
        "JOIN",
        "ON",
        "true",
        "WITH",
        "c",
        "UNION",
        "ALL",
        "INSERT",
        "INTO",
        "VALUES",
        "UPDATE",
        "SET",
        "=",
        "DELETE",
        "DESCRIBE",
        "HISTORY",
        "SHOW",
        "TABLES",
        "CREATE",
        "TABLE",
        "TEMP",
        "VIEW",
        "INT",
        "RESTORE",
        "TO",
        "OPTION",
        "?",
        "$1",
        "[",
        "]",
        "delta",
        ".",
        "`/x@v1`",
        "\"q\"",
        "BEFORE",
        "TAG",
        "INTERVAL",
        "DAY",
        "CASE",
        "WHEN",
        "END",
        "CAST",
        "::",
        "-",
        "+",
        "AND",
        "OR",
        "NOT",
        "NULL",
        "IN",
        "EXISTS",
        "LATERAL",
        "unnest",
        "range",
        "decode",
        "DIV",
        ";",
        "/*",
        "*/",
        "--",
        "\n",
        "'",
        "\"",
        "`",
        "1.5D",
        "\u{0}0",
        "ü",
        "😀",
        "<",
        ">",
        "ARRAY",
        "STRUCT",
        "MAP",
        ":",
        "PARTITIONED",
        "BY",
        "TBLPROPERTIES",
        "USING",
        "delta.`x`",
        "E'\\u'",
        "X'0'",
        "|>",
        "LIMIT",
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).expect("small")).expect("small")
    };
    let rounds = std::env::var("ASOF_FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000);
    let starts = [
        "",
        "SELECT * FROM t ",
        "SELECT ",
        "WITH c AS (SELECT * FROM t VERSION AS OF 1) SELECT * FROM c ",
        "INSERT INTO t ",
        "UPDATE t SET a = ",
        "CREATE TABLE t ",
        "RESTORE t ",
    ];
    for _ in 0..rounds {
        let mut text = starts[next(starts.len())].to_owned();
        for _ in 0..next(14) {
            text.push_str(WORDS[next(WORDS.len())]);
            if next(8) > 0 {
                text.push(' ');
            }
        }
        for options in [Options::default(), Options { backslash_escapes: true }] {
            if let Ok(statement) = parse_with(&text, options) {
                assert_nothing_survives(&text, &statement);
            }
        }
    }
}
