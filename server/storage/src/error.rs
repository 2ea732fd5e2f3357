//! What can go wrong with a table, by what the caller does next.

use crate::clock::Micros;
use crate::snapshot::Version;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A version and the moment it was committed, as shown in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionAt {
    /// The version.
    pub version: Version,
    /// When it was committed (adjusted, see `snapshot`).
    pub at: Micros,
}

impl std::fmt::Display for VersionAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "version {} ({})", self.version, self.at)
    }
}

/// Whether a table was to be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Written.
    Write,
}

/// An error of storage. Texts name what was asked, what exists, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No table lies there.
    #[error("no table at {location}: {detail}")]
    NotATable {
        /// Where it was looked for, relative to the warehouse where known.
        location: String,
        /// What was found instead.
        detail: String,
    },
    /// A table lies where one was to be created.
    #[error("a table already exists at {location}")]
    AlreadyExists {
        /// Where.
        location: String,
    },
    /// A version that the table does not have, or no longer has.
    #[error("table {table} has no version {asked}: available are {earliest} to {latest}")]
    VersionNotFound {
        /// The table.
        table: String,
        /// The version asked for.
        asked: i64,
        /// The earliest that can be read.
        earliest: VersionAt,
        /// The latest.
        latest: VersionAt,
    },
    /// A moment before the earliest version.
    #[error("table {table} did not exist at {asked} or its log no longer reaches back: the earliest is {earliest}, the latest {latest}")]
    TimeTooEarly {
        /// The table.
        table: String,
        /// The moment asked for.
        asked: Micros,
        /// The earliest that can be read.
        earliest: VersionAt,
        /// The latest.
        latest: VersionAt,
    },
    /// A moment that has not come yet.
    #[error("{asked} is in the future (now is {now}): table {table} reaches from {earliest} to {latest}")]
    TimeInFuture {
        /// The table.
        table: String,
        /// The moment asked for.
        asked: Micros,
        /// The server's now.
        now: Micros,
        /// The earliest that can be read.
        earliest: VersionAt,
        /// The latest.
        latest: VersionAt,
    },
    /// A tag, branch or named snapshot nobody knows.
    #[error("table {table} has no snapshot named {asked:?}: {detail}")]
    RefNotFound {
        /// The table.
        table: String,
        /// The name asked for.
        asked: String,
        /// What exists.
        detail: String,
    },
    /// A file that a known version needs is gone: a vacuum took it, most likely.
    #[error(
        "out of retention: version {version} of table {table} needs {path}, which is gone (removed by a vacuum, most likely); \
             DESCRIBE HISTORY shows in column readable which versions are whole"
    )]
    FileGone {
        /// The table.
        table: String,
        /// The version read.
        version: Version,
        /// The file that is gone.
        path: String,
    },
    /// The table has a feature that asof does not know or does not support for this access.
    #[error("table {table} cannot be {}: {detail}", match access { Access::Read => "read", Access::Write => "written" })]
    Unsupported {
        /// The table.
        table: String,
        /// Read or written.
        access: Access,
        /// Which feature, by name, and what to do.
        detail: String,
    },
    /// A log, checkpoint, deletion vector or data file that is not what it should be.
    #[error("table {table} is damaged{}: {file}: {detail}", version.map(|v| format!(" at version {v}")).unwrap_or_default())]
    Corrupt {
        /// The table.
        table: String,
        /// The version that needs the file, where known.
        version: Option<Version>,
        /// The damaged file, relative to the table.
        file: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A path in the log that leads out of the table.
    #[error("version {version} of table {table} names {path}, which lies outside the table; this is refused")]
    PathOutside {
        /// The table.
        table: String,
        /// The version read.
        version: Version,
        /// The path as written in the log.
        path: String,
    },
    /// A change that makes no sense for the table.
    #[error("{0}")]
    Invalid(String),
    /// The commit's answer was lost and reading it back did not settle it.
    #[error(
        "unknown outcome: the commit of transaction {transaction} to table {table} at version {version} may or may not have happened: {detail}"
    )]
    UnknownOutcome {
        /// The table.
        table: String,
        /// The version tried.
        version: Version,
        /// The transaction id, as in the log's `commitInfo.txnId`.
        transaction: String,
        /// The store's words.
        detail: String,
    },
    /// The object store failed.
    #[error("{action} {path}: {source}")]
    Store {
        /// What was being done.
        action: &'static str,
        /// To which path.
        path: String,
        /// The store's error.
        #[source]
        source: object_store::Error,
    },
    /// A bug of asof.
    #[error("internal: {0}")]
    Internal(String),
}
