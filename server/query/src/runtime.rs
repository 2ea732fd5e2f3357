//! DataFusion's state that every statement starts from: functions, memory, spill folder, object store, options.

use std::collections::HashMap;
use std::sync::Arc;

use asof_catalog::Warehouse;
use asof_storage::Micros;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::RelationPlanner;
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

use crate::engine::EngineConfig;
use crate::error::{Error, Result};
use crate::memory::StatementPool;
use crate::plan::conjunction::NarrowingFilters;
use crate::plan::kept::KeptPlans;
use crate::plan::meeting::MeetingTypes;
use crate::plan::types::SqlTypes;

/// What every statement starts from.
#[derive(Debug)]
pub struct Base {
    state: SessionState,
    /// What types that meet become: the first of the state's analyzer rules, which planning applies too.
    pub(crate) meeting: Arc<MeetingTypes>,
    /// Functions whose name is another function's alias. Building a state registers all functions anew, in no order, and the last one has the name.
    contested: Vec<Arc<ScalarUDF>>,
    /// States by time zone.
    zones: Mutex<HashMap<String, SessionState>>,
    /// Plans of texts that come again.
    pub(crate) plans: KeptPlans,
    /// Bytes for one statement, where that is less than all together may take.
    statement_memory: Option<usize>,
}

/// Most time zones whose states are kept.
const MOST_ZONES: usize = 64;

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
        let state = SessionStateBuilder::new_from_existing(state)
            .with_analyzer_rules(rules)
            .with_physical_optimizer_rule(Arc::new(NarrowingFilters))
            .build();
        let statement_memory = config.statement_memory_limit.filter(|limit| *limit < config.memory_limit);
        Ok(Self { state, meeting, contested, zones: Mutex::default(), plans: KeptPlans::new(), statement_memory })
    }

    /// What one statement's plans run in.
    pub(crate) fn task(&self, state: &SessionState) -> Arc<TaskContext> {
        match self.statement_memory {
            None => state.task_ctx(),
            Some(limit) => Arc::new(TaskContext::from(state).with_runtime(Arc::new(StatementPool::within(state.runtime_env(), limit)))),
        }
    }

    /// The state of one statement: in a time zone, at a moment, with what plans its relations.
    ///
    /// # Errors
    /// When the state takes no more planners.
    pub(crate) fn statement(&self, zone: &str, now: Micros, relations: Arc<dyn RelationPlanner>) -> Result<SessionState> {
        let mut state = self.in_zone(zone);
        state.execution_props_mut().query_execution_start_time = chrono::DateTime::from_timestamp_micros(now.0);
        state.register_relation_planner(relations)?;
        Ok(state)
    }

    /// The state of a time zone. Building one takes longer than planning a small query: all functions are registered anew.
    fn in_zone(&self, zone: &str) -> SessionState {
        let mut zones = self.zones.lock();
        if let Some(state) = zones.get(zone) {
            return state.clone();
        }
        if zones.len() >= MOST_ZONES {
            zones.clear();
        }
        let state = self.build_in_zone(zone);
        zones.insert(zone.to_owned(), state.clone());
        state
    }

    fn build_in_zone(&self, zone: &str) -> SessionState {
        let mut state = self.state.clone();
        state.config_mut().options_mut().execution.time_zone = Some(zone.to_owned());
        // Functions over columns ask these for the zone, those over literals the state.
        let options = Arc::clone(state.config_options());
        state.execution_props_mut().config_options = Some(options);
        let mut state = SessionStateBuilder::new_from_existing(state).with_type_planner(Arc::new(SqlTypes::new(zone))).build();
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

/// Bytes of a join's smaller side up to which it is built whole, by one thread, instead of both sides being split by key first, for two
/// cores. Splitting copies every row of both sides, building by one thread leaves the others idle meanwhile: so the more cores, the less.
/// (TPC-H at scale 1 on two cores: 20% less CPU than with DataFusion's 1 MiB.)
const BUILT_WHOLE: usize = 256 << 20;
/// Bytes of a row, about, where only rows are known.
const ROW_BYTES: usize = 32;

/// Keys of a join's smaller side that the other side's scan is told one by one. It can then tell how many rows will pass.
const LISTED_KEYS: usize = 500;

fn options(config: &EngineConfig) -> SessionConfig {
    let cores = config.parallelism.max(1);
    let mut session =
        SessionConfig::new().with_target_partitions(cores).with_information_schema(false).with_create_default_catalog_and_schema(false);
    let options = session.options_mut();
    options.optimizer.hash_join_inlist_pushdown_max_distinct_values = LISTED_KEYS;
    let whole = BUILT_WHOLE / (cores - 1).max(1);
    let joins = &mut options.optimizer;
    joins.hash_join_single_partition_threshold = joins.hash_join_single_partition_threshold.max(whole);
    joins.hash_join_single_partition_threshold_rows = joins.hash_join_single_partition_threshold_rows.max(whole / ROW_BYTES);
    options.sql_parser.collect_spans = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.parse_float_as_decimal = true;
    options.execution.parquet.schema_force_view_types = false;
    options.execution.parquet.coerce_int96 = Some("us".to_owned());
    session
}
