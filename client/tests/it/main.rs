//! The library and the program against a small Flight SQL server in this process.
//!
//! The server here is not asof's: it answers a few fixed statements, and writes down what it was asked, so that a test can say
//! which messages the client sent, with which key, and how often a statement was executed.

#![allow(clippy::unwrap_used, clippy::panic)]

mod connection;
mod program;
mod server;
