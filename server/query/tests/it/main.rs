//! Tests of the query crate against tables that other engines wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::large_futures, missing_docs)]

mod dml;
mod golden;
mod interrupt;
mod model;
mod plans;
mod pruning;
mod scan;
mod slt;
