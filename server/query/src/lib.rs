//! SQL over pinned snapshots.
//!
//! Text → [`statement`] (one AST, a selector per table occurrence) → [`resolve`] (all I/O of naming) → [`plan`] (DataFusion sees
//! pinned tables only, Q1) → [`scan`] or [`dml`]. The flow is in [`engine`], top to bottom. No tonic.

pub mod command;
pub mod dml;
pub mod engine;
pub mod error;
pub mod functions;
pub mod interrupt;
mod memory;
pub mod plan;
pub mod resolve;
pub mod runtime;
pub mod scan;
pub mod session;
pub mod statement;
pub mod write;

pub use engine::{BatchStream, Description, Engine, EngineConfig, Outcome, Pin, QueryPlan, StatementClass};
pub use error::{Error, Result};
pub use interrupt::{Interrupt, Reason};
