//! What can go wrong with a statement.

use std::sync::Arc;
use std::time::Duration;

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use parquet::errors::ParquetError;

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
    /// Cancelled by its client.
    #[error("cancelled: {0}")]
    Cancelled(String),
    /// The session's `statement_timeout` is over.
    #[error("timeout: the statement took longer than {} ms (setting statement_timeout)", .0.as_millis())]
    Timeout(Duration),
    /// Names and sessions.
    #[error(transparent)]
    Catalog(#[from] asof_catalog::Error),
    /// Tables.
    #[error(transparent)]
    Storage(#[from] asof_storage::Error),
    /// An error of naming, with the place of the name in the text.
    #[error("{source} ({location})")]
    Located {
        /// The name's place.
        location: Location,
        /// What is wrong.
        source: Box<Error>,
    },
    /// While executing: a division by zero, an overflow, a cast that fails.
    #[error("{0}")]
    Execution(String),
    /// A bug of asof.
    #[error("internal: {0}")]
    Internal(String),
}

/// What DataFusion reports, told in our kinds: ours come back as they were, wherever they were wrapped.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        use DataFusionError as D;
        match error {
            D::External(source) => external(source),
            D::Context(_, inner) | D::Diagnostic(_, inner) => Self::from(*inner),
            D::Shared(inner) => Arc::try_unwrap(inner).map_or_else(|shared| from_shared(&shared), Self::from),
            D::Collection(errors) => match errors.into_iter().next() {
                Some(first) => Self::from(first),
                None => Self::Internal("an empty collection of errors".to_owned()),
            },
            D::ArrowError(inner, _) => from_arrow(*inner),
            D::ParquetError(inner) => from_parquet(*inner),
            D::ObjectStore(source) => {
                Self::Storage(asof_storage::Error::Store { action: "reading", path: path_of(&source), source: *source })
            }
            other => by_kind(&other),
        }
    }
}

/// Kinds that hold text alone.
fn by_kind(error: &DataFusionError) -> Error {
    use DataFusionError as D;
    let message = cleaned(&error.strip_backtrace());
    match error {
        D::Plan(_) | D::SchemaError(..) | D::Configuration(_) => Error::Invalid { message, location: None },
        D::SQL(..) => Error::Syntax { message, location: None },
        D::NotImplemented(_) | D::Substrait(_) => Error::Unsupported { message, location: None },
        D::ResourcesExhausted(_) => Error::Memory(message),
        D::Execution(_) | D::IoError(_) => Error::Execution(message),
        D::ExecutionJoin(join) if join.is_cancelled() => Error::Cancelled("the work was stopped".to_owned()),
        _ => Error::Internal(message),
    }
}

/// An error of ours, or of a library that carries one of ours.
fn external(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    let source = match source.downcast::<Error>() {
        Ok(own) => return *own,
        Err(other) => other,
    };
    let source = match source.downcast::<asof_storage::Error>() {
        Ok(storage) => return Error::Storage(*storage),
        Err(other) => other,
    };
    let source = match source.downcast::<asof_catalog::Error>() {
        Ok(catalog) => return Error::Catalog(*catalog),
        Err(other) => other,
    };
    let source = match source.downcast::<DataFusionError>() {
        Ok(inner) => return Error::from(*inner),
        Err(other) => other,
    };
    let source = match source.downcast::<ArrowError>() {
        Ok(inner) => return from_arrow(*inner),
        Err(other) => other,
    };
    match source.downcast::<ParquetError>() {
        Ok(inner) => from_parquet(*inner),
        Err(other) => Error::Execution(cleaned(&other.to_string())),
    }
}

fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(source) => external(source),
        ArrowError::NotYetImplemented(message) => Error::Unsupported { message, location: None },
        ArrowError::DivideByZero => Error::Execution("division by zero".to_owned()),
        ArrowError::MemoryError(message) => Error::Memory(message),
        ArrowError::SchemaError(message) => Error::Invalid { message, location: None },
        ArrowError::CDataInterface(_) | ArrowError::DictionaryKeyOverflowError | ArrowError::RunEndIndexOverflowError => {
            Error::Internal(error.to_string())
        }
        other => Error::Execution(cleaned(&other.to_string())),
    }
}

fn from_parquet(error: ParquetError) -> Error {
    match error {
        ParquetError::External(source) => external(source),
        ParquetError::NYI(message) => Error::Unsupported { message, location: None },
        other => Error::Execution(format!("a data file is damaged: {}", cleaned(&other.to_string()))),
    }
}

/// An error that several streams share cannot be taken out: its kind is copied where it has one, its words in any case.
fn from_shared(error: &DataFusionError) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(found) = cause {
        if let Some(storage) = found.downcast_ref::<asof_storage::Error>().and_then(copy_of) {
            return Error::Storage(storage);
        }
        if let Some(own) = found.downcast_ref::<Error>() {
            return copy_of_own(own);
        }
        cause = found.source();
    }
    by_kind(error.find_root())
}

/// Errors of files, which a scan meets while running.
fn copy_of(error: &asof_storage::Error) -> Option<asof_storage::Error> {
    use asof_storage::Error as S;
    match error {
        S::FileGone { table, version, path } => Some(S::FileGone { table: table.clone(), version: *version, path: path.clone() }),
        S::Corrupt { table, version, file, detail } => {
            Some(S::Corrupt { table: table.clone(), version: *version, file: file.clone(), detail: detail.clone() })
        }
        _ => None,
    }
}

fn copy_of_own(error: &Error) -> Error {
    match error {
        Error::Constraint(message) => Error::Constraint(message.clone()),
        Error::Memory(message) => Error::Memory(message.clone()),
        Error::Cancelled(message) => Error::Cancelled(message.clone()),
        Error::Timeout(limit) => Error::Timeout(*limit),
        Error::Invalid { message, location } => Error::Invalid { message: message.clone(), location: *location },
        Error::Unsupported { message, location } => Error::Unsupported { message: message.clone(), location: *location },
        Error::Located { location, source } => Error::Located { location: *location, source: Box::new(copy_of_own(source)) },
        Error::Storage(storage) if copy_of(storage).is_some() => {
            copy_of(storage).map_or_else(|| Error::Internal(String::new()), Error::Storage)
        }
        other => Error::Execution(other.to_string()),
    }
}

fn path_of(error: &object_store::Error) -> String {
    match error {
        object_store::Error::NotFound { path, .. } => path.clone(),
        _ => "a file".to_owned(),
    }
}

/// What the libraries put before their words.
const PREFIXES: [&str; 14] = [
    "Error during planning: ",
    "Execution error: ",
    "External error: ",
    "Arrow error: ",
    "Parquet error: ",
    "Schema error: ",
    "This feature is not implemented: ",
    "Invalid or Unsupported Configuration: ",
    "Resources exhausted: ",
    "Compute error: ",
    "Cast error: ",
    "Parser error: ",
    "Invalid argument error: ",
    "Error evaluating filter predicate: ",
];

/// A library's text without its prefixes.
fn cleaned(text: &str) -> String {
    let mut text = text.trim();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: DataFusionError, kind: &str, text: &str) {
        let error = Error::from(error);
        let debug = format!("{error:?}");
        assert!(debug.starts_with(kind), "{debug}");
        assert_eq!(error.to_string(), text);
    }

    fn gone() -> asof_storage::Error {
        asof_storage::Error::FileGone { table: "t".into(), version: 3, path: "p.parquet".into() }
    }

    #[test]
    fn kinds() {
        check(DataFusionError::Plan("no column x".into()), "Invalid", "no column x");
        check(DataFusionError::NotImplemented("this".into()), "Unsupported", "not supported: this");
        check(DataFusionError::ResourcesExhausted("of 1 MB".into()), "Memory", "out of memory: of 1 MB");
        check(DataFusionError::Execution("it broke".into()), "Execution", "it broke");
        check(ArrowError::DivideByZero.into(), "Execution", "division by zero");
        check(ArrowError::CastError("cannot cast 'x'".into()).into(), "Execution", "cannot cast 'x'");
        let plan = DataFusionError::Plan("deep".into()).context("outer").context("outermost");
        check(plan, "Invalid", "deep");
    }

    #[test]
    fn ours_come_back_as_they_were() {
        let text = gone().to_string();
        check(DataFusionError::External(Box::new(gone())), "Storage(FileGone", &text);
        let wrapped = || ParquetError::External(Box::new(gone()));
        check(DataFusionError::ParquetError(Box::new(wrapped())), "Storage(FileGone", &text);
        check(ArrowError::ExternalError(Box::new(wrapped())).into(), "Storage(FileGone", &text);
        let shared = Arc::new(DataFusionError::ParquetError(Box::new(wrapped())));
        let other = Arc::clone(&shared);
        check(DataFusionError::Shared(shared), "Storage(FileGone", &text);
        drop(other);
        check(DataFusionError::External(Box::new(Error::Constraint("c".into()))), "Constraint", "constraint: c");
    }
}
