//! Delta Lake, over delta_kernel.
//!
//! The kernel reads logs and checkpoints; it neither rebases nor restores, sees one log listing at a time and gives up where an intact older
//! version could be read. So listing, times, features, conflict checks and commits are ours, and everything of the kernel stays
//! behind this module.

mod table;

pub use table::DeltaTable;

/// What Delta keeps of a version: the kernel's snapshot, protocol and metadata.
#[derive(Debug)]
pub struct DeltaSnapshot {}
