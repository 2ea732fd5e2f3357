//! What can go wrong with a statement.

use datafusion::error::DataFusionError;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Where in the text: both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

fn at(location: &Option<Location>) -> String {
    location.map(|l| format!(" ({l})")).unwrap_or_default()
}

/// An error of a statement. Texts name what was asked, what exists, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not SQL that asof knows.
    #[error("syntax: {message}{}", at(location))]
    Syntax {
        /// What is wrong.
        message: String,
        /// Where.
        location: Option<Location>,
    },
    /// The statement cannot mean anything: unknown column, wrong type, a selector on something without versions.
    #[error("{message}{}", at(location))]
    Invalid {
        /// What is wrong, what exists, what to do.
        message: String,
        /// Where.
        location: Option<Location>,
    },
    /// Understood, and not supported (yet).
    #[error("not supported: {message}{}", at(location))]
    Unsupported {
        /// What.
        message: String,
        /// Where.
        location: Option<Location>,
    },
    /// A row breaks a constraint.
    #[error("constraint: {0}")]
    Constraint(String),
    /// Other commits won, and running again did not help.
    #[error("conflict: {0}")]
    Conflict(String),
    /// Over the memory given to the statement.
    #[error("out of memory: {0}")]
    Memory(String),
    /// Cancelled by the client or by a time limit.
    #[error("cancelled: {0}")]
    Cancelled(String),
    /// Names and sessions.
    #[error(transparent)]
    Catalog(#[from] asof_catalog::Error),
    /// Tables.
    #[error(transparent)]
    Storage(#[from] asof_storage::Error),
    /// While executing: a division by zero, an overflow, a cast that fails.
    #[error("{0}")]
    Execution(String),
    /// A bug of asof.
    #[error("internal: {0}")]
    Internal(String),
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        Self::Internal(error.to_string()) // to be classified
    }
}
