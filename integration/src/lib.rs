//! Whole-system tests: real drivers against a real server.
//!
//! The library holds what several suites share and knows nothing of asof's crates: the golden tables ([`golden`]) and the corpus of
//! sqllogictest files ([`corpus`]), which runs over the wire (`tests/it`) and in process (asof-query's `tests/it`) alike.

pub mod corpus;
pub mod golden;
