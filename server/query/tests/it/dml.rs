//! Statements that change tables, end to end: text in, rows and history out, over a warehouse in a temporary folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asof_catalog::{Session, Sessions, Warehouse};
use asof_query::{Engine, EngineConfig, Error, Interrupt, Outcome};
use asof_storage::Env;
use serde_json::Value;
use tempfile::TempDir;

pub struct Server {
    folder: TempDir,
    engine: Engine,
    session: Arc<Session>,
}

impl Server {
    pub fn new() -> Self {
        Self::with_memory(None)
    }

    /// A statement may take so many bytes.
    pub fn with_memory(statement_memory_limit: Option<usize>) -> Self {
        let folder = TempDir::new().unwrap();
        let warehouse = Arc::new(Warehouse::open(folder.path().to_str().unwrap(), "lake", Env::system()).unwrap());
        let config = EngineConfig { memory_limit: 256 << 20, statement_memory_limit, parallelism: 2, spill_dir: None };
        let engine = Engine::new(warehouse, Env::system(), &config).unwrap();
        let session = Sessions::new(Env::system(), Duration::from_secs(600), "lake", "main").open("anonymous");
        Self { folder, engine, session }
    }

    pub async fn try_run(&self, sql: &str) -> Result<Outcome, Error> {
        self.engine.run(&self.session, sql, None, &Interrupt::new()).await
    }

    pub async fn run(&self, sql: &str) -> Outcome {
        self.try_run(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"))
    }

    async fn count(&self, sql: &str) -> Option<i64> {
        self.run(sql).await.count
    }

    async fn fails(&self, sql: &str, words: &[&str]) {
        let error = match self.try_run(sql).await {
            Ok(outcome) => panic!("{sql}: {outcome:?}"),
            Err(error) => error.to_string(),
        };
        for word in words {
            assert!(error.contains(word), "{sql}: {error:?} does not say {word:?}");
        }
    }

    /// Rows as text, `|` between values.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        let (_, batches) = self.run(sql).await.rows.unwrap();
        batches.iter().flat_map(texts).collect()
    }

    fn table(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("main").join(name)
    }

    fn commit(&self, name: &str, version: u64) -> Vec<Value> {
        let text = std::fs::read_to_string(self.table(name).join(format!("_delta_log/{version:020}.json"))).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn info(&self, name: &str, version: u64) -> Value {
        let actions = self.commit(name, version);
        actions.iter().find_map(|a| a.get("commitInfo")).unwrap().clone()
    }

    fn added(&self, name: &str, version: u64) -> Vec<Value> {
        self.commit(name, version).into_iter().filter_map(|a| a.get("add").cloned()).collect()
    }

    pub fn versions(&self, name: &str) -> usize {
        let log = std::fs::read_dir(self.table(name).join("_delta_log")).unwrap();
        log.filter(|f| {
            let name = f.as_ref().unwrap().file_name();
            let name = name.to_str().unwrap();
            name.len() == 25 && name.ends_with(".json")
        })
        .count()
    }

    fn data_files(&self, name: &str) -> usize {
        fn walk(folder: &Path) -> usize {
            let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
            entries
                .map(|path| match path {
                    path if path.ends_with("_delta_log") => 0,
                    path if path.is_dir() => walk(&path),
                    path => usize::from(path.extension().is_some_and(|e| e == "parquet")),
                })
                .sum()
        }
        walk(&self.table(name))
    }
}

fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let columns: Vec<_> = batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join("|")).collect()
}

fn metrics(info: &Value) -> BTreeMap<String, String> {
    let metrics = info["operationMetrics"].as_object().unwrap();
    metrics.iter().filter(|(k, _)| !k.ends_with("TimeMs")).map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect()
}

fn metric(info: &Value, name: &str) -> i64 {
    info["operationMetrics"][name].as_str().unwrap_or_else(|| panic!("{name} in {info}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_insert_and_read_back() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT NOT NULL, name STRING COMMENT 'who', price DECIMAL(10,2), at TIMESTAMP) COMMENT 'first'").await;
    let info = server.info("t", 0);
    assert_eq!(info["operation"], "CREATE TABLE");
    assert_eq!(info["operationParameters"]["partitionBy"], "[]");
    assert_eq!(info["operationParameters"]["description"], "first");
    assert_eq!(metrics(&info), BTreeMap::new());

    let sql = "INSERT INTO t VALUES (1, 'a', 1.1, TIMESTAMP '2026-01-01 12:00:00'), (2, NULL, 2, '2026-01-02 00:00:00')";
    assert_eq!(server.count(sql).await, Some(2));
    let info = server.info("t", 1);
    assert_eq!((&info["operation"], &info["isBlindAppend"]), (&Value::from("WRITE"), &Value::from(true)));
    assert_eq!(info["operationParameters"], serde_json::json!({"mode": "Append", "partitionBy": "[]"}));
    assert_eq!((metric(&info, "numFiles"), metric(&info, "numOutputRows")), (1, 2));
    let add = &server.added("t", 1)[0];
    assert_eq!(metric(&info, "numOutputBytes"), add["size"].as_i64().unwrap());
    let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap()).unwrap();
    assert_eq!(stats["numRecords"], 2);
    assert_eq!(stats["maxValues"]["at"], "2026-01-02T00:00:00.000Z");
    assert_eq!(stats["nullCount"]["name"], 1);

    assert_eq!(server.count("INSERT INTO t (price, ID) SELECT id * 10, id + 2 FROM t").await, Some(2));
    assert_eq!(server.info("t", 2)["isBlindAppend"], false);
    let rows = server.rows("SELECT id, name, price FROM t ORDER BY id").await;
    assert_eq!(rows, ["1|a|1.10", "2|NULL|2.00", "3|NULL|10.00", "4|NULL|20.00"]);
    assert_eq!(server.rows("SELECT count(*) FROM t VERSION AS OF 1").await, ["2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_inserts_change_nothing() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT NOT NULL, name VARCHAR(3), n TINYINT, CONSTRAINT small CHECK (n < 100))").await;
    let check = async |sql: &str, words: &[&str]| server.fails(sql, words).await;
    check("INSERT INTO t VALUES (NULL, 'a', 1)", &["id", "NOT NULL"]).await;
    check("INSERT INTO t (name) VALUES ('a')", &["id", "NOT NULL"]).await;
    check("INSERT INTO t VALUES (1, 'abcd', 1)", &["name", "3"]).await;
    check("INSERT INTO t VALUES (1, 'a', 300)", &["n", "TINYINT"]).await;
    check("INSERT INTO t VALUES (1, 'a', 100)", &["small", "violated"]).await;
    // NULL is a violation, as in Delta.
    check("INSERT INTO t VALUES (1, 'a', NULL)", &["small", "violated"]).await;
    check("INSERT INTO t VALUES (1, 'a')", &["3 columns", "2"]).await;
    check("INSERT INTO t (id, nme) VALUES (1, 'a')", &["nme", "name"]).await;
    check("INSERT INTO t (id, id) VALUES (1, 2)", &["twice"]).await;
    check("INSERT INTO t VALUES (true, 'a', 1)", &["id", "BOOLEAN"]).await;
    check("CREATE TABLE t (a INT)", &["already exists"]).await;
    check("INSERT INTO nothing VALUES (1)", &["nothing"]).await;
    assert_eq!((server.versions("t"), server.data_files("t")), (1, 0));
    server.run("CREATE TABLE IF NOT EXISTS t (a INT)").await;
    assert_eq!(server.versions("t"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_table_as_and_replace() {
    let server = Server::new();
    assert_eq!(server.count("CREATE TABLE t AS SELECT 1 AS id, 'a' AS name UNION ALL SELECT 2, 'b'").await, Some(2));
    let info = server.info("t", 0);
    assert_eq!(info["operation"], "CREATE TABLE AS SELECT");
    assert_eq!((metric(&info, "numOutputRows"), metric(&info, "numRemovedFiles")), (2, 0));
    let files = server.added("t", 0).len();
    assert_eq!(server.count("CREATE OR REPLACE TABLE t PARTITIONED BY (day) AS SELECT id, DATE '2026-01-01' AS day FROM t").await, Some(2));
    let info = server.info("t", 1);
    assert_eq!(info["operation"], "CREATE OR REPLACE TABLE AS SELECT");
    assert_eq!(info["operationParameters"]["partitionBy"], "[\"day\"]");
    assert_eq!(metric(&info, "numRemovedFiles"), i64::try_from(files).unwrap());
    assert_eq!(server.rows("SELECT * FROM t ORDER BY id").await, ["1|2026-01-01", "2|2026-01-01"]);
    assert_eq!(server.rows("SELECT * FROM t VERSION AS OF 0 ORDER BY id").await, ["1|a", "2|b"]);
    server.fails("CREATE TABLE u AS SELECT NULL AS x", &["x", "CAST"]).await;
    server.fails("CREATE TABLE u AS SELECT count(*) FROM t", &["alias"]).await;
    server.fails("CREATE TABLE u (a INT) PARTITIONED BY (a)", &["column"]).await;
    server.run("DROP TABLE t").await;
    server.fails("SELECT * FROM t", &["t"]).await;
    server.fails("DROP TABLE t", &["t"]).await;
    server.run("DROP TABLE IF EXISTS t").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_partition_values() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT, p STRING, d DOUBLE) PARTITIONED BY (p)").await;
    let values = [" lead", "a/b", "50%", "a:b", "k=v", "a b", "%20", "it''s", "日本語", "#?&", "..", "new\nline", ""];
    for (id, value) in values.iter().enumerate() {
        server.run(&format!("INSERT INTO t VALUES ({id}, '{value}', 0.5)")).await;
    }
    server.run("INSERT INTO t VALUES (99, NULL, 1)").await;
    for (id, value) in values.iter().enumerate().filter(|(_, value)| !value.is_empty()) {
        let rows = server.rows(&format!("SELECT id FROM t WHERE p = '{value}'")).await;
        assert_eq!(rows, [id.to_string()], "{value:?}");
    }
    assert_eq!(server.rows("SELECT id FROM t WHERE p IS NULL ORDER BY id").await, ["12", "99"]);
    assert_eq!(server.added("t", 2)[0]["partitionValues"]["p"], "a/b");
    assert!(server.added("t", 2)[0]["path"].as_str().unwrap().starts_with("p=a%252Fb/"));
    assert!(server.table("t").join("p=a%2Fb").is_dir());
    assert_eq!(server.count("DELETE FROM t WHERE p IN ('a/b', '50%')").await, Some(2));
    assert_eq!(server.count("UPDATE t SET p = 'x y' WHERE p = 'k=v'").await, Some(1));
    assert_eq!(server.rows("SELECT count(*), count(p) FROM t").await, ["12|10"]);
    assert_eq!(server.rows("SELECT id FROM t WHERE p = 'x y'").await, ["4"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delete_keeps_what_is_false_or_unknown() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT, x STRING) TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')").await;
    server.run("INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'b')").await;
    server.run("INSERT INTO t VALUES (4, 'a')").await;
    server.run("INSERT INTO t VALUES (5, 'c')").await;
    assert_eq!(server.count("DELETE FROM t WHERE x = 'a'").await, Some(2));
    assert_eq!(server.rows("SELECT id FROM t ORDER BY id").await, ["2", "3", "5"]);
    let info = server.info("t", 4);
    assert_eq!(info["operation"], "DELETE");
    assert_eq!(info["operationParameters"]["predicate"], "[\"x = 'a'\"]");
    let expected = [("numRemovedFiles", 2), ("numAddedFiles", 1), ("numDeletedRows", 2), ("numCopiedRows", 2)];
    for (name, value) in expected {
        assert_eq!(metric(&info, name), value, "{name}");
    }
    assert_eq!(server.count("DELETE FROM t WHERE x = 'nobody'").await, Some(0));
    assert_eq!(server.versions("t"), 5);
    server.fails("DELETE FROM t WHERE y = 1", &["y"]).await;
    let sql = "DELETE FROM t AS o WHERE EXISTS (SELECT 1 FROM t VERSION AS OF 1 old WHERE old.id = o.id AND old.x IS NULL)";
    assert_eq!(server.count(sql).await, Some(1));
    assert_eq!(server.count("DELETE FROM t").await, Some(2));
    assert_eq!(server.rows("SELECT count(*) FROM t").await, ["0"]);
    assert_eq!(metric(&server.info("t", 6), "numAddedFiles"), 0);
}

/// The counts of Spark: a vector that takes another one's place is added, removed and updated; a file that loses its last row goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_go_by_deletion_vectors() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT)").await;
    server.run("INSERT INTO t VALUES (1), (2), (3), (4)").await;
    server.run("INSERT INTO t VALUES (5), (6)").await;
    let check = async |sql: &str, deleted: i64, left: &str, expect: [i64; 4]| {
        assert_eq!(server.count(sql).await, Some(deleted), "{sql}");
        assert_eq!(server.rows("SELECT array_to_string(array_agg(id ORDER BY id), ' ') FROM t").await, [left], "{sql}");
        let info = server.info("t", server.versions("t") as u64 - 1);
        let names = ["DeletionVectorsAdded", "DeletionVectorsRemoved", "DeletionVectorsUpdated", "RemovedFiles"];
        assert_eq!(names.map(|name| metric(&info, &format!("num{name}"))), expect, "{sql}");
    };
    check("DELETE FROM t WHERE id IN (1, 5)", 2, "2 3 4 6", [2, 0, 0, 0]).await;
    check("DELETE FROM t WHERE id = 2", 1, "3 4 6", [1, 1, 1, 0]).await;
    check("DELETE FROM t WHERE id = 6", 1, "3 4", [0, 1, 0, 1]).await;
    check("UPDATE t SET id = id + 10 WHERE id = 3", 1, "4 13", [1, 1, 1, 0]).await;
    check("UPDATE t SET id = id + 10", 2, "14 23", [0, 1, 0, 2]).await;
    // The predicate is asked once: what it said then holds.
    server.run("INSERT INTO t SELECT value FROM generate_series(1, 1000) g(value)").await;
    let deleted = server.count("DELETE FROM t WHERE random() < 0.5").await.unwrap();
    assert_eq!(server.rows("SELECT count(*) FROM t").await, [(1002 - deleted).to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn update_sees_rows_as_they_were() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT, a INT, b INT, d DECIMAL(38,10), CONSTRAINT positive CHECK (a > 0))").await;
    server.run("INSERT INTO t VALUES (1, 10, 20, 0.1), (2, 30, 40, 12345678901234567890.0123456789), (3, 5, 0, 1)").await;
    assert_eq!(server.count("UPDATE t SET a = b, b = a WHERE id = 1").await, Some(1));
    assert_eq!(server.rows("SELECT id, a, b FROM t ORDER BY id").await, ["1|20|10", "2|30|40", "3|5|0"]);
    let info = server.info("t", 2);
    assert_eq!(info["operation"], "UPDATE");
    assert_eq!((metric(&info, "numUpdatedRows"), metric(&info, "numCopiedRows"), metric(&info, "numRemovedFiles")), (1, 0, 0));
    assert_eq!((metric(&info, "numAddedFiles"), metric(&info, "numDeletionVectorsAdded")), (1, 1));
    // Only selected rows are computed: row 3 would divide by zero.
    assert_eq!(server.count("UPDATE t SET a = 100 / b WHERE b <> 0").await, Some(2));
    server.fails("UPDATE t SET a = -1 WHERE id = 1", &["positive"]).await;
    server.fails("UPDATE t SET a = 1, A = 2", &["twice"]).await;
    server.fails("UPDATE t SET nope = 1", &["nope", "id, a, b"]).await;
    assert_eq!(server.count("UPDATE t SET a = 1 WHERE id = 99").await, Some(0));
    assert_eq!(server.versions("t"), 4);
    let sql = "UPDATE t SET a = (SELECT max(old.a) FROM t VERSION AS OF 1 old WHERE old.id = t.id) WHERE id IN (SELECT 1)";
    assert_eq!(server.count(sql).await, Some(1));
    assert_eq!(server.count("UPDATE t SET b = 7").await, Some(3));
    assert_eq!(server.rows("SELECT id, a, b FROM t ORDER BY id").await, ["1|10|7", "2|2|7", "3|5|7"]);
    assert_eq!(server.info("t", 5)["operationParameters"]["predicate"], "[]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn insert_overwrite_and_restore() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT)").await;
    server.run("INSERT INTO t VALUES (1), (2)").await;
    assert_eq!(server.count("INSERT OVERWRITE t SELECT id + 10 FROM t").await, Some(2));
    let info = server.info("t", 2);
    assert_eq!(info["operationParameters"]["mode"], "Overwrite");
    assert_eq!(metric(&info, "numRemovedFiles"), 1);
    let (schema, rows) = server.run("RESTORE TABLE t TO VERSION AS OF 1").await.rows.unwrap();
    let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    assert_eq!(names[..3], ["table_size_after_restore", "num_of_files_after_restore", "num_removed_files"]);
    let value = |column: usize| rows[0].column(column).as_primitive::<Int64Type>().value(0);
    assert_eq!((value(1), value(2), value(3)), (1, 1, 1));
    assert_eq!(server.rows("SELECT id FROM t ORDER BY id").await, ["1", "2"]);
    let info = server.info("t", 3);
    assert_eq!(info["operation"], "RESTORE");
    assert_eq!(info["operationParameters"]["timestamp"], Value::Null);
    // To the version it is at: a commit all the same, as Delta's.
    server.run("RESTORE TABLE t TO VERSION AS OF 3").await;
    assert_eq!(server.versions("t"), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_defaults_and_nested() {
    let server = Server::new();
    let columns = "qty INT, price DOUBLE, total DOUBLE GENERATED ALWAYS AS (qty * price), note STRING DEFAULT 'none', \
                   s STRUCT<a: INT, b: STRING>, l ARRAY<BIGINT>";
    server.run(&format!("CREATE TABLE t ({columns})")).await;
    server.run("INSERT INTO t (qty, price, s, l) VALUES (2, 1.5, named_struct('a', 1, 'b', 'x'), [1, 2])").await;
    server.run("INSERT INTO t VALUES (3, 2, 6, DEFAULT, NULL, NULL)").await;
    server.fails("INSERT INTO t (qty, price, total) VALUES (3, 2, 7)", &["total"]).await;
    server.run("UPDATE t SET qty = 4 WHERE qty = 2").await;
    let rows = server.rows("SELECT qty, total, note, s, l FROM t ORDER BY qty").await;
    assert_eq!(rows, ["3|6.0|none|NULL|NULL", "4|6.0|none|{a: 1, b: x}|[1, 2]"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mapped_columns() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT, `a b` STRING, p INT) PARTITIONED BY (p) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')").await;
    server.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2)").await;
    server.run("UPDATE t SET \"a b\" = 'z' WHERE id = 1").await;
    assert_eq!(server.rows("SELECT id, \"a b\", p FROM t ORDER BY id").await, ["1|z|1", "2|y|2"]);
    let stats: Value = serde_json::from_str(server.added("t", 1)[0]["stats"].as_str().unwrap()).unwrap();
    assert!(stats["nullCount"].as_object().unwrap().keys().all(|name| name.starts_with("col-")), "{stats}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_statements_all_commit_once() {
    let server = Arc::new(Server::new());
    server.run("CREATE TABLE t (id INT)").await;
    let mut tasks = tokio::task::JoinSet::new();
    for id in 0..6 {
        let server = Arc::clone(&server);
        tasks.spawn(async move {
            server.run(&format!("INSERT INTO t VALUES ({id})")).await;
            server.run(&format!("UPDATE t SET id = id + 100 WHERE id = {id}")).await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(server.rows("SELECT id FROM t ORDER BY id").await, ["100", "101", "102", "103", "104", "105"]);
    assert_eq!(server.versions("t"), 13);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identity_columns_number_rows() {
    let server = Server::new();
    server.run("CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY (INCREMENT BY 5 START WITH 10), x STRING)").await;
    server.run("INSERT INTO t (x) VALUES ('a'), ('b')").await;
    server.run("INSERT INTO t (x) VALUES ('c')").await;
    server.run("INSERT INTO t VALUES (1, 'd')").await;
    server.run("DELETE FROM t WHERE x = 'a'").await;
    assert_eq!(server.rows("SELECT id, x FROM t ORDER BY id").await, ["1|d", "15|b", "20|c"]);
    server.fails("UPDATE t SET id = 3", &["identity"]).await;
    server.run("CREATE TABLE u (id BIGINT GENERATED ALWAYS AS IDENTITY, x STRING)").await;
    server.fails("INSERT INTO u VALUES (1, 'a')", &["id", "ALWAYS"]).await;
    server.run("INSERT INTO u (x) VALUES ('a')").await;
    assert_eq!(server.rows("SELECT * FROM u").await, ["1|a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_of_structs_are_assigned() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT, s STRUCT<a: INT, t: STRUCT<b: STRING, c: INT>>)").await;
    server.run("INSERT INTO t VALUES (1, named_struct('a', 1, 't', named_struct('b', 'x', 'c', 2))), (2, NULL)").await;
    server.run("UPDATE t SET s.t.b = 'changed', s.a = id + 10").await;
    let rows = server.rows("SELECT s FROM t ORDER BY id").await;
    assert_eq!(rows, ["{a: 11, t: {b: changed, c: 2}}", "{a: 12, t: {b: changed, c: NULL}}"]);
    server.fails("UPDATE t SET s.nope = 1", &["nope", "a, t"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_told_to_the_feed() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')").await;
    server.run("INSERT INTO t VALUES (1, 'a'), (2, 'a'), (3, 'b')").await;
    server.run("UPDATE t SET id = 3 - id WHERE p = 'a'").await;
    server.run("DELETE FROM t WHERE id = 1").await;
    server.run("DELETE FROM t WHERE p = 'b'").await;
    let feed = |version| -> Vec<Value> { server.commit("t", version).into_iter().filter_map(|a| a.get("cdc").cloned()).collect() };
    assert_eq!((feed(2).len(), feed(3).len(), feed(4).len()), (1, 1, 0));
    assert_eq!(metric(&server.info("t", 2), "numAddedChangeFiles"), 1);
    let path = feed(2)[0]["path"].as_str().unwrap().to_owned();
    assert!(path.starts_with("_change_data/p=a/"), "{path}");
    assert_eq!(server.rows("SELECT * FROM t").await, ["2|a"]);
}

/// The statement that SHOW CREATE TABLE gives makes a table of which it gives the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_show_create_table_says_makes_such_a_table() {
    let server = Server::new();
    server
        .run(
            "CREATE TABLE one (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 2), qty INT NOT NULL DEFAULT 1 + 1 \
             COMMENT 'it''s how many', `odd name` VARCHAR(10), twice INT GENERATED ALWAYS AS (qty * 2), s STRUCT<a: ARRAY<INT>, m: MAP<STRING, DECIMAL(8,2)>>, \
             CONSTRAINT some CHECK (qty > 0)) PARTITIONED BY (qty) COMMENT 'made' \
             TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'who' = 'o''neil')",
        )
        .await;
    let said = server.rows("SHOW CREATE TABLE one").await.join("\n");
    for words in ["`odd name` VARCHAR(10)", "CONSTRAINT some CHECK (qty > 0)", "'who' = 'o''neil'", "START WITH 5 INCREMENT BY 2"] {
        assert!(said.contains(words), "{said} lacks {words}");
    }
    server.run(&said.replace("main.one", "main.two")).await;
    let again = server.rows("SHOW CREATE TABLE two").await.join("\n");
    assert_eq!(again.replace("main.two", "main.one"), said);
    server.run("INSERT INTO two (`odd name`) VALUES ('x')").await;
    assert_eq!(server.rows("SELECT id, qty, twice FROM two").await, ["5|2|4"]);
}

/// Operations, parameters and what they are worth to readers are those of Spark (golden table `constraints`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alterations_are_told_as_spark_tells_them() {
    let server = Server::new();
    server.run("CREATE TABLE t (qty INT, note STRING)").await;
    let check = async |sql: &str, operation: &str, parameters: Value, blind: bool| {
        server.run(sql).await;
        let info = server.info("t", server.versions("t") as u64 - 1);
        let mut told = info["operationParameters"].clone();
        if let Some(column) = told["column"].as_str() {
            told["column"] = serde_json::from_str(column).unwrap();
        }
        assert_eq!((&info["operation"], &told), (&Value::from(operation), &parameters), "{sql}");
        assert_eq!((&info["isBlindAppend"], &info["operationMetrics"]), (&Value::from(blind), &serde_json::json!({})), "{sql}");
    };
    let set = serde_json::json!({"properties": "{\"owner\":\"me\"}"});
    check("ALTER TABLE t SET TBLPROPERTIES ('owner' = 'me')", "SET TBLPROPERTIES", set, true).await;
    let note = serde_json::json!({"name": "note", "type": "string", "nullable": true, "metadata": {"CURRENT_DEFAULT": "'none'"}});
    check("ALTER TABLE t ALTER COLUMN note SET DEFAULT 'none'", "CHANGE COLUMN", serde_json::json!({ "column": note }), true).await;
    let added = serde_json::json!({"name": "small_qty", "expr": "qty < 100"});
    check("ALTER TABLE t ADD CONSTRAINT small_qty CHECK (qty < 100)", "ADD CONSTRAINT", added, false).await;
    let dropped = serde_json::json!({"name": "small_qty", "expr": "qty < 100", "existed": "true"});
    check("ALTER TABLE t DROP CONSTRAINT small_qty", "DROP CONSTRAINT", dropped, true).await;
}

/// Rows that come while a constraint is added must keep it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_constraint_conflicts_with_rows_that_come_meanwhile() {
    let server = Arc::new(Server::new());
    server.run("CREATE TABLE t (a INT)").await;
    let mut tasks = tokio::task::JoinSet::new();
    for a in 0..8 {
        let server = Arc::clone(&server);
        tasks.spawn(async move { _ = server.try_run(&format!("INSERT INTO t VALUES ({})", if a == 7 { -1 } else { a })).await });
    }
    let added = server.try_run("ALTER TABLE t ADD CONSTRAINT positive CHECK (a >= 0)").await;
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let broken = server.rows("SELECT count(*) FROM t WHERE a < 0").await;
    assert_eq!(broken, [if added.is_ok() { "0" } else { "1" }], "{added:?}");
}

/// Files of the table, and of its feed, as old as may be.
fn make_old(folder: &Path) {
    for path in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if path.is_dir() && !path.ends_with("_delta_log") {
            make_old(&path);
        } else if path.is_file() {
            let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        }
    }
}

/// The time at which a file left the table decides, wherever the log keeps it; a file that the log does not name goes by its own time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vacuum_keeps_what_versions_need() {
    let server = Server::new();
    server.run("CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('delta.checkpointInterval' = '4', 'delta.enableChangeDataFeed' = 'true')").await;
    for n in 0..4 {
        // Two rows a file: one alone may be told from its statistics.
        server.run(&format!("INSERT INTO t VALUES ({n}, 'a'), ({}, 'a'), ({}, 'b')", n + 20, n + 10)).await;
        server.run(&format!("DELETE FROM t WHERE id = {n}")).await;
    }
    server.run("UPDATE t SET id = id + 100 WHERE id BETWEEN 12 AND 19").await;
    server.run("OPTIMIZE t").await;
    let table = server.table("t");
    for stray in ["stray.parquet", "p=a/stray.parquet", "_kept/x", "_p=1"] {
        let path = table.join(stray);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    std::fs::rename(table.join("_p=1"), table.join("_hidden")).unwrap();
    make_old(&table);
    std::fs::write(table.join("under_way.parquet"), "x").unwrap();

    let versions = server.versions("t");
    let mut told = Vec::new();
    for version in 0..versions {
        told.push(server.rows(&format!("SELECT id, p FROM t VERSION AS OF {version} ORDER BY id, p")).await);
    }
    let dry = server.rows("VACUUM t DRY RUN").await;
    let feed = dry.iter().filter(|row| row.starts_with("_change_data/")).count();
    assert!(feed > 0 && dry.len() == feed + 2, "{dry:?}");
    assert_eq!(server.versions("t"), versions);
    let vacuumed = server.rows("VACUUM t").await;
    assert!(vacuumed[0].contains(&format!("|{}|", feed + 2)), "{vacuumed:?}");
    assert!(table.join("under_way.parquet").exists() && table.join("_hidden").exists() && table.join("_kept/x").exists());
    assert!(!table.join("stray.parquet").exists() && !table.join("p=a/stray.parquet").exists());
    for (version, told) in told.iter().enumerate() {
        assert_eq!(&server.rows(&format!("SELECT id, p FROM t VERSION AS OF {version} ORDER BY id, p")).await, told, "version {version}");
    }
    let (started, ended) = (server.info("t", versions as u64), server.info("t", versions as u64 + 1));
    assert_eq!((started["operation"].as_str(), ended["operation"].as_str()), (Some("VACUUM START"), Some("VACUUM END")));
    assert_eq!(metric(&started, "numFilesToDelete"), metric(&ended, "numDeletedFiles"));
    assert_eq!(ended["operationParameters"]["status"], "COMPLETED");

    server.fails("VACUUM t RETAIN 1 HOURS", &["168 hours", "retentionDurationCheck"]).await;
    server.fails("VACUUM t RETAIN many HOURS", &["number of hours"]).await;
    server.run("SET spark.databricks.delta.retentionDurationCheck.enabled = false").await;
    server.run("VACUUM t RETAIN 0 HOURS").await;
    assert_eq!(&server.rows("SELECT id, p FROM t ORDER BY id, p").await, told.last().unwrap());
    server.fails("SELECT * FROM t VERSION AS OF 3", &["version 3", "gone"]).await;
    assert_eq!(server.rows("SELECT count(*) FROM t VERSION AS OF 0").await, ["0"]);
    let readable = server.rows("SELECT count(*) FROM t.history WHERE NOT readable").await;
    assert_ne!(readable, ["0"]);
    server.fails("RESTORE t TO VERSION AS OF 3", &["gone"]).await;
    assert!(server.rows("VACUUM t DRY RUN").await.is_empty());
}
