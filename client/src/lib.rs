//! The client `asof`: library and shell, over the wire only.
//!
//! # The problem
//! A Rust program (or a person at a shell) wants to ask an asof server what its tables held, and when, without knowing how Flight
//! SQL spells that: which of three messages runs a statement, where the session's key hides, whether a statement gives rows.
//!
//! # What it gives
//! * [`Connection`] – one session on one server: [`query`](Connection::query) → [`Rows`], a stream of Arrow batches;
//!   [`execute`](Connection::execute) → a count; [`run`](Connection::run) for text of unknown kind;
//!   [`prepare`](Connection::prepare) → [`PreparedStatement`] with parameters.
//! * [`Error`] – the server's own words, its gRPC code, and the place in the text it points at.
//! * [`script`] – cutting a text into statements at its `;`.
//!
//! # Invariants
//! * A statement is executed at most once for each call; nothing is retried behind the caller's back.
//! * Dropping a [`Rows`], or a future of this crate, cancels the call on the server.
//! * Only the wire is used: nothing of the server's crates.
//!
//! ```no_run
//! # async fn example() -> asof_client::Result<()> {
//! use futures::TryStreamExt;
//!
//! let connection = asof_client::Connection::connect("asof://127.0.0.1:50051").await?;
//! let mut rows = connection.query("SELECT * FROM orders VERSION AS OF 3").await?;
//! while let Some(batch) = rows.try_next().await? {
//!     assert_eq!(batch.schema(), rows.schema());
//! }
//! connection.close().await
//! # }
//! ```

mod address;
mod connection;
mod error;
mod metadata;
mod prepared;
mod rows;
pub mod script;
mod session;

pub use address::Address;
pub use connection::{Connection, Outcome};
pub use error::{Error, Position, Result};
pub use metadata::{Server, TableName};
pub use prepared::PreparedStatement;
pub use rows::Rows;
pub use tonic::Code;
