//! What can go wrong with names and sessions.

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the catalog. Texts name what was asked, what exists, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such catalog.
    #[error("no catalog {asked:?}: there is {existing:?}")]
    UnknownCatalog {
        /// Asked for.
        asked: String,
        /// The ones there are.
        existing: Vec<String>,
    },
    /// No such schema.
    #[error("no schema {asked:?} in catalog {catalog:?}: {hint}")]
    UnknownSchema {
        /// The catalog.
        catalog: String,
        /// Asked for.
        asked: String,
        /// What exists, and what to do.
        hint: String,
    },
    /// No such table or view.
    #[error("no table or view {asked:?}: {hint}")]
    UnknownTable {
        /// Asked for, fully qualified.
        asked: String,
        /// Similar names, and what to do.
        hint: String,
    },
    /// Something of that name is there already.
    #[error("{what} {name:?} already exists")]
    AlreadyExists {
        /// Schema, table or view.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A schema that is not empty.
    #[error("schema {name:?} is not empty: it holds {tables:?}; drop them first, or use CASCADE")]
    NotEmpty {
        /// The schema.
        name: String,
        /// Some of its tables.
        tables: Vec<String>,
    },
    /// A name that cannot be one, or a path identifier that leaves the warehouse.
    #[error("{0}")]
    InvalidName(String),
    /// A setting nobody knows, or a value it does not take.
    #[error("{0}")]
    InvalidSetting(String),
    /// A session that does not exist or has expired.
    #[error("session is unknown or has expired; connect again")]
    NoSession,
    /// A statement that needs a session came without one.
    #[error(
        "{statement} needs a session, and this request carries none: send back the `authorization` header or the cookie `arrow_flight_session_id` of the first answer"
    )]
    SessionRequired {
        /// The statement.
        statement: String,
    },
    /// From storage.
    #[error(transparent)]
    Storage(#[from] asof_storage::Error),
}
