//! Plans that are kept for texts that come again, and what a statement may take while it runs.

use asof_query::Error;

use crate::dml::Server;

/// The same text over and over: what it reads, and in which zone, may change in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_comes_again_means_what_it_says_now() {
    let server = Server::new();
    let all = "SELECT id, hour(at) FROM t WHERE id > 0 ORDER BY id";
    server.run("CREATE TABLE t (id INT, at TIMESTAMP)").await;
    server.run("INSERT INTO t VALUES (1, TIMESTAMP '2026-01-01 12:00:00')").await;
    for _ in 0..2 {
        assert_eq!(server.rows(all).await, ["1|12"]);
    }
    server.run("SET TIME ZONE 'Asia/Tokyo'").await;
    assert_eq!(server.rows(all).await, ["1|21"]);
    server.run("RESET time_zone").await;
    server.run("INSERT INTO t VALUES (2, NULL)").await;
    assert_eq!(server.rows(all).await, ["1|12", "2|NULL"]);
    server.run("DROP TABLE t").await;
    server.run("CREATE TABLE t AS SELECT CAST(7 AS BIGINT) AS id, TIMESTAMP '2026-01-01 03:00:00' AS at").await;
    server.run("DELETE FROM t WHERE id = 8").await;
    assert_eq!(server.rows(all).await, ["7|3"]);
    server.run("CREATE SCHEMA other").await;
    server.run("CREATE TABLE other.t AS SELECT 5 AS id, TIMESTAMP '2026-01-01 04:00:00' AS at").await;
    server.run("USE other").await;
    assert_eq!(server.rows(all).await, ["5|4"]);
    server.run("CREATE TEMPORARY VIEW t AS SELECT 6 AS id, TIMESTAMP '2026-01-01 05:00:00' AS at").await;
    assert_eq!(server.rows(all).await, ["6|5"]);

    let moments: Vec<_> = (0..3).map(|_| "SELECT now(), random() FROM t").collect();
    let mut seen = Vec::new();
    for text in moments {
        seen.extend(server.rows(text).await);
    }
    seen.dedup();
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_spills_or_fails_at_its_limit_and_the_next_one_works() {
    let server = Server::with_memory(Some(24 << 20));
    let rows = "FROM (SELECT repeat(CAST(value AS STRING), 12) AS x FROM generate_series(1, 400000) g(value))";
    let grouped = format!("SELECT count(*), sum(n) FROM (SELECT x, count(*) AS n {rows} GROUP BY x)");
    assert_eq!(server.rows(&grouped).await, ["400000|400000"]);
    // The first of an order are held in memory.
    let held = format!("SELECT max(x) FROM (SELECT x {rows} ORDER BY x DESC LIMIT 390000)");
    match server.try_run(&held).await {
        Err(Error::Memory(text)) => assert!(text.contains("statement_memory_limit") && text.contains("25165824"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(server.rows("SELECT 1").await, ["1"]);
}
