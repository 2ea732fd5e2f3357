//! DoAction: prepared statements, sessions, cancelling.
//!
//! Flight SQL's actions wrap their messages in `Any`; Flight's own (sessions, CancelFlightInfo, RenewFlightEndpoint) do not.

use std::sync::Arc;

use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, Any,
    ProstMessageExt,
};
use arrow_flight::{Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo, RenewFlightEndpointRequest};
use asof_catalog::nearest;
use bytes::Bytes;
use prost::Message;

use crate::caller::Caller;
use crate::command::{self, Fetched};
use crate::error::{Error, Result};
use crate::node::Node;
use crate::session_options::{self, SetSessionOptionsRequest};
use crate::ticket::Ticket;

/// The actions there are, with their description.
pub const ALL: &[(&str, &str)] = &[
    ("CreatePreparedStatement", "Plan a statement; gives a handle, the schema of its rows, and the schema of its parameters"),
    ("ClosePreparedStatement", "Forget a prepared statement"),
    ("CancelFlightInfo", "Stop the streams of a flight's ticket"),
    ("CancelQuery", "Stop the streams of a flight's ticket (the older message)"),
    ("RenewFlightEndpoint", "Gives the endpoint back: tickets do not expire"),
    ("SetSessionOptions", "Set options of the session"),
    ("GetSessionOptions", "The options of the session"),
    ("CloseSession", "Close the session, and release all it holds"),
];

/// Performs an action; the bodies of its results.
///
/// # Errors
/// `Unsupported` for an action asof does not have; whatever the action meets.
pub async fn act(node: &Arc<Node>, caller: &Caller, action: Action) -> Result<Vec<Bytes>> {
    let session = &caller.session;
    match action.r#type.as_str() {
        "CreatePreparedStatement" => {
            let request: ActionCreatePreparedStatementRequest = wrapped(&action)?;
            no_transaction(request.transaction_id.as_ref())?;
            Ok(vec![body(&node.prepare(session, request.query).await?.into_any())])
        }
        "ClosePreparedStatement" => {
            let request: ActionClosePreparedStatementRequest = wrapped(&action)?;
            node.close_prepared(session, &request.prepared_statement_handle);
            Ok(Vec::new())
        }
        "SetSessionOptions" => {
            let request: SetSessionOptionsRequest = bare(&action)?;
            Ok(vec![body(&node.set_options(session, request).await?)])
        }
        "GetSessionOptions" => Ok(vec![body(&session_options::options(session))]),
        "CloseSession" => Ok(vec![body(&node.close_session(session))]),
        "CancelFlightInfo" => {
            let request: CancelFlightInfoRequest = bare(&action)?;
            let status = cancel(node, caller, request.info.unwrap_or_default())?;
            Ok(vec![body(&CancelFlightInfoResult { status: status.into() })])
        }
        "CancelQuery" => {
            let request: ActionCancelQueryRequest = wrapped(&action)?;
            let info = FlightInfo::decode(request.info).map_err(|e| unreadable("CancelQuery", &e))?;
            // The two enumerations have the same numbers.
            let result = i32::from(cancel(node, caller, info)?);
            Ok(vec![body(&ActionCancelQueryResult { result }.as_any())])
        }
        "RenewFlightEndpoint" => {
            let request: RenewFlightEndpointRequest = bare(&action)?;
            Ok(vec![body(&request.endpoint.unwrap_or_default())])
        }
        "BeginTransaction" | "EndTransaction" | "BeginSavepoint" | "EndSavepoint" => {
            Err(Error::Unsupported("transactions over several statements; each statement commits by itself".to_owned()))
        }
        "CreatePreparedSubstraitPlan" => Err(Error::Unsupported("Substrait plans; send SQL".to_owned())),
        other => Err(unknown(other)),
    }
}

/// Stops the streams of a flight's tickets. Only what is the caller's: others' tickets do not open.
fn cancel(node: &Node, caller: &Caller, info: FlightInfo) -> Result<CancelStatus> {
    let mut status = CancelStatus::NotCancellable;
    for ticket in info.endpoint.into_iter().filter_map(|endpoint| endpoint.ticket) {
        if let Fetched::Ticket(handle) = command::fetched(&ticket.ticket)? {
            let ticket = Ticket::open(&handle, &node.signer, &caller.session.principal())?;
            let waiting = node.plans.take(ticket.id()).is_some();
            if node.running.cancel(ticket.id()) || waiting {
                status = CancelStatus::Cancelled;
            }
        }
    }
    Ok(status)
}

fn wrapped<M: ProstMessageExt>(action: &Action) -> Result<M> {
    let any = Any::decode(action.body.as_ref()).map_err(|e| unreadable(&action.r#type, &e))?;
    let message = any.unpack::<M>().map_err(|e| unreadable(&action.r#type, &e))?;
    message.ok_or_else(|| Error::Request(format!("action {} came with a message of another kind: {:?}", action.r#type, any.type_url)))
}

fn bare<M: Message + Default>(action: &Action) -> Result<M> {
    M::decode(action.body.as_ref()).map_err(|e| unreadable(&action.r#type, &e))
}

fn body(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

fn no_transaction(id: Option<&Bytes>) -> Result<()> {
    match id {
        Some(id) if !id.is_empty() => Err(Error::Unsupported("transactions; prepare the statement without a transaction id".to_owned())),
        _ => Ok(()),
    }
}

fn unreadable(action: &str, error: &dyn std::fmt::Display) -> Error {
    Error::Request(format!("the message of action {action} cannot be read: {error}"))
}

fn unknown(asked: &str) -> Error {
    let shown: String = asked.chars().take(64).collect();
    let names = ALL.iter().map(|(name, _)| *name);
    let hint = nearest::did_you_mean(&shown, names).unwrap_or_else(|| "ListActions names those there are".to_owned());
    Error::Unsupported(format!("the action {shown:?}: {hint}"))
}
