//! Whole-system tests: real drivers against a real server.
//!
//! The library holds what several suites share and knows nothing of asof's crates: the golden tables ([`golden`]) and the corpus of
//! sqllogictest files ([`corpus`]), which runs over the wire (`tests/it`) and in process (asof-query's `tests/it`) alike.

use std::io;
use std::path::PathBuf;

pub mod corpus;
pub mod golden;

/// This package's folder, found from the working directory upwards: a path from build time would be another clone's where two clones share
/// a target folder.
///
/// # Errors
/// When the working directory is not in a clone.
pub fn folder() -> io::Result<PathBuf> {
    let start = std::env::current_dir()?;
    let found = start.ancestors().map(|folder| folder.join("integration")).find(|folder| folder.join("golden").is_dir());
    found.ok_or_else(|| io::Error::other(format!("{} is in no clone of asof: it has no integration/golden above it", start.display())))
}
