//! What can go wrong with a request, beside what goes wrong with its statement.

use arrow::error::ArrowError;
use asof_query::Reason;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a request. Texts name what was asked, what exists, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// From the statement.
    #[error(transparent)]
    Query(#[from] asof_query::Error),
    /// From names and sessions.
    #[error(transparent)]
    Catalog(#[from] asof_catalog::Error),
    /// The message is not what the protocol says.
    #[error("bad request: {0}")]
    Request(String),
    /// More bytes than the server takes.
    #[error("too large: {what} has {bytes} bytes, and {most} are the most; {next}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How many.
        bytes: usize,
        /// The limit.
        most: usize,
        /// What to do.
        next: &'static str,
    },
    /// A prepared statement nobody knows.
    #[error("no prepared statement with this handle in this session: it was closed, or the session is another one; prepare it again")]
    UnknownHandle,
    /// Something of Flight SQL that asof does not do.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// Who it is could not be established.
    #[error("not authenticated: {0}")]
    Unauthenticated(String),
    /// A ticket or handle of somebody else, or a forged one.
    #[error("not permitted: {0}")]
    Denied(String),
    /// The server goes down.
    #[error("the server is shutting down; try again in a moment")]
    ShuttingDown,
    /// One of several parameter rows failed.
    #[error("{source} (parameter row {row} of {rows}; {} before it {} carried out)", row - 1, if *row == 2 { "was" } else { "were" })]
    Row {
        /// Which, from 1.
        row: usize,
        /// Of how many.
        rows: usize,
        /// What it met.
        #[source]
        source: Box<Error>,
    },
    /// A panic, caught; its text is in the log under this id.
    #[error("internal error {id}: a bug in asof; the server's log says more under this id")]
    Panic {
        /// The id in the log.
        id: uuid::Uuid,
    },
    /// Arrow refused to decode or encode.
    #[error("internal: {0}")]
    Arrow(#[from] ArrowError),
    /// A bug of asof.
    #[error("internal: {0}")]
    Internal(String),
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        Self::Query(reason.into())
    }
}
