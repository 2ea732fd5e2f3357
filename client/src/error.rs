//! What can go wrong, in words a person can use and a program can match.
//!
//! The server's words are passed on as they came. The transport's are not readable ("transport error"), so their innermost cause is
//! put in their place.

use arrow::error::ArrowError;
use arrow_flight::error::FlightError;
use tonic::{Code, Status};

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address given cannot be one.
    #[error("`{given}` is no address of a server: {reason}; write asof://HOST:PORT, as in asof://127.0.0.1:50051")]
    Address {
        /// What was given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers there, or the connection broke. A statement that was under way may or may not have been executed.
    #[error("cannot reach {server}: {reason}")]
    Unreachable {
        /// The server's address.
        server: String,
        /// The innermost cause.
        reason: String,
    },
    /// The server's own answer.
    #[error("{message}")]
    Server {
        /// Its gRPC code: what to do next (see `flight-sql` in the server's documentation).
        code: Code,
        /// Its words.
        message: String,
    },
    /// The other side does not speak Flight SQL as it should.
    #[error("the server did not keep to the protocol: {0}")]
    Protocol(String),
    /// Batches that cannot be read, or written.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// Parameters that do not fit the statement.
    #[error("parameters: {0}")]
    Parameters(String),
}

/// A place in a statement's text; both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl Error {
    /// The server's gRPC code, when it was the server that refused.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Server { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// The place in the statement that the server's words point at (`… (line 2, column 7)`).
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::Server { message, .. } => position_in(message),
            _ => None,
        }
    }

    /// A refusal as the server wrote it, or a broken transport with its cause.
    #[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
    pub(crate) fn from_status(status: Status, server: &str) -> Self {
        match innermost(&status) {
            Some(reason) => Self::Unreachable { server: server.to_owned(), reason },
            None => Self::Server { code: status.code(), message: worded(&status) },
        }
    }

    pub(crate) fn from_flight(error: FlightError, server: &str) -> Self {
        match error {
            FlightError::Tonic(status) => Self::from_status(*status, server),
            FlightError::Arrow(error) => Self::Arrow(error),
            FlightError::NotYetImplemented(text) | FlightError::ProtocolError(text) | FlightError::DecodeError(text) => {
                Self::Protocol(text)
            }
            FlightError::ExternalError(error) => Self::Protocol(error.to_string()),
        }
    }

    /// No connection could be made.
    pub(crate) fn unreachable(error: &tonic::transport::Error, server: &str) -> Self {
        Self::Unreachable { server: server.to_owned(), reason: innermost(error).unwrap_or_else(|| error.to_string()) }
    }
}

/// A status without words is named by what its code means.
fn worded(status: &Status) -> String {
    if status.message().is_empty() { status.code().description().to_owned() } else { status.message().to_owned() }
}

/// The end of a chain of causes; none when there is no cause, as in a status that came over the wire.
fn innermost(error: &dyn std::error::Error) -> Option<String> {
    let mut cause = error.source()?;
    while let Some(next) = cause.source() {
        cause = next;
    }
    Some(cause.to_string())
}

/// The last `line N, column M` in a text.
fn position_in(text: &str) -> Option<Position> {
    let (_, rest) = text.rsplit_once("line ")?;
    let (line, rest) = rest.split_once(", column ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let position = Position { line: line.parse().ok()?, column: rest.get(..digits)?.parse().ok()? };
    (position.line > 0 && position.column > 0).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions() {
        let check = |text: &str, expect: Option<(usize, usize)>| {
            assert_eq!(position_in(text).map(|p| (p.line, p.column)), expect, "{text}");
        };
        check("no table `x` (line 2, column 17)", Some((2, 17)));
        check("line 1, column 1: near line 3, column 4.", Some((3, 4)));
        check("in line 3", None);
        check("line x, column 4", None);
        check("line 0, column 4", None);
        check("", None);
    }

    #[test]
    fn a_status_keeps_its_code_and_words() {
        let error = Error::from_status(Status::not_found("no table `x`"), "asof://h:1");
        assert_eq!(error.code(), Some(Code::NotFound));
        assert_eq!(error.to_string(), "no table `x`");
        let silent = Error::from_status(Status::new(Code::DeadlineExceeded, ""), "asof://h:1");
        assert!(!silent.to_string().is_empty());
    }
}
