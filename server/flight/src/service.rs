//! The service itself: each handler decodes, calls, encodes (F1).
//!
//! arrow-flight's `FlightSqlService` is not used: it answers GetSchema and PollFlightInfo with UNIMPLEMENTED, refuses commands that are not
//! `Any` before anyone can look at them, and lists actions that asof does not have.

use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{DoPutPreparedStatementResult, DoPutUpdateResult};
use arrow_flight::{
    Action, ActionType, BasicAuth, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    HandshakeResponse, PollInfo, PutResult, Result as ActionResult, SchemaResult, Ticket,
};
use asof_query::StatementClass;
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use crate::actions;
use crate::caller::Caller;
use crate::command::{self, Asked, Fetched, Put};
use crate::encode::{self, Encoder};
use crate::error::{Error, Result};
use crate::metadata::{self, columns};
use crate::node::{Flight, Node};
use crate::parameters;

/// Flight SQL over a node.
#[derive(Clone, Debug)]
pub struct Service {
    node: Arc<Node>,
}

type Answer<T> = std::result::Result<Response<T>, Status>;
type Sent<T> = BoxStream<'static, std::result::Result<T, Status>>;

impl Service {
    /// Over this node.
    #[must_use]
    pub fn new(node: Arc<Node>) -> Self {
        Self { node }
    }

    fn caller(&self, headers: &MetadataMap) -> Result<Caller> {
        Caller::identify(headers, &self.node.sessions, &self.node.signer)
    }

    async fn info(&self, caller: &Caller, descriptor: FlightDescriptor) -> Result<FlightInfo> {
        let flight = match command::asked(&descriptor)? {
            Asked::Statement(sql) => self.node.flight(&caller.session, sql, Vec::new()).await?,
            Asked::Prepared(handle) => self.node.prepared_flight(&caller.session, &handle).await?,
            Asked::Metadata(asked) => {
                let ticket = Ticket { ticket: descriptor.cmd.clone() };
                Flight { schema: metadata::schema(&asked)?, ticket }
            }
        };
        flight_info(flight, descriptor)
    }

    async fn schema(&self, caller: &Caller, descriptor: &FlightDescriptor) -> Result<SchemaResult> {
        let (session, sql) = match command::asked(descriptor)? {
            Asked::Metadata(asked) => {
                let schema = metadata::schema(&asked)?;
                return Ok(SchemaResult { schema: encode::schema_message(&schema)? });
            }
            Asked::Statement(sql) => (Arc::clone(&caller.session), sql),
            Asked::Prepared(handle) => self.node.prepared_text(&caller.session, &handle)?,
        };
        let described = self.node.describe(&session, &sql).await?;
        let schema = match described.class {
            StatementClass::Update => encode::schema_message(&Schema::empty())?,
            StatementClass::Query | StatementClass::CommandWithRows => encode::schema_message(&columns::typed(&described.schema))?,
        };
        Ok(SchemaResult { schema })
    }

    async fn rows(&self, caller: &Caller, ticket: &Ticket) -> Result<Sent<FlightData>> {
        match command::fetched(&ticket.ticket)? {
            Fetched::Ticket(handle) => Ok(self.node.fetch(&caller.session, &handle)?.map(|m| m.map_err(Status::from)).boxed()),
            Fetched::Metadata(asked) => {
                let (node, session) = (Arc::clone(&self.node), Arc::clone(&caller.session));
                let batch = self.node.cpu.run(None, |_| async move { metadata::answer(&node, &session, asked).await }).await?;
                let mut encoder = Encoder::new(batch.schema());
                let mut messages = vec![encoder.schema()];
                messages.extend(encoder.batch(&batch)?);
                Ok(stream::iter(messages.into_iter().map(Ok)).boxed())
            }
        }
    }

    async fn put(&self, caller: &Caller, mut upload: Streaming<FlightData>) -> Result<PutResult> {
        let first = upload.message().await.map_err(|e| Error::Request(format!("the upload cannot be read: {}", e.message())))?;
        let Some(mut first) = first else {
            return Err(Error::Request("the upload has no message; the first one must hold the descriptor".to_owned()));
        };
        let Some(descriptor) = first.flight_descriptor.take() else {
            return Err(Error::Request("the upload's first message holds no descriptor".to_owned()));
        };
        let app_metadata = match command::put(&descriptor)? {
            Put::Update(sql) => counted(self.node.update(&caller.session, sql, None).await?),
            Put::PreparedUpdate(handle) => {
                let rows = parameters::received(first, upload).await?;
                counted(self.node.prepared_update(&caller.session, &handle, rows).await?)
            }
            Put::Bind(handle) => {
                let rows = parameters::received(first, upload).await?;
                self.node.bind(&caller.session, &handle, rows.as_ref())?;
                DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) }.encode_to_vec()
            }
        };
        Ok(PutResult { app_metadata: app_metadata.into() })
    }

    async fn greet(&self, headers: &MetadataMap, mut requests: Streaming<HandshakeRequest>) -> Result<Caller> {
        // The old way of the protocol puts user and password into the payload.
        let first = requests.message().await.map_err(|e| Error::Request(format!("the handshake cannot be read: {}", e.message())))?;
        let basic = first.filter(|r| !r.payload.is_empty()).and_then(|r| BasicAuth::decode(r.payload).ok()).map(|auth| auth.username);
        Caller::handshake(headers, basic, &self.node.sessions, &self.node.signer)
    }
}

/// Sends an answer with the caller's new token, if it has one: with an error too.
fn answer<T>(caller: &Caller, result: Result<T>) -> Answer<T> {
    match result {
        Ok(value) => {
            let mut response = Response::new(value);
            caller.stamp(response.metadata_mut());
            Ok(response)
        }
        Err(error) => {
            let mut status = Status::from(error);
            caller.stamp(status.metadata_mut());
            Err(status)
        }
    }
}

/// One answer as a stream.
fn one<T: Send + 'static>(value: T) -> Sent<T> {
    stream::once(async { Ok(value) }).boxed()
}

fn counted(record_count: i64) -> Vec<u8> {
    DoPutUpdateResult { record_count }.encode_to_vec()
}

/// Descriptors longer than this are not sent back: clients take 4 MiB.
const LONGEST_ECHO: usize = 512 << 10;

/// One endpoint without a location: several are read out of order by JDBC, and a location is dialled even where it cannot be reached.
fn flight_info(flight: Flight, descriptor: FlightDescriptor) -> Result<FlightInfo> {
    let mut info =
        FlightInfo::new().with_endpoint(FlightEndpoint::new().with_ticket(flight.ticket)).with_total_records(-1).with_total_bytes(-1);
    info.schema = encode::schema_message(&flight.schema)?;
    Ok(if descriptor.cmd.len() <= LONGEST_ECHO { info.with_descriptor(descriptor) } else { info })
}

#[async_trait]
impl FlightService for Service {
    type HandshakeStream = Sent<HandshakeResponse>;
    type ListFlightsStream = Sent<FlightInfo>;
    type DoGetStream = Sent<FlightData>;
    type DoPutStream = Sent<PutResult>;
    type DoExchangeStream = Sent<FlightData>;
    type DoActionStream = Sent<ActionResult>;
    type ListActionsStream = Sent<ActionType>;

    async fn handshake(&self, request: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        let (headers, _, requests) = request.into_parts();
        let caller = self.greet(&headers, requests).await?;
        let payload = caller.offered().unwrap_or_default().to_owned().into();
        answer(&caller, Ok(one(HandshakeResponse { protocol_version: 0, payload })))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let (headers, _, descriptor) = request.into_parts();
        let caller = self.caller(&headers)?;
        let info = self.info(&caller, descriptor).await;
        answer(&caller, info)
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<PollInfo> {
        let (headers, _, descriptor) = request.into_parts();
        let caller = self.caller(&headers)?;
        // Without a descriptor the client knows that there is nothing more to wait for.
        let done = |info| PollInfo { info: Some(info), flight_descriptor: None, progress: Some(1.0), expiration_time: None };
        let info = self.info(&caller, descriptor).await.map(done);
        answer(&caller, info)
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let (headers, _, descriptor) = request.into_parts();
        let caller = self.caller(&headers)?;
        let schema = self.schema(&caller, &descriptor).await;
        answer(&caller, schema)
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let (headers, _, ticket) = request.into_parts();
        let caller = self.caller(&headers)?;
        let rows = self.rows(&caller, &ticket).await;
        answer(&caller, rows)
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        let (headers, _, upload) = request.into_parts();
        let caller = self.caller(&headers)?;
        let result = Box::pin(self.put(&caller, upload)).await.map(one);
        answer(&caller, result)
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let (headers, _, action) = request.into_parts();
        let caller = self.caller(&headers)?;
        let results = actions::act(&self.node, &caller, action).await;
        answer(&caller, results.map(|bodies| stream::iter(bodies.into_iter().map(|body| Ok(ActionResult { body }))).boxed()))
    }

    async fn list_actions(&self, request: Request<Empty>) -> Answer<Self::ListActionsStream> {
        let caller = self.caller(request.metadata())?;
        let actions =
            actions::ALL.iter().map(|&(name, description)| Ok(ActionType { r#type: name.to_owned(), description: description.to_owned() }));
        answer(&caller, Ok(stream::iter(actions).boxed()))
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        let caller = self.caller(request.metadata())?;
        answer(&caller, Ok(stream::empty().boxed()))
    }

    async fn do_exchange(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        let caller = self.caller(request.metadata())?;
        answer(&caller, Err(Error::Unsupported("DoExchange; asof speaks Flight SQL".to_owned())))
    }
}
