//! Storage against the golden Delta tables, and against faults.

mod commits;
mod faults;
mod golden;
mod restores;
mod support;
