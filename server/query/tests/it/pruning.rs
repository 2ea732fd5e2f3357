//! What rules files out must never rule out a row: random predicates over random rows in several files, with the statistics' hard cases (NULL,
//! NaN, both zeros, long text that is truncated, extremes), against the same predicate as a value of each row, which rules nothing out.

use proptest::prelude::*;

use crate::dml::Server;

/// Columns, and the values that their rows and literals are drawn from.
const COLUMNS: [(&str, &[&str]); 8] = [
    ("i", &["NULL", "0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808"]),
    (
        "d",
        &[
            "NULL",
            "0e0",
            "-0e0",
            "1.5e0",
            "-1.5e0",
            "1e308",
            "CAST('NaN' AS DOUBLE)",
            "CAST('Infinity' AS DOUBLE)",
            "CAST('-Infinity' AS DOUBLE)",
        ],
    ),
    (
        "s",
        &[
            "NULL",
            "''",
            "'a'",
            "'ab'",
            "'ä'",
            "'the same thirty-two characters xxx'",
            "'the same thirty-two characters xxxy'",
            "'the same thirty-two characters xxxÿ and more'",
            "'\u{10FFFF}'",
        ],
    ),
    (
        "t",
        &[
            "NULL",
            "TIMESTAMP '1969-12-31 23:59:59.999999'",
            "TIMESTAMP '2026-01-01 00:00:00.000001'",
            "TIMESTAMP '2026-01-01 00:00:00.000999'",
            "TIMESTAMP '2026-01-01 00:00:00'",
            "TIMESTAMP '9999-12-31 23:59:59.999999'",
            "TIMESTAMP '0001-01-01 00:00:00'",
        ],
    ),
    ("c", &["NULL", "0.00", "-0.01", "9999999999.99", "-9999999999.99", "1.10"]),
    ("y", &["NULL", "DATE '1970-01-01'", "DATE '1969-12-31'", "DATE '2026-12-01'", "DATE '0001-01-01'", "DATE '9999-12-31'"]),
    ("b", &["NULL", "true", "false"]),
    ("p", &["NULL", "'x'", "'x y'", "'z%'", "'ü'"]),
];

#[derive(Clone, Debug)]
enum Predicate {
    Compare(usize, usize, usize),
    In(usize, Vec<usize>, bool),
    Null(usize, bool),
    Like(usize, usize),
    Between(usize, usize, usize),
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
}

fn value(column: usize, at: usize) -> &'static str {
    let values = COLUMNS[column].1;
    values[at % values.len()]
}

/// A literal; rows may be NULL, a comparison with NULL tells nothing new.
fn literal(column: usize, at: usize) -> &'static str {
    let values = &COLUMNS[column].1[1..];
    values[at % values.len()]
}

impl Predicate {
    fn sql(&self) -> String {
        let name = |column: &usize| COLUMNS[*column].0;
        match self {
            Self::Compare(column, op, at) => {
                let op = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"][op % 8];
                format!("{} {op} {}", name(column), literal(*column, *at))
            }
            Self::In(column, list, negated) => {
                let list: Vec<_> = list.iter().map(|at| literal(*column, *at)).collect();
                format!("{} {}IN ({})", name(column), if *negated { "NOT " } else { "" }, list.join(", "))
            }
            Self::Null(column, negated) => format!("{} IS {}NULL", name(column), if *negated { "NOT " } else { "" }),
            Self::Like(column, at) => {
                let pattern = ["a%", "%b", "the same thirty-two characters xxx%", "_", "x%", "", "z\\%"][at % 7];
                format!("{} {}LIKE '{pattern}'", if column % 2 == 0 { "s" } else { "p" }, if at % 3 == 0 { "NOT " } else { "" })
            }
            Self::Between(column, low, high) => {
                format!("{} BETWEEN {} AND {}", name(column), literal(*column, *low), literal(*column, *high))
            }
            Self::And(a, b) => format!("({} AND {})", a.sql(), b.sql()),
            Self::Or(a, b) => format!("({} OR {})", a.sql(), b.sql()),
            Self::Not(a) => format!("NOT ({})", a.sql()),
        }
    }
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let column = 0..COLUMNS.len();
    let at = 0_usize..64;
    let leaf = prop_oneof![
        4 => (column.clone(), 0_usize..8, at.clone()).prop_map(|(c, op, at)| Predicate::Compare(c, op, at)),
        2 => (column.clone(), prop::collection::vec(at.clone(), 1..4), any::<bool>()).prop_map(|(c, l, n)| Predicate::In(c, l, n)),
        1 => (column.clone(), any::<bool>()).prop_map(|(c, n)| Predicate::Null(c, n)),
        1 => (column.clone(), at.clone()).prop_map(|(c, at)| Predicate::Like(c, at)),
        1 => (column, at.clone(), at).prop_map(|(c, low, high)| Predicate::Between(c, low, high)),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Predicate::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Predicate::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|a| Predicate::Not(Box::new(a))),
        ]
    })
}

/// Files of rows; a row draws a value for each column.
fn files() -> impl Strategy<Value = Vec<Vec<[usize; 8]>>> {
    let row = prop::array::uniform8(0_usize..64);
    prop::collection::vec(prop::collection::vec(row, 1..4), 2..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_row_is_ruled_out(files in files(), predicates in prop::collection::vec(predicate(), 16)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_stack_size(16 << 20).enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::new();
            server.run("CREATE TABLE t (k INT, i BIGINT, d DOUBLE, s STRING, t TIMESTAMP, c DECIMAL(12, 2), y DATE, b BOOLEAN, p STRING) PARTITIONED BY (p)").await;
            let mut key = 0;
            for rows in &files {
                let row = |draws: &[usize; 8]| {
                    key += 1;
                    let values: Vec<_> = draws.iter().enumerate().map(|(column, at)| value(column, *at)).collect();
                    format!("({key}, {})", values.join(", "))
                };
                let rows: Vec<_> = rows.iter().map(row).collect();
                server.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
            }
            for predicate in &predicates {
                let predicate = predicate.sql();
                let mut filtered = server.rows(&format!("SELECT k FROM t WHERE {predicate}")).await;
                let told = server.rows(&format!("SELECT k, ({predicate}) AS passes FROM t")).await;
                let mut expected: Vec<_> = told.iter().filter_map(|row| row.strip_suffix("|true")).map(str::to_owned).collect();
                filtered.sort();
                expected.sort();
                assert_eq!(filtered, expected, "{predicate}");
                let counted = server.rows(&format!("SELECT count(*) FROM t WHERE {predicate}")).await;
                assert_eq!(counted, [expected.len().to_string()], "{predicate}");
            }
        });
    }
}

/// Statistics leave NaN out, which is greater than all; a NULL's DISTINCT FROM is true.
#[tokio::test(flavor = "multi_thread")]
async fn nan_passes_where_it_is_greater() {
    let server = Server::new();
    server.run("CREATE TABLE t (k INT, d DOUBLE, s STRUCT<f: FLOAT>)").await;
    server
        .run("INSERT INTO t VALUES (1, CAST('NaN' AS DOUBLE), named_struct('f', CAST('NaN' AS FLOAT))), (2, 0, named_struct('f', 0))")
        .await;
    let check = async |predicate: &str, expect: &[&str]| {
        assert_eq!(server.rows(&format!("SELECT k FROM t WHERE {predicate} ORDER BY k")).await, expect, "{predicate}");
    };
    check("d > 5", &["1"]).await;
    check("d >= 1e308", &["1"]).await;
    check("5 < d", &["1"]).await;
    check("d <> 0", &["1"]).await;
    check("d = CAST('NaN' AS DOUBLE)", &["1"]).await;
    check("NOT (d <= 5)", &["1"]).await;
    check("d IN (3, CAST('NaN' AS DOUBLE))", &["1"]).await;
    check("d NOT BETWEEN -1 AND 1", &["1"]).await;
    check("s.f > 5", &["1"]).await;
    check("d < 5", &["2"]).await;
    check("d = 0", &["2"]).await;
}

/// A join that wants few of a file's rows reads the file in another way: with the same rows.
#[tokio::test(flavor = "multi_thread")]
async fn few_rows_of_a_join_are_the_right_ones() {
    let server = Server::new();
    server
        .run("CREATE TABLE t AS SELECT value AS k, value % 7 AS r, concat('row ', value) AS s FROM generate_series(0, 50000) g(value)")
        .await;
    server.run("CREATE TABLE few (k BIGINT, note STRING)").await;
    server.run("INSERT INTO few VALUES (3, 'a'), (777, 'b'), (777, 'c'), (49999, 'd'), (50001, 'none'), (NULL, 'null')").await;
    let joined = "FROM t JOIN few ON t.k = few.k";
    let found = server.rows(&format!("SELECT t.s, few.note {joined} ORDER BY 1, 2")).await;
    assert_eq!(found, ["row 3|a", "row 49999|d", "row 777|b", "row 777|c"]);
    let found = server.rows(&format!("SELECT t.k, t.r {joined} WHERE t.r = 0 AND s LIKE 'row %' ORDER BY 1, note")).await;
    assert_eq!(found, ["777|0", "777|0"]);
    let found = server.rows("SELECT count(*), count(few.k) FROM t LEFT JOIN few ON t.k = few.k").await;
    assert_eq!(found, ["50002|4"]);
    let found = server.rows("SELECT count(*) FROM t WHERE k NOT IN (SELECT k FROM few WHERE k IS NOT NULL)").await;
    assert_eq!(found, ["49998"]);
    let found = server.rows("SELECT s FROM t WHERE k IN (SELECT k FROM few WHERE note > 'b') ORDER BY s").await;
    assert_eq!(found, ["row 49999", "row 777"]);
    let analysed = server.rows(&format!("EXPLAIN ANALYZE SELECT sum(length(t.s)) {joined}")).await.join("\n");
    assert!(analysed.contains("pushdown_rows_pruned=49.9") || analysed.contains("pushdown_rows_pruned=50.0"), "{analysed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_tells_what_its_scans_skip_and_why() {
    let server = Server::new();
    server.run("CREATE TABLE t (i INT, p STRING) PARTITIONED BY (p)").await;
    for (i, p) in [(1, "a"), (2, "a"), (3, "b"), (9, "b"), (10, "b")] {
        server.run(&format!("INSERT INTO t VALUES ({i}, '{p}')")).await;
    }
    server.run("DELETE FROM t WHERE i = 10").await;
    let check = async |sql: &str, words: &[&str]| {
        let plan = server.rows(&format!("EXPLAIN {sql}")).await.join("\n");
        words.iter().for_each(|word| assert!(plan.contains(word), "{sql}: {plan} lacks {word}"));
    };
    check("SELECT * FROM t", &["table=lake.main.t@v6, files=4 of 4"]).await;
    check("SELECT * FROM t WHERE p = 'b' AND i < 5", &["files=1 of 4, skipped_by_partition=2, skipped_by_statistics=1"]).await;
    check("SELECT * FROM t VERSION AS OF 5 LIMIT 1", &["table=lake.main.t@v5, files=1 of 5, skipped_by_limit=4"]).await;
    check("SELECT count(*) FROM t@v2", &["v2"]).await;
    let analysed = server.rows("EXPLAIN ANALYZE SELECT * FROM t WHERE i = 3").await.join("\n");
    for word in ["files=1 of 4, skipped_by_statistics=3", "bytes_scanned=", "row_groups_pruned_statistics=", "output_rows=1"] {
        assert!(analysed.contains(word), "{analysed} lacks {word}");
    }
}
