//! DataFusion's state that every statement starts from: functions, memory, spill folder, object store, options.

use std::sync::Arc;

use asof_catalog::Warehouse;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

use crate::engine::EngineConfig;
use crate::error::{Error, Result};

/// The state to clone for each statement.
pub(crate) fn base_state(warehouse: &Warehouse, config: &EngineConfig) -> Result<SessionState> {
    let disk = match &config.spill_dir {
        Some(dir) => DiskManagerMode::Directories(vec![dir.clone()]),
        None => DiskManagerMode::OsTmpDirectory,
    };
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(config.memory_limit)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(disk))
        .build_arc()?;
    let store = warehouse.store();
    let mut root = store.url.clone();
    root.set_path("/");
    runtime.register_object_store(&root, Arc::clone(&store.objects));
    let mut state = SessionStateBuilder::new().with_config(options(config)).with_runtime_env(runtime).with_default_features().build();
    state.add_analyzer_rule(Arc::new(crate::scan::CharComparisons));
    crate::functions::register(&mut state).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(state)
}

fn options(config: &EngineConfig) -> SessionConfig {
    let mut session = SessionConfig::new()
        .with_target_partitions(config.parallelism.max(1))
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false);
    let options = session.options_mut();
    options.sql_parser.collect_spans = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.parse_float_as_decimal = true;
    options.execution.parquet.schema_force_view_types = false;
    options.execution.parquet.coerce_int96 = Some("us".to_owned());
    session
}
