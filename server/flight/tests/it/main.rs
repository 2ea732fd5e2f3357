//! A server in this process, raw Flight messages to it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod metadata;
mod sessions;
mod statements;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, Any, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, CommandStatementQuery, CommandStatementUpdate, DoPutUpdateResult, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, PutResult, Ticket};
use asof_flight::Node;
use asof_flight::config::{Config, LogFormat};
use asof_flight::encode::Encoder;
use asof_flight::prepared::Prepared;
use asof_flight::server::Server;
use asof_storage::{Clock, Env, Micros};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// The machine's clock, turned forward by a test.
#[derive(Debug, Default)]
pub struct Turned(AtomicI64);

impl Turned {
    pub fn pass(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_micros()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for Turned {
    fn now(&self) -> Micros {
        Micros(Env::system().clock.now().0 + self.0.load(Ordering::Relaxed))
    }
}

pub struct Running {
    pub node: Arc<Node>,
    pub clock: Arc<Turned>,
    address: SocketAddr,
    root: TempDir,
    _stop: DropGuard,
}

impl Running {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let clock = Arc::new(Turned::default());
        let (server, address, stop) = open(&root, &clock, change).await;
        let node = Arc::clone(server.node());
        tokio::spawn(server.serve(stop.clone().cancelled_owned()));
        Self { node, clock, address, root, _stop: stop.drop_guard() }
    }

    /// Another server of the same warehouse.
    pub async fn replica(&self) -> Client {
        let (server, address, stop) = open(&self.root, &self.clock, |_| {}).await;
        tokio::spawn(server.serve(stop.cancelled_owned()));
        Client::connect(address).await
    }

    /// A client that has shown its session's token once, as a driver has after its first call.
    pub async fn client(&self) -> Client {
        let mut client = Client::connect(self.address).await;
        client.query("SELECT 1").await.unwrap();
        assert!(client.token.is_some());
        client
    }

    /// A client that never sends anything back.
    pub async fn stateless(&self) -> Client {
        let mut client = Client::connect(self.address).await;
        client.keeps = false;
        client
    }
}

async fn open(root: &TempDir, clock: &Arc<Turned>, change: impl FnOnce(&mut Config)) -> (Server, SocketAddr, CancellationToken) {
    let mut config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        warehouse: root.path().to_str().unwrap().to_owned(),
        catalog: "lake".to_owned(),
        session_ttl: Duration::from_secs(600),
        memory_limit: 1 << 30,
        statement_memory_limit: None,
        spill_dir: None,
        cpu_threads: 2,
        max_statement: 1 << 20,
        shutdown_grace: Duration::from_secs(1),
        log: "off".to_owned(),
        log_format: LogFormat::Text,
    };
    change(&mut config);
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let env = Env { clock, ..Env::system() };
    let server = Server::open(&config, env, tokio::runtime::Handle::current()).await.unwrap();
    let address = server.address();
    (server, address, CancellationToken::new())
}

pub struct Client {
    pub inner: FlightServiceClient<Channel>,
    pub token: Option<String>,
    pub extra: Vec<(&'static str, String)>,
    pub keeps: bool,
}

type Result<T, E = Status> = std::result::Result<T, E>;

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        let inner = FlightServiceClient::new(channel).max_decoding_message_size(64 << 20).max_encoding_message_size(64 << 20);
        Self { inner, token: None, extra: Vec::new(), keeps: true }
    }

    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.parse().unwrap());
        }
        for (name, value) in &self.extra {
            request.metadata_mut().append(*name, value.parse().unwrap());
        }
        request
    }

    fn adopt(&mut self, headers: &MetadataMap) {
        if let Some(token) = headers.get("authorization").filter(|_| self.keeps) {
            self.token = Some(token.to_str().unwrap().to_owned());
        }
    }

    pub async fn info(&mut self, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        let request = self.request(descriptor);
        let response = self.inner.get_flight_info(request).await?;
        self.adopt(response.metadata());
        Ok(response.into_inner())
    }

    pub async fn fetch(&mut self, ticket: Ticket) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let request = self.request(ticket);
        let response = self.inner.do_get(request).await?;
        self.adopt(response.metadata());
        let messages = response.into_inner().map_err(FlightError::from);
        let mut batches = FlightRecordBatchStream::new_from_flight_data(messages);
        let mut all = Vec::new();
        while let Some(batch) = batches.next().await {
            all.push(batch.map_err(status)?);
        }
        Ok((Arc::clone(batches.schema().unwrap()), all))
    }

    pub async fn rows(&mut self, descriptor: FlightDescriptor) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let info = self.info(descriptor).await?;
        assert_eq!(info.endpoint.len(), 1, "one endpoint, even for no rows");
        assert!(info.endpoint[0].location.is_empty());
        let announced = info.clone().try_decode_schema().unwrap();
        let (schema, batches) = self.fetch(ticket_of(&info)).await?;
        assert_eq!(announced, *schema, "the stream's schema is the announced one");
        Ok((schema, batches))
    }

    pub async fn query(&mut self, sql: &str) -> Result<String> {
        let (schema, batches) = self.rows(statement(sql)).await?;
        Ok(table(&schema, &batches))
    }

    pub async fn put(&mut self, descriptor: FlightDescriptor, rows: Option<&RecordBatch>) -> Result<PutResult> {
        let mut messages = match rows {
            None => vec![Encoder::new(Arc::new(Schema::empty())).schema()],
            Some(rows) => {
                let mut encoder = Encoder::new(rows.schema());
                let mut messages = vec![encoder.schema()];
                messages.extend(encoder.batch(rows).unwrap());
                messages
            }
        };
        messages[0].flight_descriptor = Some(descriptor);
        self.put_messages(messages).await
    }

    pub async fn put_messages(&mut self, messages: Vec<FlightData>) -> Result<PutResult> {
        let request = self.request(futures::stream::iter(messages));
        let response = self.inner.do_put(request).await?;
        self.adopt(response.metadata());
        let mut results: Vec<PutResult> = response.into_inner().try_collect().await?;
        assert_eq!(results.len(), 1);
        Ok(results.remove(0))
    }

    pub async fn update(&mut self, sql: &str) -> Result<i64> {
        let command = CommandStatementUpdate { query: sql.to_owned(), transaction_id: None };
        Ok(count(&self.put(wrapped(&command), None).await?))
    }

    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        let request = ActionCreatePreparedStatementRequest { query: sql.to_owned(), transaction_id: None };
        let bodies = self.act("CreatePreparedStatement", request.as_any().encode_to_vec()).await?;
        let any = Any::decode(bodies[0].clone()).unwrap();
        assert!(any.type_url.ends_with(".ActionCreatePreparedStatementResult"));
        Ok(Prepared::decode(any.value).unwrap())
    }

    pub async fn close_prepared(&mut self, handle: &Bytes) -> Result<()> {
        let request = ActionClosePreparedStatementRequest { prepared_statement_handle: handle.clone() };
        self.act("ClosePreparedStatement", request.as_any().encode_to_vec()).await.map(|_| ())
    }

    pub async fn act(&mut self, name: &str, body: Vec<u8>) -> Result<Vec<Bytes>> {
        let request = self.request(Action { r#type: name.to_owned(), body: body.into() });
        let response = self.inner.do_action(request).await?;
        self.adopt(response.metadata());
        response.into_inner().map_ok(|result| result.body).try_collect().await
    }
}

pub fn wrapped(command: &impl ProstMessageExt) -> FlightDescriptor {
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

pub fn statement(sql: &str) -> FlightDescriptor {
    wrapped(&CommandStatementQuery { query: sql.to_owned(), transaction_id: None })
}

pub fn prepared_query(handle: &Bytes) -> FlightDescriptor {
    wrapped(&CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() })
}

pub fn prepared_update(handle: &Bytes) -> FlightDescriptor {
    wrapped(&CommandPreparedStatementUpdate { prepared_statement_handle: handle.clone() })
}

pub fn ticket_of(info: &FlightInfo) -> Ticket {
    info.endpoint[0].ticket.clone().unwrap()
}

pub fn count(result: &PutResult) -> i64 {
    DoPutUpdateResult::decode(result.app_metadata.clone()).unwrap().record_count
}

pub fn decoded(message: Bytes) -> Schema {
    arrow_flight::IpcMessage(message).try_into().unwrap()
}

/// Rows as text: names, then values.
pub fn table(schema: &SchemaRef, batches: &[RecordBatch]) -> String {
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let mut lines = vec![names.join(",")];
    for batch in batches {
        let options = FormatOptions::default();
        let columns: Vec<_> = batch.columns().iter().map(|c| ArrayFormatter::try_new(c, &options).unwrap()).collect();
        lines.extend((0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join(",")));
    }
    lines.join("\n")
}

fn status(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => panic!("{other}"),
    }
}
