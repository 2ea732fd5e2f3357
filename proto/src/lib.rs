//! Messages of asof's own.

/// Tickets.
#[allow(missing_docs, clippy::pedantic)]
pub mod ticket {
    include!(concat!(env!("OUT_DIR"), "/asof.ticket.v1.rs"));
}
