//! The wire: Arrow Flight SQL, configuration, telemetry; the server `asofd`.
//!
//! [`service`] holds one thin handler for each RPC: decode ([`command`]), call ([`node`]), encode ([`mod@encode`], [`status`]). What a client
//! may show of itself is in [`caller`] and [`signing`]; what it may take away and bring back in [`ticket`] and [`prepared`].
//!
//! Invariants: Q2 one schema per statement, in the prepare result, FlightInfo, GetSchema and the stream; Q3 a statement is executed once
//! per request that asks for it, never by preparing; F1 handlers decode, call, encode; F2 dropping a stream frees its memory and stops its work.

pub mod actions;
pub mod caller;
pub mod command;
pub mod config;
pub mod cpu;
pub mod encode;
pub mod error;
pub mod metadata;
pub mod node;
pub mod parameters;
pub mod plain;
pub mod plans;
pub mod prepared;
pub mod running;
pub mod server;
pub mod service;
pub mod session_options;
pub mod signing;
pub mod status;
pub mod telemetry;
pub mod ticket;

pub use error::{Error, Result};
pub use node::{Limits, Node};
pub use service::Service;
