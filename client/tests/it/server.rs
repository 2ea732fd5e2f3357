//! A Flight SQL server that knows a few statements by their first word, and keeps a log.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array, UnionArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UnionFields, UnionMode};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, Command,
    CommandGetTables, CommandPreparedStatementQuery, DoPutPreparedStatementResult, DoPutUpdateResult, ProstMessageExt,
};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse,
    IpcMessage, PollInfo, PutResult, SchemaAsIpc, SchemaResult, Ticket,
};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use prost::Message;
use tokio::sync::watch;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// What the server was asked.
#[derive(Debug, Default)]
pub struct Log {
    /// Calls: method, and key it came with.
    pub calls: Vec<(&'static str, Option<String>)>,
    /// Statements, each as often as it was executed.
    pub executed: Vec<String>,
    /// Prepared handles that are open.
    pub open: Vec<String>,
    /// Sessions that were closed.
    pub closed_sessions: usize,
    /// Values of the last binding.
    pub bound: Vec<i64>,
}

/// The server; it stops when the runtime does.
#[derive(Clone)]
pub struct Server {
    pub address: String,
    pub log: Arc<Mutex<Log>>,
    /// Endless streams that the client dropped.
    pub dropped: watch::Receiver<usize>,
}

impl Server {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("asof://{}", listener.local_addr().unwrap());
        let (drops, dropped) = watch::channel(0);
        let log = Arc::new(Mutex::new(Log::default()));
        let service = Service { log: log.clone(), drops };
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(FlightServiceServer::new(service))
                .serve_with_incoming(TcpIncoming::from(listener)),
        );
        Self { address, log, dropped }
    }

    /// Statements that were executed, in order.
    pub fn executed(&self) -> Vec<String> {
        self.log.lock().unwrap().executed.clone()
    }
}

struct Service {
    log: Arc<Mutex<Log>>,
    drops: watch::Sender<usize>,
}

/// Counts itself when it goes.
struct Guard(watch::Sender<usize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.send_modify(|drops| *drops += 1);
    }
}

fn numbers(values: Vec<i64>) -> RecordBatch {
    let names: StringArray = values.iter().map(|value| (value % 2 == 1).then(|| format!("odd {value}"))).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(values)), Arc::new(names)];
    RecordBatch::try_new(numbers_schema(), columns).unwrap()
}

fn numbers_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false), Field::new("name", DataType::Utf8, true)]))
}

fn ipc(schema: &Schema) -> bytes::Bytes {
    let IpcMessage(bytes) = SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into().unwrap();
    bytes
}

/// Whether a statement gives rows, or why it is refused.
fn gives_rows(sql: &str) -> Result<bool, Status> {
    let first_word = sql.lines().filter(|line| !line.starts_with("--")).flat_map(str::split_whitespace).next();
    match first_word {
        Some("SELECT" | "RESTORE") => Ok(true),
        Some("INSERT" | "CREATE" | "UPDATE") => Ok(false),
        _ => Err(Status::not_found("no table `x`; there are `orders` and `events` (line 1, column 5)")),
    }
}

fn server_info() -> RecordBatch {
    let fields = UnionFields::try_new([0], [Field::new("string_value", DataType::Utf8, false)]).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["mock", "1.2.3"]));
    let values = UnionArray::try_new(fields, ScalarBuffer::from(vec![0_i8, 0]), Some(ScalarBuffer::from(vec![0, 1])), vec![texts]).unwrap();
    let schema = Schema::new(vec![
        Field::new("info_name", DataType::UInt32, false),
        Field::new("value", DataType::Union(union_fields(), UnionMode::Dense), false),
    ]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(UInt32Array::from(vec![0, 1])), Arc::new(values)]).unwrap()
}

fn union_fields() -> UnionFields {
    UnionFields::try_new([0], [Field::new("string_value", DataType::Utf8, false)]).unwrap()
}

fn tables() -> RecordBatch {
    let columns = [("catalog_name", "lake"), ("db_schema_name", "main"), ("table_name", "orders"), ("table_type", "TABLE")];
    RecordBatch::try_from_iter(columns.map(|(name, value)| (name, Arc::new(StringArray::from(vec![value])) as ArrayRef))).unwrap()
}

impl Service {
    /// Writes a call down; a caller without a key gets one.
    fn enter<T>(&self, method: &'static str, request: &Request<T>) -> Option<String> {
        let key = request.metadata().get("authorization").map(|key| key.to_str().unwrap().to_owned());
        let mut log = self.log.lock().unwrap();
        log.calls.push((method, key.clone()));
        if key.is_none() { Some(format!("Bearer key-{}", log.calls.len())) } else { None }
    }

    fn answer<T>(minted: Option<String>, message: T) -> Response<T> {
        let mut response = Response::new(message);
        if let Some(key) = minted {
            response.metadata_mut().insert("authorization", key.parse().unwrap());
        }
        response
    }

    fn execute(&self, sql: &str) {
        self.log.lock().unwrap().executed.push(sql.to_owned());
    }

    fn info(schema: &Schema, ticket: String) -> FlightInfo {
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(ticket));
        FlightInfo::new().try_with_schema(schema).unwrap().with_endpoint(endpoint)
    }

    fn statement(&self, sql: &str) -> Result<FlightInfo, Status> {
        if !gives_rows(sql)? {
            self.execute(sql);
            return Ok(Self::info(&Schema::empty(), "nothing".into()));
        }
        if sql.starts_with("RESTORE") {
            self.execute(sql);
        }
        Ok(Self::info(&numbers_schema(), sql.to_owned()))
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl FlightService for Service {
    type HandshakeStream = Answers<HandshakeResponse>;
    type ListFlightsStream = Answers<FlightInfo>;
    type DoGetStream = Answers<FlightData>;
    type DoPutStream = Answers<PutResult>;
    type DoExchangeStream = Answers<FlightData>;
    type DoActionStream = Answers<arrow_flight::Result>;
    type ListActionsStream = Answers<ActionType>;

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        let minted = self.enter("info", &request);
        let any = Any::decode(request.get_ref().cmd.clone()).unwrap();
        let info = match Command::try_from(any).unwrap() {
            Command::CommandGetSqlInfo(_) => Self::info(&server_info().schema(), "server".into()),
            Command::CommandGetTables(CommandGetTables { .. }) => Self::info(&tables().schema(), "tables".into()),
            Command::CommandStatementQuery(command) => self.statement(&command.query)?,
            Command::CommandPreparedStatementQuery(CommandPreparedStatementQuery { prepared_statement_handle: handle }) => {
                self.statement(std::str::from_utf8(&handle).unwrap())?
            }
            other => return Err(Status::unimplemented(format!("{other:?}"))),
        };
        Ok(Self::answer(minted, info))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let minted = self.enter("get", &request);
        let ticket = String::from_utf8(request.get_ref().ticket.to_vec()).unwrap();
        let mut schema = numbers_schema();
        let batches: BoxStream<'static, Result<RecordBatch, FlightError>> = match ticket.as_str() {
            "server" => {
                schema = server_info().schema();
                stream::iter([Ok(server_info())]).boxed()
            }
            "tables" => {
                schema = tables().schema();
                stream::iter([Ok(tables())]).boxed()
            }
            "nothing" => stream::empty().boxed(),
            "SELECT endless" => {
                let guard = Guard(self.drops.clone());
                stream::repeat_with(move || {
                    let _kept = &guard;
                    Ok(numbers(vec![1; 1000]))
                })
                .boxed()
            }
            "SELECT late failure" => {
                let failure = Status::resource_exhausted("out of memory: 1 GiB of 1 GiB");
                stream::iter([Ok(numbers(vec![1])), Err(FlightError::Tonic(Box::new(failure)))]).boxed()
            }
            "SELECT none" => stream::empty().boxed(),
            "SELECT ?" => stream::iter([Ok(numbers(self.log.lock().unwrap().bound.clone()))]).boxed(),
            _ => stream::iter([Ok(numbers(vec![1, 2])), Ok(numbers(vec![3]))]).boxed(),
        };
        self.execute(&format!("get {ticket}"));
        let messages = FlightDataEncoderBuilder::new().with_schema(schema).build(batches).map_err(Status::from);
        Ok(Self::answer(minted, Box::pin(messages)))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let minted = self.enter("put", &request);
        let mut messages = request.into_inner().peekable();
        let first = Pin::new(&mut messages).peek().await.unwrap().clone()?;
        let any = Any::decode(first.flight_descriptor.unwrap().cmd).unwrap();
        let has_rows = !first.data_header.is_empty();
        let mut bound = Vec::new();
        if has_rows {
            let mut batches = FlightRecordBatchStream::new_from_flight_data(messages.map_err(|e| FlightError::Tonic(Box::new(e))));
            while let Some(batch) = batches.try_next().await? {
                let column = batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
                bound.extend(column.values());
            }
        }
        let metadata = match Command::try_from(any).unwrap() {
            Command::CommandPreparedStatementQuery(command) => {
                self.log.lock().unwrap().bound = bound;
                DoPutPreparedStatementResult { prepared_statement_handle: Some(command.prepared_statement_handle) }.encode_to_vec()
            }
            Command::CommandPreparedStatementUpdate(command) => {
                let sql = String::from_utf8(command.prepared_statement_handle.to_vec()).unwrap();
                self.execute(&sql);
                let count = if sql.starts_with("CREATE") {
                    -1
                } else if has_rows {
                    bound.len() as i64
                } else {
                    3
                };
                DoPutUpdateResult { record_count: count }.encode_to_vec()
            }
            Command::CommandStatementUpdate(command) => {
                gives_rows(&command.query)?;
                self.execute(&command.query);
                DoPutUpdateResult { record_count: 3 }.encode_to_vec()
            }
            other => return Err(Status::unimplemented(format!("{other:?}"))),
        };
        Ok(Self::answer(minted, Box::pin(stream::iter([Ok(PutResult { app_metadata: metadata.into() })]))))
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let minted = self.enter("action", &request);
        let action = request.into_inner();
        let body = match action.r#type.as_str() {
            "CreatePreparedStatement" => {
                let request: ActionCreatePreparedStatementRequest = Any::decode(action.body).unwrap().unpack().unwrap().unwrap();
                let sql = request.query;
                let rows = gives_rows(&sql)?;
                self.log.lock().unwrap().open.push(sql.clone());
                let parameters = if sql.contains('?') { vec![Field::new("1", DataType::Int64, true)] } else { vec![] };
                let result = ActionCreatePreparedStatementResult {
                    prepared_statement_handle: sql.into(),
                    dataset_schema: if rows { ipc(&numbers_schema()) } else { bytes::Bytes::new() },
                    parameter_schema: ipc(&Schema::new(parameters)),
                };
                result.as_any().encode_to_vec()
            }
            "ClosePreparedStatement" => {
                let request: ActionClosePreparedStatementRequest = Any::decode(action.body).unwrap().unpack().unwrap().unwrap();
                let sql = String::from_utf8(request.prepared_statement_handle.to_vec()).unwrap();
                self.log.lock().unwrap().open.retain(|open| *open != sql);
                return Ok(Self::answer(minted, Box::pin(stream::empty())));
            }
            "CloseSession" => {
                assert!(action.body.is_empty(), "CloseSession carries a bare message without fields");
                self.log.lock().unwrap().closed_sessions += 1;
                vec![8, 1] // status CLOSED
            }
            other => return Err(Status::unimplemented(other.to_owned())),
        };
        Ok(Self::answer(minted, Box::pin(stream::iter([Ok(arrow_flight::Result { body: body.into() })]))))
    }

    async fn handshake(&self, _: Request<Streaming<HandshakeRequest>>) -> Result<Response<Self::HandshakeStream>, Status> {
        Err(Status::unimplemented("handshake"))
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(Status::unimplemented("list flights"))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented("poll"))
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        Err(Status::unimplemented("get schema"))
    }

    async fn do_exchange(&self, _: Request<Streaming<FlightData>>) -> Result<Response<Self::DoExchangeStream>, Status> {
        Err(Status::unimplemented("exchange"))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Err(Status::unimplemented("list actions"))
    }
}
