//! Suites that meet a real server on the wire.

mod server;
mod slt;
