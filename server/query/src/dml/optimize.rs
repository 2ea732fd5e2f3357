//! OPTIMIZE and REORG … APPLY (PURGE): the same rows in fewer files, and without deletion vectors.
//!
//! Files of one partition that are smaller than the target size are put together as far as it goes; files of which many rows are deleted (any,
//! for PURGE) are written again without them. No row changes, so that readers of the change data feed see nothing, tables that
//! take only appends allow it, and commits that add rows are no conflict.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use asof_storage::{Change, DataFile, ReadSet};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::sql::sqlparser::ast;

use super::select::{item, select, shown};
use super::touched::filters;
use super::{Attempt, Base, bytes_of, commit, count_of, invalid, json_list, operation, vectors_of};
use crate::engine::Outcome;
use crate::error::{Error, Result};
use crate::plan::{Planner, StatementContext};
use crate::scan::{FILE_ORDINAL, FileRows};
use crate::statement::{Statement, TableTarget};
use crate::write::{self, Rules, Source, Staged, Target};

/// A file of which more than one row in so many is deleted is written again.
const DELETED: i64 = 20;

/// What the statement says.
pub(super) struct Optimize<'a> {
    pub target: &'a TableTarget,
    pub predicate: Option<&'a ast::Expr>,
    /// REORG … APPLY (PURGE): only files with deletion vectors, and all of them.
    pub purge: bool,
}

/// Schema of the row that the statement gives: the table's place, and what was done.
#[must_use]
pub fn result_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("path", DataType::Utf8, true), Field::new_struct("metrics", metrics_fields(), true)]))
}

fn metrics_fields() -> Fields {
    let names =
        ["numFilesAdded", "numFilesRemoved", "numBytesAdded", "numBytesRemoved", "numDeletionVectorsRemoved", "totalConsideredFiles"];
    names.iter().map(|name| Field::new(*name, DataType::Int64, true)).collect()
}

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, optimize: &Optimize<'_>) -> Result<Attempt> {
    let base = Base::resolve(ctx, optimize.target).await?;
    let (planner, _) = base.planner(ctx, statement).await?;
    let considered = considered(ctx, &planner, &base, optimize.predicate).await?;
    let target = Target::of(base.table.as_ref(), &base.snapshot, &ctx.env)?;
    let chosen = if optimize.purge { with_vectors(&considered) } else { choose(&considered, target.file_size()) };
    if chosen.is_empty() {
        return Ok(Attempt::Done(told(&base, &[], &Staged::none(), considered.len())?));
    }
    let staged = rewrite(ctx, &planner, &base, target, &chosen).await?;
    let removed: Vec<DataFile> = chosen.into_iter().map(|(_, file)| file).collect();
    let outcome = told(&base, &removed, &staged, considered.len())?;
    let predicate: Vec<String> = optimize.predicate.iter().map(|p| shown(p, &statement.tables)).collect();
    let predicate = ("predicate", Some(json_list(&predicate)));
    let none = || Some("[]".to_owned());
    let (name, parameters) = match optimize.purge {
        true => ("REORG", vec![predicate, ("applyPurge", Some("true".to_owned()))]),
        false => ("OPTIMIZE", vec![predicate, ("zOrderBy", none()), ("clusterBy", none()), ("auto", Some("false".to_owned()))]),
    };
    let change = Change {
        operation: operation(ctx, name, &parameters, &metrics(&removed, &staged)),
        removed,
        added: staged.files.clone(),
        reads: ReadSet::Nothing,
        data_change: false,
        ..Change::default()
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, staged, outcome).await
}

/// A file with its ordinal in the index.
type Numbered = (u32, DataFile);

/// The files of the partitions that the predicate names; all without one.
async fn considered(ctx: &StatementContext, planner: &Planner, base: &Base, predicate: Option<&ast::Expr>) -> Result<Vec<Numbered>> {
    let files = base.files().into_iter().zip(0..).map(|(file, ordinal)| (ordinal, file));
    let Some(predicate) = predicate else { return Ok(files.collect()) };
    let table = base.pinned().with_positions();
    let number = planner.bind(base.relation(ctx, table.clone())?);
    let query = select(vec![item(FILE_ORDINAL)], number, None, Some(predicate.clone()))?;
    let plan = planner.state().optimize(&planner.logical(&query).await?)?;
    let mut filtered_later = false;
    plan.apply_with_subqueries(|node| {
        filtered_later |= matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let matching = match filters(&plan, base)? {
        _ if filtered_later => None,
        Some(filters) => table.files_where(planner.state(), &filters)?,
        None => Some(vec![]), // the predicate is never true
    };
    let Some(matching) = matching else {
        let columns = match base.snapshot.partition_columns.join(", ") {
            columns if columns.is_empty() => "it has none".to_owned(),
            columns => columns,
        };
        return Err(invalid(format!(
            "OPTIMIZE … WHERE chooses partitions of {}, by its partition columns alone ({columns})",
            base.table.name()
        )));
    };
    Ok(files.filter(|(ordinal, _)| matching.binary_search(ordinal).is_ok()).collect())
}

fn with_vectors(files: &[Numbered]) -> Vec<Numbered> {
    files.iter().filter(|(_, file)| file.deletion_vector.is_some()).cloned().collect()
}

/// The files to write again: of each partition those that fit together into one of the target size, and those with many deleted rows.
fn choose(files: &[Numbered], target_size: usize) -> Vec<Numbered> {
    let target = i64::try_from(target_size).unwrap_or(i64::MAX);
    let mut partitions: BTreeMap<_, Vec<&Numbered>> = BTreeMap::new();
    for numbered in files.iter().filter(|(_, file)| file.size < target || is_worn(file)) {
        partitions.entry(&numbered.1.partition_values).or_default().push(numbered);
    }
    let mut chosen: Vec<Numbered> = partitions.into_values().flat_map(|files| together(files, target)).collect();
    chosen.sort_by_key(|(ordinal, _)| *ordinal);
    chosen
}

/// Files that are put together up to a size; one that would be alone stays as it is, unless it is worn.
fn together(mut files: Vec<&Numbered>, target: i64) -> Vec<Numbered> {
    files.sort_by_key(|(ordinal, file)| (file.size, *ordinal));
    let mut bins: Vec<(i64, Vec<&Numbered>)> = Vec::new();
    for numbered in files {
        let size = numbered.1.size;
        match bins.last_mut() {
            Some((held, bin)) if held.saturating_add(size) <= target => {
                *held += size;
                bin.push(numbered);
            }
            _ => bins.push((size, vec![numbered])),
        }
    }
    let worth = |bin: &Vec<&Numbered>| bin.len() > 1 || bin.iter().any(|(_, file)| is_worn(file));
    bins.into_iter().map(|(_, bin)| bin).filter(worth).flatten().cloned().collect()
}

/// Whether many of the file's rows are deleted.
fn is_worn(file: &DataFile) -> bool {
    let deleted = file.deletion_vector.as_ref().map_or(0, |vector| vector.cardinality);
    deleted > 0 && file.rows.is_none_or(|rows| deleted.saturating_mul(DELETED) > rows)
}

async fn rewrite(ctx: &StatementContext, planner: &Planner, base: &Base, target: Target, chosen: &[Numbered]) -> Result<Staged> {
    let table = base.pinned().only(chosen.iter().map(|(ordinal, _)| (*ordinal, FileRows::All)).collect());
    let number = planner.bind(base.relation(ctx, table)?);
    let items = target.schema.fields().iter().map(|field| item(field.name())).collect();
    let mut plan = planner.physical(&planner.logical(&select(items, number, None, None)?).await?).await?;
    let bytes: i64 = chosen.iter().map(|(_, file)| file.size).sum();
    if usize::try_from(bytes).is_ok_and(|bytes| bytes <= target.file_size()) {
        // Several encoders would make several files.
        plan = Arc::new(CoalescePartitionsExec::new(plan));
    }
    let source = Source::new(planner, plan, &target, Rules::copy(&target))?;
    let live = chosen.iter().map(|(_, file)| super::live_rows(file)).sum::<Option<i64>>();
    let staged = write::write(target, vec![source]).await?;
    match live {
        Some(live) if live != staged.rows => {
            let found = staged.rows;
            staged.discard().await;
            Err(Error::Internal(format!("{live} rows became {found} when files of {} were put together", base.table.name())))
        }
        _ => Ok(staged),
    }
}

/// As Spark tells them.
fn metrics(removed: &[DataFile], staged: &Staged) -> Vec<(&'static str, i64)> {
    let mut sizes: Vec<i64> = staged.files.iter().map(|file| file.size).collect();
    sizes.sort_unstable();
    let at = |quarter: usize| sizes.get((sizes.len() * quarter / 4).min(sizes.len().saturating_sub(1))).copied().unwrap_or(0);
    vec![
        ("numRemovedFiles", count_of(removed)),
        ("numRemovedBytes", bytes_of(removed)),
        ("numAddedFiles", count_of(&staged.files)),
        ("numAddedBytes", staged.bytes()),
        ("numDeletionVectorsRemoved", vectors_of(removed)),
        ("minFileSize", at(0)),
        ("p25FileSize", at(1)),
        ("p50FileSize", at(2)),
        ("p75FileSize", at(3)),
        ("maxFileSize", at(4)),
    ]
}

fn told(base: &Base, removed: &[DataFile], staged: &Staged, considered: usize) -> Result<Outcome> {
    let considered = i64::try_from(considered).unwrap_or(i64::MAX);
    let metrics = [count_of(&staged.files), count_of(removed), staged.bytes(), bytes_of(removed), vectors_of(removed), considered];
    let metrics = metrics.map(|value| Arc::new(Int64Array::from(vec![value])) as ArrayRef).to_vec();
    let path: ArrayRef = Arc::new(StringArray::from(vec![base.table.id().location().as_str()]));
    let metrics: ArrayRef = Arc::new(StructArray::new(metrics_fields(), metrics, None));
    let row = RecordBatch::try_new(result_schema(), vec![path, metrics]).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(Outcome { count: None, rows: Some((result_schema(), vec![row])) })
}

#[cfg(test)]
mod tests {
    use asof_storage::deletes::DeletionVector;

    use super::*;

    fn file(ordinal: u32, partition: &str, size: i64, deleted: i64) -> Numbered {
        let vector = (deleted > 0).then(|| DeletionVector {
            storage_type: 'u',
            path_or_inline: String::new(),
            offset: None,
            size_in_bytes: 0,
            cardinality: deleted,
        });
        let partition_values = BTreeMap::from([("p".to_owned(), Some(partition.to_owned()))]);
        let file =
            DataFile { path: ordinal.to_string(), size, modification_time: 0, rows: Some(100), partition_values, deletion_vector: vector };
        (ordinal, file)
    }

    #[test]
    fn small_files_of_a_partition_go_together() {
        let check = |files: &[(&str, i64, i64)], expect: &[u32]| {
            let files: Vec<_> = files.iter().zip(0..).map(|((p, size, deleted), n)| file(n, p, *size, *deleted)).collect();
            let chosen: Vec<u32> = choose(&files, 100).iter().map(|(n, _)| *n).collect();
            assert_eq!(chosen, expect);
        };
        check(&[], &[]);
        check(&[("a", 10, 0)], &[]);
        check(&[("a", 10, 0), ("b", 10, 0)], &[]);
        check(&[("a", 10, 0), ("b", 10, 0), ("a", 20, 0)], &[0, 2]);
        check(&[("a", 60, 0), ("a", 60, 0)], &[]);
        check(&[("a", 60, 0), ("a", 100, 0), ("a", 30, 0), ("a", 20, 0)], &[2, 3]);
        check(&[("a", 500, 5)], &[]);
        check(&[("a", 500, 6)], &[0]);
    }
}
