//! Names and sessions.
//!
//! [`Warehouse`] turns `catalog.schema.table` and path identifiers into tables where they lie; nothing needs to be
//! registered. [`Sessions`] keeps what a client has set between its statements. No DataFusion, no tonic.

pub mod error;
pub mod name;
pub mod nearest;
pub mod session;
pub mod warehouse;

pub use error::{Error, Result};
pub use name::TableName;
pub use session::{Naming, PreparedStatement, Session, SessionKey, Sessions};
pub use warehouse::{TableEntry, Warehouse};
