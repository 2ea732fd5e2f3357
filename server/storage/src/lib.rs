//! Tables as files: formats, snapshots, commits.
//!
//! A lakehouse table is a folder of immutable data files and a log that says which of them make up each
//! version. This crate opens such a folder, answers *which files were the table at that moment*
//! ([`SnapshotSelector`] → [`Snapshot`] → [`FileIndex`]), and adds versions with optimistic concurrency
//! ([`Change`] → [`CommitOutcome`]). It knows no SQL and no wire.
//!
//! Invariants (ids as in `server/docs/ARCHITECTURE.md`): S1 a snapshot never changes; S2 a version's commit
//! file is written once, by put-if-absent; S4 a conflict check sees every commit between base and target;
//! S5 a transaction id appears in at most one committed version; S6 an index built from scratch equals one
//! built by steps. Time, randomness and ids come in through [`Env`] only.

pub mod clock;
pub mod deletes;
pub mod delta;
pub mod error;
pub mod index;
pub mod object;
pub mod snapshot;
pub mod table;
pub mod transaction;

pub use clock::{Clock, Entropy, Env, Micros};
pub use error::{Error, Result};
pub use index::{DataFile, FileIndex, FileKey};
pub use snapshot::{Commit, HistoryRange, Snapshot, SnapshotSelector, Version};
pub use table::{Capabilities, TableFormat, TableId};
pub use transaction::{Change, CommitOutcome, Operation, ReadSet};
