//! DataFusion's state that every statement starts from: functions, memory, spill folder, object store, options.

use std::sync::Arc;

use asof_catalog::Warehouse;
use asof_storage::Micros;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::{RelationPlanner, TypePlanner};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionConfig;

use crate::engine::EngineConfig;
use crate::error::{Error, Result};
use crate::plan::meeting::MeetingTypes;

/// What every statement starts from.
#[derive(Debug)]
pub struct Base {
    state: SessionState,
    /// What types that meet become: the first of the state's analyzer rules, which planning applies too.
    pub(crate) meeting: Arc<MeetingTypes>,
    /// Functions whose name is another function's alias. Building a state registers all functions anew, in no order, and the last one has the name.
    contested: Vec<Arc<ScalarUDF>>,
}

impl Base {
    /// Over a warehouse's store.
    pub(crate) fn new(warehouse: &Warehouse, config: &EngineConfig) -> Result<Self> {
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
        let contested = contested(&state);
        let meeting = Arc::new(MeetingTypes::new(state.udf("timestamp")?));
        // Before DataFusion's rules, which would make other types meet.
        let first = Arc::clone(&meeting) as Arc<dyn AnalyzerRule + Send + Sync>;
        let rules = std::iter::once(first).chain(state.analyzer().rules.iter().cloned()).collect();
        let state = SessionStateBuilder::new_from_existing(state).with_analyzer_rules(rules).build();
        Ok(Self { state, meeting, contested })
    }

    /// The state of one statement: in a time zone, at a moment, with what plans its relations and types.
    pub(crate) fn statement(
        &self,
        zone: String,
        now: Micros,
        relations: Arc<dyn RelationPlanner>,
        types: Arc<dyn TypePlanner>,
    ) -> SessionState {
        let mut state = self.state.clone();
        state.config_mut().options_mut().execution.time_zone = Some(zone);
        // Functions over columns ask these for the zone, those over literals the state.
        let options = Arc::clone(state.config_options());
        let props = state.execution_props_mut();
        props.config_options = Some(options);
        props.query_execution_start_time = chrono::DateTime::from_timestamp_micros(now.0);
        let builder = SessionStateBuilder::new_from_existing(state).with_type_planner(types).with_relation_planners(vec![relations]);
        let mut state = builder.build();
        for function in &self.contested {
            // It was registered before: it can be again.
            let _ = state.register_udf(Arc::clone(function));
        }
        state
    }
}

/// The functions that a state gives under a name which another one, that is there under an alias, has too.
fn contested(state: &SessionState) -> Vec<Arc<ScalarUDF>> {
    let functions = state.scalar_functions();
    let has = |name: &str, f: &ScalarUDF| f.name() == name || f.aliases().iter().any(|alias| alias == name);
    let mut contested: Vec<Arc<ScalarUDF>> = Vec::new();
    for (name, function) in functions {
        let is_new = !contested.iter().any(|known| Arc::ptr_eq(known, function));
        if is_new && functions.values().any(|other| !Arc::ptr_eq(other, function) && has(name, other)) {
            contested.push(Arc::clone(function));
        }
    }
    contested
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
