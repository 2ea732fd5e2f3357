//! Storage against the golden Delta tables, and against faults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod commits;
mod faults;
mod golden;
mod restores;
mod support;
