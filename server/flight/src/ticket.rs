//! A ticket: everything that is needed to serve the same rows again, on any server of the warehouse.
//!
//! It holds the text, the parameters, each table's version and what of the session decides the text's meaning; a statement that ran already
//! has its small result in the ticket instead. Opaque and authenticated on the wire, bound to the principal, wrapped as Flight SQL's
//! `TicketStatementQuery` because drivers insist on an `Any`.

use std::collections::HashMap;

use arrow::record_batch::RecordBatch;
use arrow_flight::sql::{ProstMessageExt, TicketStatementQuery};
use asof_catalog::{Naming, Session};
use asof_proto::ticket as proto;
use asof_query::{Pin, QueryPlan};
use asof_storage::Micros;
use bytes::Bytes;
use prost::Message;

use crate::encode;
use crate::error::{Error, Result};
use crate::signing::Signer;

/// Bytes of a sealed ticket, at most: it is sent within FlightInfo, of which clients take 4 MiB.
const MOST_BYTES: usize = 3 * 1024 * 1024;

/// An opened ticket.
#[derive(Clone, Debug)]
pub struct Ticket(proto::Ticket);

impl Ticket {
    /// For a planned query.
    #[must_use]
    pub fn of_query(session: &Session, sql: &str, parameters: &[u8], plan: &QueryPlan, id: String) -> Self {
        let naming = session.naming();
        let pins = plan.pins.iter().map(|p| proto::Pin { table: p.table.clone(), selector: p.selector.clone(), version: p.version });
        Self(proto::Ticket {
            sql: sql.to_owned(),
            parameters: parameters.to_vec(),
            pins: pins.collect(),
            now_micros: plan.now.0,
            catalog: naming.catalog,
            schema: naming.schema,
            settings: naming.settings.into_iter().collect(),
            temporary_views: naming.temp_views.into_iter().collect(),
            principal: session.principal(),
            result: None,
            id,
        })
    }

    /// With the result of a statement that ran.
    #[must_use]
    pub fn of_result(session: &Session, result: Vec<u8>, id: String) -> Self {
        Self(proto::Ticket { principal: session.principal(), result: Some(result), id, ..proto::Ticket::default() })
    }

    /// For the wire.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn seal(&self, signer: &Signer) -> Result<arrow_flight::Ticket> {
        let statement_handle = signer.seal(&self.0.encode_to_vec());
        let bytes = statement_handle.len();
        if bytes > MOST_BYTES {
            let next = "shorten the text or the parameters, or load them into a table and read that";
            return Err(Error::TooLarge {
                what: "the query's ticket, which holds its text and parameters,",
                bytes,
                most: MOST_BYTES,
                next,
            });
        }
        Ok(arrow_flight::Ticket { ticket: TicketStatementQuery { statement_handle }.as_any().encode_to_vec().into() })
    }

    /// From the wire, for this principal.
    ///
    /// # Errors
    /// `Denied` when it is forged, or somebody else's.
    pub fn open(handle: &Bytes, signer: &Signer, principal: &str) -> Result<Self> {
        let content = signer.open(handle).ok_or_else(|| {
            Error::Denied("this ticket was not made by a server of this warehouse, or was changed; run the statement again".to_owned())
        })?;
        let ticket = proto::Ticket::decode(content).map_err(|e| Error::Request(format!("the ticket cannot be read: {e}")))?;
        if ticket.principal == principal {
            return Ok(Self(ticket));
        }
        Err(Error::Denied(format!("this ticket was given to {:?}, and {principal:?} asks", ticket.principal)))
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// The text.
    pub fn sql(&self) -> &str {
        &self.0.sql
    }

    /// The result that travels in it.
    pub fn result(&self) -> Option<&[u8]> {
        self.0.result.as_deref()
    }

    /// What decides the text's meaning.
    pub fn naming(&self) -> Naming {
        fn sorted(map: &HashMap<String, String>) -> std::collections::BTreeMap<String, String> {
            map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
        }
        Naming {
            catalog: self.0.catalog.clone(),
            schema: self.0.schema.clone(),
            settings: sorted(&self.0.settings),
            temp_views: sorted(&self.0.temporary_views),
        }
    }

    /// Each table occurrence's version.
    pub fn pins(&self) -> Vec<Pin> {
        self.0.pins.iter().map(|p| Pin { table: p.table.clone(), selector: p.selector.clone(), version: p.version }).collect()
    }

    /// What now() stands for.
    pub fn now(&self) -> Micros {
        Micros(self.0.now_micros)
    }

    /// The parameters, one row.
    ///
    /// # Errors
    /// `Arrow` when they cannot be read.
    pub fn parameters(&self) -> Result<Option<RecordBatch>> {
        if self.0.parameters.is_empty() {
            return Ok(None);
        }
        Ok(encode::read_ipc_stream(&self.0.parameters)?.1.into_iter().next())
    }
}
