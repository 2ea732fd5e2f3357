//! The library.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use asof_client::{Code, Connection, Error, Outcome, Position};
use futures::TryStreamExt;

use crate::server::Server;

fn first_column(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[tokio::test]
async fn a_connection_is_one_session() {
    let server = Server::start().await;
    let connection = Connection::connect(&server.address).await.unwrap();
    assert_eq!(connection.server().name, "mock");
    assert_eq!(connection.server().version, "1.2.3");
    assert!(connection.has_session());
    connection.clone().query("SELECT 1").await.unwrap().collect().await.unwrap();
    connection.execute("INSERT 1").await.unwrap();
    connection.close().await.unwrap();
    let log = server.log.lock().unwrap();
    assert_eq!(log.closed_sessions, 1);
    let keys: Vec<_> = log.calls.iter().map(|(_, key)| key.as_deref()).collect();
    assert_eq!(keys.first(), Some(&None), "the first call has no key to show");
    assert!(keys.iter().skip(1).all(|key| *key == Some("Bearer key-1")), "{keys:?}");
}

#[tokio::test]
async fn rows_come_in_batches_of_the_schema() {
    let server = Server::start().await;
    let connection = Connection::connect(&server.address).await.unwrap();
    let mut rows = connection.query("SELECT 1").await.unwrap();
    let schema = rows.schema();
    assert_eq!(schema.fields().len(), 2);
    let mut batches = Vec::new();
    while let Some(batch) = rows.try_next().await.unwrap() {
        assert_eq!(batch.schema(), schema);
        batches.push(batch);
    }
    assert_eq!(batches.len(), 2);
    assert_eq!(first_column(&batches), [1, 2, 3]);
    let none = connection.query("SELECT none").await.unwrap();
    assert_eq!(none.schema().fields().len(), 2);
    assert!(none.collect().await.unwrap().iter().all(|batch| batch.num_rows() == 0));
}

#[tokio::test]
async fn each_kind_of_statement_is_executed_once() {
    let server = Server::start().await;
    let connection = Connection::connect(&server.address).await.unwrap();
    let from_here = server.executed().len();
    assert!(matches!(connection.run("INSERT a").await.unwrap(), Outcome::Count(Some(3))));
    assert!(matches!(connection.run("CREATE t").await.unwrap(), Outcome::Count(None)));
    let Outcome::Rows(rows) = connection.run("RESTORE t").await.unwrap() else { panic!("RESTORE gives rows") };
    assert_eq!(first_column(&rows.collect().await.unwrap()), [1, 2, 3]);
    assert_eq!(connection.execute("INSERT b").await.unwrap(), Some(3));
    assert_eq!(server.executed()[from_here..], ["INSERT a", "CREATE t", "RESTORE t", "get RESTORE t", "INSERT b"]);
    assert_eq!(server.log.lock().unwrap().open, Vec::<String>::new(), "prepared statements are given back");
}

#[tokio::test]
async fn refusals_keep_their_code_and_place() {
    let server = Server::start().await;
    let connection = Connection::connect(&server.address).await.unwrap();
    let refused = |error: &Error| {
        assert_eq!(error.code(), Some(Code::NotFound));
        assert_eq!(error.position(), Some(Position { line: 1, column: 5 }));
        assert_eq!(error.to_string(), "no table `x`; there are `orders` and `events` (line 1, column 5)");
    };
    refused(&connection.query("BAD").await.unwrap_err());
    refused(&connection.execute("BAD").await.unwrap_err());
    refused(&connection.run("BAD").await.unwrap_err());
    refused(&connection.prepare("BAD").await.unwrap_err());
    let mut rows = connection.query("SELECT late failure").await.unwrap();
    assert!(rows.try_next().await.unwrap().is_some());
    let error = rows.try_next().await.unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (Some(Code::ResourceExhausted), "out of memory: 1 GiB of 1 GiB"));
    connection.query("SELECT 1").await.unwrap().collect().await.unwrap();
}

#[tokio::test]
async fn nobody_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let error = Connection::connect(&address).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("asof://{address}: Connection refused")), "{error}");
}

#[tokio::test]
async fn dropping_rows_cancels_them() {
    let mut server = Server::start().await;
    let connection = Connection::connect(&server.address).await.unwrap();
    let mut rows = connection.query("SELECT endless").await.unwrap();
    rows.try_next().await.unwrap().unwrap();
    assert_eq!(*server.dropped.borrow_and_update(), 0);
    drop(rows);
    server.dropped.wait_for(|drops| *drops == 1).await.unwrap();
}

#[tokio::test]
async fn parameters_are_bound_from_left_to_right() {
    let server = Server::start().await;
    let connection = Connection::connect(&server.address).await.unwrap();
    let mut statement = connection.prepare("SELECT ?").await.unwrap();
    assert!(statement.gives_rows());
    assert_eq!(statement.parameters().fields().len(), 1);
    statement.bind(vec![Arc::new(Int64Array::from(vec![7]))]).unwrap();
    assert_eq!(first_column(&statement.query().await.unwrap().collect().await.unwrap()), [7]);
    statement.bind(vec![Arc::new(Int64Array::from(vec![8]))]).unwrap();
    assert_eq!(first_column(&statement.query().await.unwrap().collect().await.unwrap()), [8]);
    let wrong = statement.bind(vec![]).unwrap_err();
    assert_eq!(wrong.to_string(), "parameters: the statement has 1, 0 were given");
    statement.close().await.unwrap();

    let mut update = connection.prepare("UPDATE ?").await.unwrap();
    assert!(!update.gives_rows());
    update.bind(vec![Arc::new(Int64Array::from(vec![1, 2, 3, 4]))]).unwrap();
    assert_eq!(update.execute().await.unwrap(), Some(4));
    assert!(update.bind(vec![Arc::new(Int64Array::from(vec![1])), Arc::new(StringArray::from(vec!["x"]))]).is_err());
    update.close().await.unwrap();
    assert_eq!(server.log.lock().unwrap().open, Vec::<String>::new());
}

#[tokio::test]
async fn tables_are_listed() {
    let server = Server::start().await;
    let connection = Connection::connect(&server.address).await.unwrap();
    let tables = connection.tables().await.unwrap();
    let names: Vec<_> = tables.iter().map(|name| format!("{}.{}.{} {}", name.catalog, name.schema, name.table, name.kind)).collect();
    assert_eq!(names, ["lake.main.orders TABLE"]);
}
