//! Which files of a version a scan must open.
//!
//! Filters on partition columns alone are decided here for good (they are *exact*: no filter follows the scan); all others only rule files out.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use asof_storage::FileIndex;
use asof_storage::index::Chunk;
use datafusion::catalog::Session;
use datafusion::common::{DFSchema, Result, internal_datafusion_err};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

use super::bounds::Bounds;
use super::columns::Columns;
use super::considered::Considered;
use super::reading::pad;
use super::{FILE_ORDINAL, FileRows};

/// The files of one chunk that a scan opens.
#[derive(Debug)]
pub(super) struct Selected<'a> {
    /// The chunk.
    pub chunk: &'a Chunk,
    /// Row in the chunk and ordinal among the version's live files, ascending.
    pub files: Vec<(usize, u32)>,
}

/// Whether every column that a filter names is constant within a file, and the filter says the same each time.
pub(super) fn is_exact(filter: &Expr, columns: &Columns) -> bool {
    !filter.is_volatile() && !has_subquery(filter) && filter.column_refs().iter().all(|c| columns.is_constant(&c.name))
}

fn has_subquery(filter: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    filter
        .exists(|e| Ok(matches!(e, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::OuterReferenceColumn(..))))
        .unwrap_or(true)
}

/// Chooses the files that may hold rows which pass all filters.
pub(super) fn select<'a>(
    state: &dyn Session,
    columns: &Columns,
    index: &'a FileIndex,
    only: Option<&BTreeMap<u32, FileRows>>,
    filters: &[Expr],
    considered: &mut Considered,
) -> Result<Vec<Selected<'a>>> {
    let (exact, pruning): (Vec<Expr>, Vec<Expr>) = filters.iter().cloned().partition(|f| is_exact(f, columns));
    let pruning = match conjunction(pruning) {
        Some(expr) => {
            let schema = DFSchema::try_from(Arc::clone(&columns.presented))?;
            // A predicate that cannot prune is no error: every file stays.
            let expr = state.create_physical_expr(expr, &schema)?;
            PruningPredicateBuilder::new().with_file_schema(Arc::clone(&columns.presented)).build(expr)
        }
        None => None,
    };
    let mut ordinal = 0;
    let mut selected = Vec::with_capacity(index.chunks().len());
    for chunk in index.chunks() {
        let mut files = live(chunk, &mut ordinal);
        if let Some(only) = only {
            files.retain(|(_, ordinal)| only.contains_key(ordinal));
        }
        let all = files.len();
        if let Some(filter) = conjunction(exact.iter().cloned()) {
            retain_matching(state, columns, chunk, &mut files, filter)?;
        }
        let of_partitions = files.len();
        if let Some(predicate) = pruning.as_ref().filter(|_| !files.is_empty())
            && let Ok(may_match) = predicate.prune(&Bounds::new(columns, &chunk.rows))
        {
            files.retain(|(row, _)| may_match.get(*row).copied().unwrap_or(true));
        }
        considered.files += all;
        considered.by_partition += all - of_partitions;
        considered.by_statistics += of_partitions - files.len();
        selected.push(Selected { chunk, files });
    }
    Ok(selected)
}

/// The rows that the selected files have left; `None` where the log does not count all of them.
pub(super) fn count(selected: &[Selected<'_>]) -> Option<usize> {
    let mut total = 0_u64;
    for Selected { chunk, files } in selected {
        let (rows, deleted) = (chunk.rows_of_files(), chunk.deleted_rows());
        for (row, _) in files {
            let count = rows.is_valid(*row).then(|| u64::try_from(rows.value(*row)).ok())??;
            let gone = deleted.as_ref().filter(|d| d.is_valid(*row)).map_or(0, |d| u64::try_from(d.value(*row)).unwrap_or(0));
            total += count.saturating_sub(gone);
        }
    }
    usize::try_from(total).ok()
}

fn live(chunk: &Chunk, ordinal: &mut u32) -> Vec<(usize, u32)> {
    let alive = |row: &usize| chunk.live.as_ref().is_none_or(|live| live.value(*row));
    let number = |row| {
        let file = (row, *ordinal);
        *ordinal += 1;
        file
    };
    (0..chunk.rows.num_rows()).filter(alive).map(number).collect()
}

/// Keeps the files whose partition values (and ordinal) pass `filter`.
fn retain_matching(state: &dyn Session, columns: &Columns, chunk: &Chunk, files: &mut Vec<(usize, u32)>, filter: Expr) -> Result<()> {
    let values = constants(columns, chunk, files)?;
    let schema = DFSchema::try_from(values.schema())?;
    let outcome = state.create_physical_expr(filter, &schema)?.evaluate(&values)?.into_array(values.num_rows())?;
    let passes = outcome.as_boolean_opt().ok_or_else(|| internal_datafusion_err!("a filter is no boolean"))?;
    let mut row = 0..;
    files.retain(|_| row.next().is_some_and(|row| passes.is_valid(row) && passes.value(row)));
    Ok(())
}

/// The columns that are constant within a file, one row for each of `files`.
pub(super) fn constants(columns: &Columns, chunk: &Chunk, files: &[(usize, u32)]) -> Result<RecordBatch> {
    let fields = columns.scanned.table_partition_cols();
    let of_chunk = fields.iter().filter(|f| f.name() != FILE_ORDINAL);
    let arrays = of_chunk.clone().map(|f| partition_column(columns, chunk, f)).collect::<Result<Vec<_>>>()?;
    let all = batch(of_chunk.map(|f| f.as_ref().clone()).collect(), arrays, chunk.rows.num_rows())?;
    let chosen = filter_record_batch(&all, &mask(files, chunk.rows.num_rows()).into())?;
    let mut arrays = chosen.columns().to_vec();
    if fields.find(FILE_ORDINAL).is_some() {
        arrays.push(Arc::new(UInt32Array::from_iter_values(files.iter().map(|(_, ordinal)| *ordinal))));
    }
    batch(fields.iter().map(|f| f.as_ref().clone()).collect(), arrays, files.len())
}

fn batch(fields: Vec<Field>, arrays: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?)
}

fn partition_column(columns: &Columns, chunk: &Chunk, field: &Field) -> Result<ArrayRef> {
    let values = Bounds::new(columns, &chunk.rows)
        .partition(field.name())
        .ok_or_else(|| internal_datafusion_err!("the index lacks partition column {}", field.name()))?;
    match columns.partition_length(field.name()) {
        Some(n) => Ok(pad(&values, n)?),
        None => Ok(values),
    }
}

fn mask(files: &[(usize, u32)], rows: usize) -> BooleanBuffer {
    let mut mask = BooleanBufferBuilder::new(rows);
    mask.append_n(rows, false);
    files.iter().for_each(|(row, _)| mask.set_bit(*row, true));
    mask.finish()
}
