//! Why the program stops, and how it says so: the server's words, and the place in the text they point at.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use arrow::error::ArrowError;
use asof_client::script::Statement;
use asof_client::{Code, Error, Position};

/// At most so many characters of a line are shown on either side of the place an error points at.
const CONTEXT: usize = 60;

/// Why the program stops.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server refused, or was not there.
    #[error(transparent)]
    Client(#[from] Error),
    /// A result cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// A result cannot be written in this format.
    #[error("cannot write the result: {0}")]
    Format(#[from] ArrowError),
    /// The program was called wrongly.
    #[error("{0}")]
    Usage(String),
    /// Ctrl-C.
    #[error("cancelled")]
    Cancelled,
}

impl From<parquet::errors::ParquetError> for Failure {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Format(ArrowError::ParquetError(error.to_string()))
    }
}

/// Where a statement came from.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// File, if it was one.
    name: Option<String>,
    statement: Option<Statement<'a>>,
}

impl Source<'static> {
    /// No text at all.
    pub fn none() -> Self {
        Self { name: None, statement: None }
    }

    /// Typed, or given by -c.
    pub fn command() -> Self {
        Self::none()
    }

    /// A file of this name.
    pub fn file(name: &str) -> Self {
        Self { name: Some(name.to_owned()), statement: None }
    }
}

impl Source<'_> {
    /// A statement of it.
    pub fn at<'a>(&self, statement: Statement<'a>) -> Source<'a> {
        Source { name: self.name.clone(), statement: Some(statement) }
    }
}

impl Failure {
    /// Says it on stderr, and gives the program's exit code.
    pub fn report(&self, source: &Source) -> ExitCode {
        if self.is_broken_pipe() {
            return ExitCode::SUCCESS; // the reader had enough
        }
        // There is no better place to say that stderr is gone.
        let _ = io::stderr().write_all(self.describe(source, io::stderr().is_terminal()).as_bytes());
        match self {
            Self::Client(Error::Address { .. }) | Self::Usage(_) => ExitCode::from(2),
            Self::Cancelled => ExitCode::from(130),
            Self::Client(_) | Self::Output(_) | Self::Format(_) => ExitCode::from(1),
        }
    }

    /// Whether the reader of stdout went away, as `head` does.
    fn is_broken_pipe(&self) -> bool {
        match self {
            Self::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Self::Format(ArrowError::IoError(_, error)) => error.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        }
    }

    /// The words, and the line they point at.
    pub fn describe(&self, source: &Source, coloured: bool) -> String {
        let (red, plain) = if coloured { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        let (code, position) = match self {
            Self::Client(error) => (error.code().map(|code| format!("[{}]", name_of(code))), error.position()),
            _ => (None, None),
        };
        let mut text = format!("{red}error{}:{plain} {self}\n", code.unwrap_or_default());
        if let (Some(name), Some(statement)) = (&source.name, source.statement) {
            let line = statement.line + position.map_or(0, |position| position.line - 1);
            text.push_str(&format!("  --> {name}:{line}\n"));
        }
        if let Some(marked) = source.statement.zip(position).and_then(|(statement, position)| mark(statement.text, position)) {
            text.push_str(&marked);
        }
        text
    }
}

/// The line of a statement, with a mark under the column; a long line is cut around it.
fn mark(statement: &str, position: Position) -> Option<String> {
    let line: Vec<char> = statement.lines().nth(position.line - 1)?.chars().collect();
    let at = position.column - 1;
    if at > line.len() {
        return None;
    }
    let from = at.saturating_sub(CONTEXT);
    let to = line.len().min(at + CONTEXT);
    let shown: String = line.get(from..to)?.iter().map(|c| if c.is_control() { ' ' } else { *c }).collect();
    Some(format!("  | {shown}\n  | {}^\n", " ".repeat(at - from)))
}

/// A gRPC code by the name the documentation gives it.
fn name_of(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks() {
        let check = |statement: &str, line: usize, column: usize, expect: Option<&str>| {
            assert_eq!(mark(statement, Position { line, column }).as_deref(), expect, "{statement} {line} {column}");
        };
        check("SELECT x", 1, 8, Some("  | SELECT x\n  |        ^\n"));
        check("SELECT\n  x", 2, 3, Some("  |   x\n  |   ^\n"));
        check("SELECT", 1, 7, Some("  | SELECT\n  |       ^\n"));
        check("SELECT", 1, 9, None);
        check("SELECT", 2, 1, None);
        let long = format!("{}x{}", " ".repeat(100), "y".repeat(100));
        check(&long, 1, 101, Some(&format!("  | {}x{}\n  | {}^\n", " ".repeat(60), "y".repeat(59), " ".repeat(60))));
    }

    #[test]
    fn words() {
        let error = Error::Server { code: Code::NotFound, message: "no table `x` (line 2, column 6)".into() };
        let statement = Statement { text: "SELECT 1\nFROM x", line: 10 };
        let text = Failure::Client(error).describe(&Source::file("a.sql").at(statement), false);
        assert_eq!(text, "error[NOT_FOUND]: no table `x` (line 2, column 6)\n  --> a.sql:11\n  | FROM x\n  |      ^\n");
    }
}
