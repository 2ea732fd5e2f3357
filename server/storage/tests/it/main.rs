//! Storage against the golden Delta tables, and against faults.

mod golden;
mod support;
