//! Scans of pinned tables.
//!
//! A version's index says which files it has, which of their rows are deleted, and what bounds their values have. [`PinnedTable`] turns
//! that into DataFusion's own Parquet scan, so that everything DataFusion can do with a folder of Parquet files it does here too:
//! - deleted rows are row selections on each file ([`deletes`]): no filter on top, no single stream; a file is still split by ranges;
//! - partition values are constant columns, so that dynamic filters reach them ([`select`], [`files`]);
//! - columns are found by physical name or field id at every depth ([`adapter`], [`reading`]);
//! - rows whose columns nobody wants are counted by the index, no file is opened ([`counted`]);
//! - files are decoded late where a join wants few of their rows ([`source`]);
//! - files are ruled out before they are opened ([`bounds`]), and what is known of the others is told to the optimiser ([`statistics`]).
//!
//! Invariants: a scan reads only the pinned version (Q1); its schema is that version's (Q2), whatever the files hold.

mod adapter;
mod bounds;
mod char;
mod columns;
mod considered;
mod counted;
mod deletes;
mod files;
mod matching;
mod reader;
mod reading;
mod select;
mod source;
mod statistics;
mod variant;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use asof_storage::{FileIndex, Snapshot, TableFormat};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::config::TableParquetOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use roaring::RoaringTreemap;

use adapter::PinnedAdapterFactory;
pub use char::CharComparisons;
pub(crate) use char::compares;
use columns::Columns;
use considered::Considered;
use counted::CountedExec;
pub(crate) use matching::Matching;
use reader::DataFiles;
use source::PinnedSource;

/// Name of the hidden column that holds a row's file ordinal (UInt32), see [`PinnedTable::with_positions`].
pub const FILE_ORDINAL: &str = "__asof_file";
/// Name of the hidden column that holds a row's number in its file (Int64, from 0), see [`PinnedTable::with_positions`].
pub const ROW_NUMBER: &str = "__asof_row";

/// A table at one version, as DataFusion sees it: a `TableProvider` whose files, schema and statistics come from the pinned index.
#[derive(Debug, Clone)]
pub struct PinnedTable {
    /// The table.
    pub table: Arc<dyn TableFormat>,
    /// The version.
    pub snapshot: Arc<Snapshot>,
    /// Its files.
    pub index: Arc<FileIndex>,
    columns: Arc<Columns>,
    only: Option<Arc<BTreeMap<u32, FileRows>>>,
}

/// Which of a file's rows are read, of those that are not deleted.
#[derive(Clone, Debug)]
pub enum FileRows {
    /// All.
    All,
    /// These, by their numbers.
    Only(Arc<RoaringTreemap>),
    /// All but these.
    Except(Arc<RoaringTreemap>),
}

impl PinnedTable {
    /// The table at that version.
    #[must_use]
    pub fn new(table: Arc<dyn TableFormat>, snapshot: Arc<Snapshot>, index: Arc<FileIndex>) -> Self {
        let columns = Arc::new(Columns::new(&snapshot, false));
        Self { table, snapshot, index, columns, only: None }
    }

    /// Read only these files (by ordinals into `FileIndex::files()` order), of each these rows.
    #[must_use]
    pub fn only(mut self, files: BTreeMap<u32, FileRows>) -> Self {
        self.only = Some(Arc::new(files));
        self
    }

    /// Append the columns [`FILE_ORDINAL`], constant within a file, and [`ROW_NUMBER`].
    #[must_use]
    pub fn with_positions(mut self) -> Self {
        self.columns = Arc::new(Columns::new(&self.snapshot, true));
        self
    }

    /// The files (by ordinal) that filters on columns constant within a file let through; `None` where one is on other columns.
    pub(crate) fn files_where(&self, state: &dyn Session, filters: &[Expr]) -> Result<Option<Vec<u32>>> {
        if !filters.iter().all(|f| select::is_exact(f, &self.columns)) {
            return Ok(None);
        }
        let mut considered = Considered::new(&self.snapshot);
        let selected = select::select(state, &self.columns, &self.index, None, filters, &mut considered)?;
        Ok(Some(selected.iter().flat_map(|chunk| &chunk.files).map(|(_, ordinal)| *ordinal).collect()))
    }

    /// For each scanned column, whether the plan may ask for its statistics.
    fn wanted(&self, projection: Option<&Vec<usize>>, filters: &[Expr]) -> Vec<bool> {
        let scanned = self.columns.scanned.table_schema();
        let mut wanted = vec![projection.is_none(); scanned.fields().len()];
        let named = filters.iter().flat_map(Expr::column_refs).filter_map(|c| scanned.index_of(&c.name).ok());
        let projected = projection.into_iter().flatten().filter_map(|i| self.columns.order.get(*i).copied());
        named.chain(projected).for_each(|i| wanted[i] = true);
        wanted
    }

    /// How to read Parquet: the session's options, and what Delta asks for.
    fn source(&self, state: &dyn Session, files: DataFiles, considered: Considered) -> PinnedSource {
        let mut options = TableParquetOptions { global: state.config_options().execution.parquet.clone(), ..Default::default() };
        // INT96 holds instants of any year: microseconds reach them all, nanoseconds only 1677 to 2262.
        options.global.coerce_int96 = Some("us".to_owned());
        options.global.coerce_int96_tz = Some("UTC".to_owned());
        options.global.pushdown_filters = false;
        let parquet = ParquetSource::new(self.columns.scanned.clone())
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(Arc::new(files));
        PinnedSource::new(parquet, !self.columns.has_variant(), considered)
    }

    fn store_url(&self, state: &dyn Session) -> Result<ObjectStoreUrl> {
        let store = self.table.store();
        let url = ObjectStoreUrl::parse(&store.url[..url::Position::BeforePath])?;
        if state.runtime_env().object_store(&url).is_err() {
            state.runtime_env().register_object_store(url.as_ref(), Arc::clone(&store.objects));
        }
        Ok(url)
    }
}

#[async_trait]
impl TableProvider for PinnedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns.presented)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = &self.columns;
        if state.config_options().execution.parquet.pushdown_filters {
            return plan_err!("datafusion.execution.parquet.pushdown_filters must stay off: scans decide by themselves");
        }
        let files = DataFiles {
            store: self.table.store().clone(),
            snapshot: Arc::clone(&self.snapshot),
            footers: state.runtime_env().cache_manager.get_file_metadata_cache(),
        };
        let mut considered = Considered::new(&self.snapshot);
        let only = self.only.as_deref();
        let selected = select::select(state, columns, &self.index, only, filters, &mut considered)?;
        let all_exact = filters.iter().all(|f| select::is_exact(f, columns));
        let limit = limit.filter(|_| all_exact);
        let whole_files = only.is_none_or(|only| only.values().all(|rows| matches!(rows, FileRows::All)));
        if all_exact
            && whole_files
            && projection.is_some_and(Vec::is_empty)
            && let Some(rows) = select::count(&selected)
        {
            return Ok(Arc::new(CountedExec::new(limit.map_or(rows, |limit| rows.min(limit)), considered)));
        }
        let mut chosen = files::choose(&files, columns, &selected, only, &self.wanted(projection, filters))?;
        if let Some(limit) = limit {
            considered.by_limit = files::trim(&mut chosen, limit);
        }
        considered.deleted_rows = chosen.iter().map(files::Chosen::deleted).sum();
        let opened = chosen.len();
        let to_read = files::without_deleted(&files, chosen).await?;
        considered.emptied = opened - to_read.len();
        let projection: Vec<usize> = match projection {
            Some(presented) => presented.iter().filter_map(|i| columns.order.get(*i).copied()).collect(),
            None => columns.order.clone(),
        };
        if to_read.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(columns.scanned.table_schema().project(&projection)?))));
        }
        let groups = files::group(to_read, state.config().target_partitions(), columns)?;
        let known = statistics::merge(groups.iter().filter_map(|g| g.file_statistics(None)), columns)?;
        let source = self.source(state, files, considered);
        let config = FileScanConfigBuilder::new(self.store_url(state)?, Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(known)
            .with_projection_indices(Some(projection))?
            .with_limit(limit)
            .with_expr_adapter(Some(Arc::new(PinnedAdapterFactory::new(Arc::clone(columns)))))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let kind = |filter: &&Expr| match select::is_exact(filter, &self.columns) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(kind).collect())
    }
}
