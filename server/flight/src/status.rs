//! From errors to gRPC's status codes: one place, exhaustive, so that a new kind of error cannot be forgotten.
//!
//! Drivers lose codes (ADBC turns FAILED_PRECONDITION and ABORTED into UNKNOWN) and keep texts, so the texts of errors that a program wants to
//! tell apart begin with a stable word: `conflict:`, `out of retention:`, `unknown outcome:`, `syntax:`, `not supported:`, `timeout:`, `constraint:`.
//! A bug's text goes to the log under an id, and the id to the client.

use asof_catalog::Error as CatalogError;
use asof_query::Error as QueryError;
use asof_storage::Error as StorageError;
use tonic::{Code, Status};

use crate::error::Error;

/// Longest text on the wire, in bytes after percent-encoding: clients accept 8 KiB of headers at least.
const LONGEST_TEXT: usize = 6000;

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let code = code(&error);
        if code == Code::Internal && !matches!(innermost(&error), Error::Panic { .. }) {
            return bug(&error);
        }
        Self::new(code, shortened(&error.to_string()))
    }
}

/// The code of an error.
pub(crate) fn code(error: &Error) -> Code {
    match error {
        Error::Query(e) => of_query(e),
        Error::Catalog(e) => of_catalog(e),
        Error::Request(_) | Error::TooLarge { .. } => Code::InvalidArgument,
        Error::UnknownHandle => Code::NotFound,
        Error::Unsupported(_) => Code::Unimplemented,
        Error::Unauthenticated(_) => Code::Unauthenticated,
        Error::Denied(_) => Code::PermissionDenied,
        Error::ShuttingDown => Code::Unavailable,
        Error::Row { source, .. } => code(source),
        Error::Panic { .. } | Error::Arrow(_) | Error::Internal(_) => Code::Internal,
    }
}

fn of_query(error: &QueryError) -> Code {
    match error {
        QueryError::Syntax { .. } | QueryError::Invalid { .. } | QueryError::Constraint(_) | QueryError::Execution(_) => {
            Code::InvalidArgument
        }
        QueryError::Unsupported { .. } => Code::Unimplemented,
        QueryError::Conflict(_) => Code::Aborted,
        QueryError::Memory(_) => Code::ResourceExhausted,
        QueryError::Cancelled(_) => Code::Cancelled,
        QueryError::Timeout(_) => Code::DeadlineExceeded,
        QueryError::Catalog(e) => of_catalog(e),
        QueryError::Storage(e) => of_storage(e),
        QueryError::Located { source, .. } => of_query(source),
        QueryError::Internal(_) => Code::Internal,
    }
}

fn of_catalog(error: &CatalogError) -> Code {
    match error {
        CatalogError::UnknownCatalog { .. } | CatalogError::UnknownSchema { .. } | CatalogError::UnknownTable { .. } => Code::NotFound,
        CatalogError::AlreadyExists { .. } => Code::AlreadyExists,
        CatalogError::NotEmpty { .. } | CatalogError::SessionRequired { .. } => Code::FailedPrecondition,
        CatalogError::InvalidName(_) | CatalogError::InvalidSetting(_) => Code::InvalidArgument,
        CatalogError::NoSession => Code::Unauthenticated,
        CatalogError::Storage(e) => of_storage(e),
    }
}

fn of_storage(error: &StorageError) -> Code {
    match error {
        StorageError::NotATable { .. }
        | StorageError::VersionNotFound { .. }
        | StorageError::TimeTooEarly { .. }
        | StorageError::TimeInFuture { .. }
        | StorageError::RefNotFound { .. } => Code::NotFound,
        StorageError::AlreadyExists { .. } => Code::AlreadyExists,
        StorageError::FileGone { .. } => Code::FailedPrecondition,
        StorageError::Unsupported { .. } => Code::Unimplemented,
        StorageError::Corrupt { .. } => Code::DataLoss,
        StorageError::PathOutside { .. } => Code::PermissionDenied,
        StorageError::Invalid(_) => Code::InvalidArgument,
        StorageError::UnknownOutcome { .. } => Code::Unknown,
        StorageError::Store { source, .. } => of_store(source),
        StorageError::Internal(_) => Code::Internal,
    }
}

/// The store's refusals are the operator's to mend; everything else may pass.
fn of_store(error: &object_store::Error) -> Code {
    match error {
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => Code::FailedPrecondition,
        _ => Code::Unavailable,
    }
}

fn innermost(error: &Error) -> &Error {
    match error {
        Error::Row { source, .. } => innermost(source),
        other => other,
    }
}

fn bug(error: &Error) -> Status {
    let id = new_id();
    tracing::error!(%id, error = %error, "internal error");
    Status::internal(format!("internal error {id}: a bug in asof; the server's log says more under this id"))
}

/// An id that finds an error in the log.
#[expect(clippy::disallowed_methods, reason = "an id of a log line; nothing is decided by it")]
pub(crate) fn new_id() -> uuid::Uuid {
    uuid::Uuid::new_v4()
}

/// Status texts travel percent-encoded in a header: a text whose encoding is too long is cut, at its end.
fn shortened(text: &str) -> String {
    let mut encoded = 0;
    for (at, c) in text.char_indices() {
        encoded += if c.is_ascii_graphic() && c != '%' { 1 } else { 3 * c.len_utf8() };
        if encoded > LONGEST_TEXT {
            return format!("{}…", &text[..at]);
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use asof_storage::Micros;
    use asof_storage::error::VersionAt;

    use super::*;

    #[test]
    fn codes_and_first_words() {
        fn check(error: impl Into<Error>, code: Code, begins: &str) {
            let status = Status::from(error.into());
            assert_eq!(status.code(), code, "{status:?}");
            assert!(status.message().starts_with(begins), "{status:?}");
        }
        let at = VersionAt { version: 3, at: Micros(0) };
        let stored = |e: StorageError| Error::from(QueryError::from(e));
        check(QueryError::Syntax { message: "x".into(), location: None }, Code::InvalidArgument, "syntax:");
        check(QueryError::Conflict("with version 4".into()), Code::Aborted, "conflict:");
        check(QueryError::Memory("8 GB".into()), Code::ResourceExhausted, "out of memory:");
        check(QueryError::Unsupported { message: "MERGE".into(), location: None }, Code::Unimplemented, "not supported:");
        check(QueryError::Constraint("c1".into()), Code::InvalidArgument, "constraint:");
        check(
            stored(StorageError::FileGone { table: "t".into(), version: 1, path: "p".into() }),
            Code::FailedPrecondition,
            "out of retention:",
        );
        check(
            stored(StorageError::UnknownOutcome { table: "t".into(), version: 1, transaction: "x".into(), detail: "d".into() }),
            Code::Unknown,
            "unknown outcome:",
        );
        check(
            stored(StorageError::VersionNotFound { table: "t".into(), asked: 9, earliest: at, latest: at }),
            Code::NotFound,
            "table t has no version 9",
        );
        check(CatalogError::NoSession, Code::Unauthenticated, "session is unknown");
        check(
            QueryError::Timeout(std::time::Duration::from_secs(2)),
            Code::DeadlineExceeded,
            "timeout: the statement took longer than 2000 ms",
        );
        let row = Error::Row { row: 3, rows: 10, source: Box::new(QueryError::Conflict("c".into()).into()) };
        check(row, Code::Aborted, "conflict: c (parameter row 3 of 10; 2 before it were carried out)");
    }

    #[test]
    fn a_bug_shows_an_id_and_not_its_text() {
        let status = Status::from(Error::from(QueryError::Internal("secret /path".into())));
        assert_eq!(status.code(), Code::Internal);
        assert!(!status.message().contains("secret"));
        assert!(status.message().starts_with("internal error "));
    }

    #[test]
    fn long_texts_are_cut_by_their_encoded_length() {
        let ascii = Status::from(Error::Request("x".repeat(100_000)));
        assert!(ascii.message().len() <= LONGEST_TEXT + 8);
        let korean = Status::from(Error::Request("주".repeat(100_000)));
        assert!(korean.message().len() <= LONGEST_TEXT / 3 + 8);
    }
}
