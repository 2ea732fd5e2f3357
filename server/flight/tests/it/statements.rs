//! Queries, updates, commands with rows, prepared statements, tickets.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, TimeUnit};
use arrow_flight::sql::{CommandStatementIngest, DoPutPreparedStatementResult, ProstMessageExt};
use arrow_flight::{
    CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightData, FlightDescriptor, FlightInfo, SchemaResult, Ticket,
};
use futures::StreamExt;
use prost::Message;
use tonic::Code;

use crate::{Client, Running, count, decoded, prepared_query, prepared_update, statement, ticket_of, wrapped};

fn rows(ids: Vec<i64>, names: Vec<&str>) -> RecordBatch {
    let columns: [(&str, ArrayRef); 2] = [("a", Arc::new(Int64Array::from(ids))), ("b", Arc::new(StringArray::from(names)))];
    RecordBatch::try_from_iter(columns).unwrap()
}

async fn with_table(server: &Running) -> Client {
    let mut client = server.client().await;
    client.update("CREATE TABLE t (id BIGINT, name STRING)").await.unwrap();
    assert_eq!(client.update("INSERT INTO t VALUES (1, 'a'), (2, 'b')").await.unwrap(), 2);
    client
}

#[tokio::test]
async fn a_query_s_schema_is_the_same_everywhere() {
    let server = Running::start().await;
    let mut client = with_table(&server).await;
    let sql = "SELECT id, name, now() AS at, id = 1 AS one FROM t ORDER BY id";
    let prepared = client.prepare(sql).await.unwrap();
    assert_eq!(prepared.is_update, Some(false));
    assert!(prepared.parameter_schema.is_empty());
    let request = client.request(statement(sql));
    let asked: SchemaResult = client.inner.get_schema(request).await.unwrap().into_inner();
    let (schema, batches) = client.rows(statement(sql)).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert_eq!(decoded(prepared.dataset_schema.clone()), *schema);
    assert_eq!(decoded(asked.schema), *schema);
    let (prepared_schema, _) = client.rows(prepared_query(&prepared.prepared_statement_handle)).await.unwrap();
    assert_eq!(prepared_schema, schema);
    let (empty, none) = client.rows(statement("SELECT id FROM t WHERE id > 100")).await.unwrap();
    assert_eq!((empty.fields().len(), none.len()), (1, 0));
}

#[tokio::test]
async fn a_bare_text_is_a_statement() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let (schema, batches) = client.rows(FlightDescriptor::new_cmd("SELECT 1 AS x")).await.unwrap();
    assert_eq!(crate::table(&schema, &batches), "x\n1");
}

#[tokio::test]
async fn updates_run_once_wherever_they_are_sent() {
    let server = Running::start().await;
    let mut client = with_table(&server).await;
    let info = client.info(statement("INSERT INTO t VALUES (3, 'c')")).await.unwrap();
    assert_eq!(info.total_records, -1);
    for _ in 0..3 {
        let (schema, batches) = client.fetch(ticket_of(&info)).await.unwrap();
        assert_eq!((schema.fields().len(), batches.len()), (0, 0));
    }
    assert_eq!(client.query("SELECT count(*) AS n FROM t").await.unwrap(), "n\n3");
    let prepared = client.prepare("INSERT INTO t VALUES (4, 'd')").await.unwrap();
    assert_eq!(prepared.is_update, Some(true));
    assert!(prepared.dataset_schema.is_empty(), "by that JDBC knows an update");
    let request = client.request(statement("INSERT INTO t VALUES (5, 'e')"));
    let schema = client.inner.get_schema(request).await.unwrap().into_inner().schema;
    assert_eq!(decoded(schema).fields().len(), 0);
    assert_eq!(client.query("SELECT count(*) AS n FROM t").await.unwrap(), "n\n3", "neither prepare nor GetSchema runs anything");
    assert_eq!(count(&client.put(prepared_update(&prepared.prepared_statement_handle), None).await.unwrap()), 1);
    assert_eq!(client.query("SELECT count(*) AS n FROM t").await.unwrap(), "n\n4");
    let refused = client.update("SELECT 1").await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
}

#[tokio::test]
async fn a_command_with_rows_runs_once_and_its_rows_travel() {
    let server = Running::start().await;
    let mut client = with_table(&server).await;
    client.update("DELETE FROM t").await.unwrap();
    let prepared = client.prepare("RESTORE TABLE t TO VERSION AS OF 1").await.unwrap();
    assert_eq!(prepared.is_update, Some(false));
    assert_eq!(decoded(prepared.dataset_schema).fields().len(), 6);
    let info = client.info(prepared_query(&prepared.prepared_statement_handle)).await.unwrap();
    let mut replica = server.replica().await;
    let first = client.fetch(ticket_of(&info)).await.unwrap();
    assert_eq!(first.1.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    assert_eq!(replica.fetch(ticket_of(&info)).await.unwrap(), first, "any server of the warehouse serves it");
    assert_eq!(client.query("SELECT count(*) AS n FROM t").await.unwrap(), "n\n2");
    let history = client.query("DESCRIBE HISTORY t LIMIT 1").await.unwrap();
    assert!(history.contains("RESTORE") && history.lines().nth(1).unwrap().starts_with("3,"), "one commit, not two: {history}");
}

#[tokio::test]
async fn parameters_are_bound_by_rows() {
    let server = Running::start().await;
    let mut client = with_table(&server).await;
    let insert = client.prepare("INSERT INTO t VALUES (?, ?)").await.unwrap().prepared_statement_handle;
    let many = rows(vec![10, 11, 12], vec!["x", "y", "z"]);
    assert_eq!(count(&client.put(prepared_update(&insert), Some(&many)).await.unwrap()), 3);
    let bound = client.put(prepared_query(&insert), Some(&rows(vec![13], vec!["w"]))).await.unwrap();
    let answer = DoPutPreparedStatementResult::decode(bound.app_metadata).unwrap();
    assert_eq!(answer.prepared_statement_handle, Some(insert.clone()), "Java adopts the answer's handle, even an empty one");
    assert_eq!(count(&client.put(prepared_update(&insert), None).await.unwrap()), 1, "bound before, then sent without rows");
    let select = client.prepare("SELECT name FROM t WHERE id = ?").await.unwrap();
    assert_eq!(decoded(select.parameter_schema).field(0).data_type(), &DataType::Int64);
    let handle = select.prepared_statement_handle;
    let by_id = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![12])) as ArrayRef)]).unwrap();
    client.put(prepared_query(&handle), Some(&by_id)).await.unwrap();
    let (schema, batches) = client.rows(prepared_query(&handle)).await.unwrap();
    assert_eq!(crate::table(&schema, &batches), "name\nz");
    client.close_prepared(&handle).await.unwrap();
    client.close_prepared(&handle).await.unwrap();
    assert_eq!(client.info(prepared_query(&handle)).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(client.info(prepared_query(&"made up".into())).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn timestamps_of_parameters_are_declared_in_milliseconds() {
    let server = Running::start().await;
    let mut client = with_table(&server).await;
    let prepared = client.prepare("SELECT count(*) AS n FROM t TIMESTAMP AS OF ?").await.unwrap();
    let declared = decoded(prepared.parameter_schema);
    assert!(matches!(declared.field(0).data_type(), DataType::Timestamp(TimeUnit::Millisecond, _)), "{declared:?}");
}

#[tokio::test]
async fn a_client_that_keeps_no_session_can_use_what_it_prepared() {
    let server = Running::start().await;
    with_table(&server).await;
    let mut client = server.stateless().await;
    let handle = client.prepare("SELECT name FROM t WHERE id = ?").await.unwrap().prepared_statement_handle;
    let by_id = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![2])) as ArrayRef)]).unwrap();
    client.put(prepared_query(&handle), Some(&by_id)).await.unwrap();
    let (schema, batches) = client.rows(prepared_query(&handle)).await.unwrap();
    assert_eq!(crate::table(&schema, &batches), "name\nb");
}

#[tokio::test]
async fn a_ticket_serves_the_version_it_was_made_for() {
    let server = Running::start().await;
    let mut client = with_table(&server).await;
    let info = client.info(statement("SELECT count(*) AS n, now() AS at FROM t")).await.unwrap();
    let mut replica = server.replica().await;
    client.update("DELETE FROM t WHERE id = 1").await.unwrap();
    let first = client.fetch(ticket_of(&info)).await.unwrap();
    assert!(crate::table(&first.0, &first.1).starts_with("n,at\n2,"));
    assert_eq!(client.fetch(ticket_of(&info)).await.unwrap(), first, "again");
    assert_eq!(replica.fetch(ticket_of(&info)).await.unwrap(), first, "and elsewhere");
}

#[tokio::test]
async fn tickets_cannot_be_forged_or_lent() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let info = client.info(statement("SELECT 1")).await.unwrap();
    let mut forged = ticket_of(&info).ticket.to_vec();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(client.fetch(Ticket { ticket: forged.into() }).await.unwrap_err().code(), Code::PermissionDenied);
    let mut other = server.stateless().await;
    other.extra.push(("authorization", "Basic YWxpY2U6eA".to_owned()));
    assert_eq!(other.fetch(ticket_of(&info)).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(client.fetch(Ticket { ticket: "SELECT 1".into() }).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn dropping_a_stream_stops_its_work() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let sql = "SELECT a.value + b.value AS v FROM generate_series(1, 100000) a CROSS JOIN generate_series(1, 100000) b";
    let info = client.info(statement(sql)).await.unwrap();
    let request = client.request(ticket_of(&info));
    let mut stream = client.inner.do_get(request).await.unwrap().into_inner();
    stream.next().await.unwrap().unwrap();
    stream.next().await.unwrap().unwrap();
    assert_eq!(server.node.running_streams(), 1);
    drop(stream);
    while server.node.running_streams() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stream_is_cancelled_by_its_owner() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let sql = "SELECT a.value + b.value AS v FROM generate_series(1, 100000) a CROSS JOIN generate_series(1, 100000) b";
    let info = client.info(statement(sql)).await.unwrap();
    let request = client.request(ticket_of(&info));
    let mut stream = client.inner.do_get(request).await.unwrap().into_inner();
    stream.next().await.unwrap().unwrap();
    let cancel = |info: FlightInfo| CancelFlightInfoRequest { info: Some(info) }.encode_to_vec();
    let mut other = server.stateless().await;
    other.extra.push(("authorization", "Basic YWxpY2U6eA".to_owned()));
    assert_eq!(other.act("CancelFlightInfo", cancel(info.clone())).await.unwrap_err().code(), Code::PermissionDenied);
    let bodies = client.act("CancelFlightInfo", cancel(info.clone())).await.unwrap();
    assert_eq!(CancelFlightInfoResult::decode(bodies[0].clone()).unwrap().status(), CancelStatus::Cancelled);
    let mut end = stream.next().await;
    while let Some(Ok(_)) = end {
        end = stream.next().await;
    }
    assert_eq!(end.unwrap().unwrap_err().code(), Code::Cancelled);
    let bodies = client.act("CancelFlightInfo", cancel(info)).await.unwrap();
    assert_eq!(CancelFlightInfoResult::decode(bodies[0].clone()).unwrap().status(), CancelStatus::NotCancellable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_may_not_take_longer_than_the_session_says() {
    let server = Running::start().await;
    let mut client = server.client().await;
    client.update("CREATE TABLE t (id BIGINT)").await.unwrap();
    client.update("SET statement_timeout = '200ms'").await.unwrap();
    for filter in ["a.value % 7 = b.value % 11", "a.value * b.value % 7 = 8", "a.value + b.value < 0"] {
        let pairs = format!("generate_series(1, 1000000) a(value), generate_series(1, 1000000) b(value) WHERE {filter}");
        let late = client.query(&format!("SELECT count(*) FROM {pairs}")).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        assert!(late.message().starts_with("timeout:"));
        let late = client.update(&format!("INSERT INTO t SELECT a.value FROM {pairs}")).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded, "{late}");
        client.update("SET statement_timeout = 0").await.unwrap();
        assert_eq!(client.query("SELECT count(*) AS n FROM t").await.unwrap(), "n\n0", "the session goes on");
        client.update("SET statement_timeout = '200ms'").await.unwrap();
    }
}

#[tokio::test]
async fn errors_have_codes_and_the_next_statement_works() {
    let server = Running::start().await;
    let mut client = with_table(&server).await;
    let nested = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let huge = format!("SELECT '{}'", "x".repeat(5 << 20));
    for (sql, code) in [
        ("SELEC 1", Code::InvalidArgument),
        ("SELECT nope FROM t", Code::InvalidArgument),
        ("SELECT * FROM nope", Code::NotFound),
        ("SELECT * FROM nowhere.t", Code::NotFound),
        ("SELECT * FROM t VERSION AS OF 99", Code::NotFound),
        ("SELECT * FROM t TIMESTAMP AS OF '2000-01-01'", Code::NotFound),
        ("SELECT * FROM t TIMESTAMP AS OF '2999-01-01'", Code::NotFound),
        ("SELECT * FROM t TIMESTAMP AS OF 'no time'", Code::InvalidArgument),
        ("SELECT * FROM delta.`../../etc`", Code::InvalidArgument),
        ("CREATE TABLE t (id BIGINT)", Code::AlreadyExists),
        (huge.as_str(), Code::InvalidArgument),
    ] {
        let error = client.query(sql).await.unwrap_err();
        assert_eq!(error.code(), code, "{}: {error}", &sql[..sql.len().min(60)]);
        assert_eq!(client.query("SELECT 1 AS x").await.unwrap(), "x\n1");
    }
    match client.query(&nested).await {
        Ok(answer) => assert!(answer.ends_with("\n1"), "{answer}"),
        Err(refused) => assert_eq!(refused.code(), Code::InvalidArgument, "{refused}"),
    }
}

#[tokio::test]
async fn uploads_that_make_no_sense_are_refused_at_once() {
    let server = Running::start().await;
    let mut client = server.client().await;
    async fn code(client: &mut Client, messages: Vec<FlightData>) -> Code {
        client.put_messages(messages).await.unwrap_err().code()
    }
    assert_eq!(code(&mut client, vec![]).await, Code::InvalidArgument);
    assert_eq!(code(&mut client, vec![FlightData::default()]).await, Code::InvalidArgument);
    let ingest = wrapped(&CommandStatementIngest::default());
    assert_eq!(code(&mut client, vec![FlightData { flight_descriptor: Some(ingest), ..FlightData::default() }]).await, Code::Unimplemented);
    assert_eq!(CommandStatementIngest::type_url().rsplit('.').next(), Some("CommandStatementIngest"));
}

#[tokio::test]
async fn polling_is_done_at_once() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let request = client.request(statement("SELECT 1 AS x"));
    let poll = client.inner.poll_flight_info(request).await.unwrap().into_inner();
    assert!(poll.flight_descriptor.is_none());
    let (schema, batches) = client.fetch(ticket_of(&poll.info.unwrap())).await.unwrap();
    assert_eq!(crate::table(&schema, &batches), "x\n1");
}
