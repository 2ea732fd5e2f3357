//! Statements that go on for hours, on a runtime of one thread: they end when told to, and hold up nobody. Time is kept on the test's own
//! runtime.

use std::sync::Arc;
use std::time::Duration;

use asof_catalog::{Session, Sessions, Warehouse};
use asof_query::{Engine, EngineConfig, Error, Interrupt, Reason};
use asof_storage::Env;
use tempfile::TempDir;

/// Each for hours, each in an operator of its own: a join without equality, one with it whose filter lets nothing pass, one with it that
/// makes many rows, one without any condition, an unnest, a recursion.
const ENDLESS: [&str; 6] = [
    "SELECT count(*) FROM generate_series(1, 2000000) a(x), generate_series(1, 2000000) b(y) WHERE x * y % 7 = 8",
    "SELECT count(*) FROM generate_series(1, 2000000) a(x), generate_series(1, 2000000) b(y) WHERE x % 3 = y % 3 AND x * y < 0",
    "SELECT count(*) FROM generate_series(1, 2000000) a(x), generate_series(1, 2000000) b(y) WHERE x % 3 = y % 3",
    "SELECT sum(x + y) FROM generate_series(1, 2000000) a(x), generate_series(1, 2000000) b(y)",
    "SELECT count(v) FROM (SELECT unnest(l) v FROM (SELECT range(0, 1000) l FROM generate_series(1, 2000000) a(x)))",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n > 0) SELECT count(*) FROM r",
];

fn engine(folder: &TempDir) -> (Arc<Engine>, Arc<Session>) {
    let warehouse = Arc::new(Warehouse::open(folder.path().to_str().unwrap(), "lake", Env::system()).unwrap());
    let config = EngineConfig { memory_limit: 1 << 30, statement_memory_limit: None, parallelism: 1, spill_dir: None };
    let engine = Arc::new(Engine::new(warehouse, Env::system(), &config).unwrap());
    let session = Sessions::new(Env::system(), Duration::from_secs(600), "lake", "main").open("anonymous");
    (engine, session)
}

#[tokio::test]
async fn what_goes_on_for_hours_ends_when_told_and_holds_up_nobody() {
    // Leaked: where the test fails, its end would wait for what goes on for hours.
    let runtime = &*Box::leak(Box::new(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()));
    let folder = TempDir::new().unwrap();
    let (engine, session) = engine(&folder);
    let run = |sql: &'static str, interrupt: &Interrupt| {
        let (engine, session, interrupt) = (Arc::clone(&engine), Arc::clone(&session), interrupt.clone());
        runtime.spawn(async move { engine.run(&session, sql, None, &interrupt).await })
    };
    run("CREATE TABLE t (n BIGINT)", &Interrupt::new()).await.unwrap().unwrap();
    let inserts = ENDLESS.map(|sql| &*format!("INSERT INTO t {sql}").leak());
    for sql in ENDLESS.into_iter().chain(inserts) {
        let interrupt = Interrupt::new();
        let endless = run(sql, &interrupt);
        // Time to get to where it does not come back from.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let short = tokio::time::timeout(Duration::from_secs(20), run("SELECT 1", &Interrupt::new())).await;
        assert!(!endless.is_finished(), "{sql}");
        interrupt.raise(Reason::Timeout(Duration::from_secs(1)));
        // What the server does, too; it takes effect where the work pauses.
        endless.abort();
        let ended = tokio::time::timeout(Duration::from_secs(20), endless).await;
        assert!(short.is_ok_and(|s| s.is_ok_and(|s| s.is_ok())), "held up by {sql}");
        match ended.unwrap_or_else(|_| panic!("goes on: {sql}")) {
            Ok(Err(Error::Timeout(_))) => {}
            Err(stopped) if stopped.is_cancelled() => {}
            other => panic!("{sql}: {other:?}"),
        }
    }
}
