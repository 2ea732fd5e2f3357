//! Which rows of which files a predicate selects.
//!
//! It is evaluated once: what happens to the rows afterwards (a new deletion vector, a rewritten file, the change data feed) goes by their
//! numbers, so that a predicate which would say something else the second time (`random() < 0.5`) does no harm.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, UInt32Type};
use asof_storage::{DataFile, ReadSet};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{Expr, LogicalPlan};
use futures::TryStreamExt;
use roaring::RoaringTreemap;
use tokio::task::JoinSet;

use super::select::{item, select};
use super::{Base, Rows, live_rows};
use crate::error::{Error, Result};
use crate::plan::{Planner, StatementContext};
use crate::scan::{FILE_ORDINAL, FileRows, Matching, PinnedTable, ROW_NUMBER};

/// A file with rows that a statement changes.
#[derive(Clone, Debug)]
pub(super) struct Touched {
    /// Its ordinal in the index.
    pub ordinal: u32,
    /// The file.
    pub file: DataFile,
    /// Numbers of its selected rows, of those that were not deleted.
    pub rows: Arc<RoaringTreemap>,
}

impl Touched {
    /// How many rows are selected.
    pub(super) fn selected(&self) -> i64 {
        i64::try_from(self.rows.len()).unwrap_or(i64::MAX)
    }

    /// Every row of the file is selected.
    pub(super) fn wholly(&self) -> bool {
        live_rows(&self.file) == Some(self.selected())
    }
}

/// Files with rows for which the predicate is true (all rows without one), in the order of the index; and what was read of the table to know.
pub(super) async fn touched(ctx: &StatementContext, planner: &Planner, base: &Base, rows: &Rows<'_>) -> Result<(Vec<Touched>, ReadSet)> {
    let files = base.files();
    let mut touched = Vec::new();
    let table = base.pinned().with_positions();
    let number = planner.bind(base.relation(ctx, table.clone())?);
    let query = select(vec![item(FILE_ORDINAL), item(ROW_NUMBER)], number, rows.alias, rows.predicate.cloned())?;
    let plan = planner.state().optimize(&planner.logical(&query).await?)?;
    for (ordinal, rows) in selected(planner, &plan).await? {
        let file = files
            .get(ordinal as usize)
            .ok_or_else(|| Error::Internal(format!("file {ordinal} of table {} is not in its index", base.table.name())))?;
        touched.push(Touched { ordinal, file: file.clone(), rows: Arc::new(rows) });
    }
    let reads = match filters(&plan, base)? {
        // Of files without selected rows nothing depends on what others do to theirs.
        Some(filters) => ReadSet::Matching {
            files: touched.iter().map(|touched| touched.file.key()).collect(),
            predicate: Arc::new(Matching::new(table, filters, planner.state().clone())),
        },
        None => ReadSet::Table,
    };
    Ok((touched, reads))
}

/// What the plan's scan of the base filters by; `None` where the plan reads the table in more ways than one.
pub(super) fn filters(plan: &LogicalPlan, base: &Base) -> Result<Option<Vec<Expr>>> {
    let (mut scans, mut filters) = (0, None);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
            && let Some(table) = provider.downcast_ref::<PinnedTable>()
            // What an older version holds never changes.
            && (table.table.id(), table.snapshot.version) == (base.table.id(), base.snapshot.version)
        {
            scans += 1;
            filters = Some(unnormalize_cols(scan.filters.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(filters.filter(|_| scans == 1))
}

/// The selected rows of those files, as a table.
pub(super) fn selected_rows(base: &Base, files: &[Touched]) -> PinnedTable {
    base.pinned().only(files.iter().map(|file| (file.ordinal, FileRows::Only(Arc::clone(&file.rows)))).collect())
}

/// The other rows of those files, as a table.
pub(super) fn other_rows(base: &Base, files: &[Touched]) -> PinnedTable {
    base.pinned().only(files.iter().map(|file| (file.ordinal, FileRows::Except(Arc::clone(&file.rows)))).collect())
}

/// Row numbers by file ordinal.
type Numbers = BTreeMap<u32, RoaringTreemap>;

async fn selected(planner: &Planner, plan: &LogicalPlan) -> Result<Numbers> {
    let mut tasks: JoinSet<Result<Numbers>> = planner.streams(plan).await?.into_iter().map(gather).collect();
    let mut all = Numbers::new();
    while let Some(task) = tasks.join_next().await {
        for (ordinal, rows) in task.map_err(|e| Error::Internal(format!("a scan ended: {e}")))?? {
            *all.entry(ordinal).or_default() |= rows;
        }
    }
    Ok(all)
}

async fn gather(mut stream: SendableRecordBatchStream) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    while let Some(batch) = stream.try_next().await? {
        let (ordinals, rows) = (batch.column(0).as_primitive::<UInt32Type>(), batch.column(1).as_primitive::<Int64Type>());
        let mut rows = rows.values().iter();
        for of_one_file in ordinals.values().chunk_by(|a, b| a == b) {
            let numbers = numbers.entry(of_one_file[0]).or_default();
            for row in rows.by_ref().take(of_one_file.len()) {
                numbers.insert(u64::try_from(*row).map_err(|_| Error::Internal("a row has a negative number".to_owned()))?);
            }
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use asof_catalog::{Sessions, Warehouse};
    use asof_storage::Env;

    use super::*;
    use crate::statement::Kind;
    use crate::{Engine, EngineConfig, Interrupt};

    /// What a DELETE reads, as others' files are held against it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_was_read_is_the_predicate() {
        let folder = tempfile::tempdir().unwrap();
        let warehouse = Arc::new(Warehouse::open(folder.path().to_str().unwrap(), "lake", Env::system()).unwrap());
        let config = EngineConfig { memory_limit: 64 << 20, statement_memory_limit: None, parallelism: 2, spill_dir: None };
        let engine = Engine::new(warehouse, Env::system(), &config).unwrap();
        let session = Sessions::new(Env::system(), Duration::from_secs(600), "lake", "main").open("anonymous");
        for sql in ["CREATE TABLE t (id INT, p STRING) PARTITIONED BY (p)", "INSERT INTO t VALUES (1, 'a'), (2, 'a'), (1, 'b')"] {
            engine.run(&session, sql, None, &Interrupt::new()).await.unwrap();
        }
        let reads = async |sql: &str| {
            let statement = crate::statement::parse(sql).unwrap();
            let Kind::Delete { target, alias, predicate } = &statement.kind else { panic!("{sql}") };
            let ctx = engine.context(&session, None, &Interrupt::new());
            let base = Base::resolve(&ctx, target).await.unwrap();
            let (planner, _) = base.planner(&ctx, &statement).await.unwrap();
            let rows = Rows { target, alias: alias.as_deref(), predicate: predicate.as_ref() };
            let (files, reads) = touched(&ctx, &planner, &base, &rows).await.unwrap();
            assert_eq!(files.len(), 1, "{sql}");
            reads
        };
        let ReadSet::Matching { files, predicate } = reads("DELETE FROM t AS x WHERE x.id < 2 AND p = 'a'").await else {
            panic!("a predicate")
        };
        assert_eq!(files.len(), 1);
        let check = |p: &str, stats: Option<&str>, expect: bool| {
            let values = BTreeMap::from([("p".to_owned(), Some(p.to_owned()))]);
            assert_eq!(predicate.may_match(&values, stats), expect, "{p} {stats:?}");
        };
        check("a", None, true);
        check("b", None, false);
        check("a", Some(r#"{"numRecords":1,"minValues":{"id":5},"maxValues":{"id":9}}"#), false);
        check("a", Some(r#"{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":9}}"#), true);
        check("a", Some("nonsense"), true);
        let reads_itself = reads("DELETE FROM t WHERE p = 'b' AND id IN (SELECT id FROM t WHERE p = 'a')").await;
        assert!(matches!(reads_itself, ReadSet::Table), "{reads_itself:?}");
    }
}
