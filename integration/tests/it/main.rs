//! Suites that meet a real server on the wire.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod server;
mod slt;
