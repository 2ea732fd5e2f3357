//! Functions as users of Spark, Databricks and Fabric spell them.
//!
//! Where two engines give one name different meanings, the order is: ours (this module), then DataFusion's own, then
//! `datafusion-spark`'s. So datafusion-spark only adds names that DataFusion does not have (`collect_list`, `size`, `unhex`, …), with the
//! exceptions of [`SPARK_FIRST`]. Ours are those where a pattern language or a time zone is at stake:
//!
//! * instants are `Timestamp(µs, "UTC")`; text without a zone is read in the session's zone (`datafusion.execution.time_zone`, default UTC);
//! * integers that overflow are errors ([`arithmetic`]), where DataFusion's wrap around;
//! * patterns are Java's (`dd/MM/yyyy`), a pattern that holds `%` is strftime's, as DataFusion has it; `format` takes .NET's.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::ScalarUDF;

mod arithmetic;
mod calendar;
pub mod instant;
mod pattern;
mod scalar;
#[cfg(test)]
mod tests;
mod text;
mod timestamp;

/// Functions of datafusion-spark that replace DataFusion's: `concat` of NULL is NULL, as everywhere but in PostgreSQL.
pub const SPARK_FIRST: &[&str] = &["concat"];

/// Register all functions; `registry` is a `SessionState` or a `SessionContext` with DataFusion's defaults.
///
/// # Errors
/// None that a user can cause.
pub fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    let known: Vec<Arc<ScalarUDF>> = registry.udfs().iter().filter_map(|name| registry.udf(name).ok()).collect();
    let known_aggregates: Vec<_> = registry.udafs().iter().filter_map(|name| registry.udaf(name).ok()).collect();
    datafusion_spark::register_all(registry)?;
    for function in known {
        registry.register_udf(function)?;
    }
    for function in known_aggregates {
        registry.register_udaf(function)?;
    }
    for function in datafusion_spark::all_default_scalar_functions() {
        if SPARK_FIRST.contains(&function.name()) {
            registry.register_udf(function)?;
        }
    }
    for function in ours() {
        registry.register_udf(function)?;
    }
    registry.register_expr_planner(Arc::new(arithmetic::IntegerArithmetic::new()))
}

/// Our own.
fn ours() -> Vec<Arc<ScalarUDF>> {
    [timestamp::functions(), calendar::functions(), text::functions()].into_iter().flatten().map(|f| Arc::new(ScalarUDF::from(f))).collect()
}
