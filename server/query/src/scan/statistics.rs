//! What the optimiser is told of each file.
//!
//! `Exact` is a promise: COUNT, MIN and MAX are answered from it, columns whose exact bounds agree are replaced by the constant. So rows
//! are exact where the log counts them (less the deletion vector), bounds only where [`Bounds::exact`] holds and no row was deleted.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::record_batch::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, Result, ScalarValue, Statistics};

use super::bounds::{Bounds, End};
use super::columns::Columns;

/// Statistics of the files of one chunk, made file by file from columns fetched once.
pub(super) struct ChunkStatistics {
    columns: Vec<Option<StoredColumn>>,
    /// Columns that are constant within a file, and those that the reader makes.
    others: usize,
    made_by_reader: usize,
}

/// What the index has of one column that lies in files.
struct StoredColumn {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    nulls: Option<arrow::array::Int64Array>,
}

/// What else there is to know of a file.
pub(super) struct FileFacts<'a> {
    /// Row in the chunk.
    pub row: usize,
    /// Bytes.
    pub size: u64,
    /// Rows in the file.
    pub rows: Option<u64>,
    /// Deleted rows.
    pub deleted: u64,
    /// Bounds are tight.
    pub tight: bool,
    /// Values of the constant columns.
    pub constants: &'a [ScalarValue],
}

impl ChunkStatistics {
    /// Of the columns that are `wanted` (by scanned index); for the others nothing is told.
    pub(super) fn new(columns: &Columns, chunk: &RecordBatch, wanted: &[bool]) -> Self {
        let bounds = Bounds::new(columns, chunk);
        let fetch = |(at, field): (usize, &arrow::datatypes::FieldRef)| {
            wanted.get(at).copied().unwrap_or(false).then(|| StoredColumn {
                min: bounds.bound(field.name(), End::Min),
                max: bounds.bound(field.name(), End::Max),
                nulls: bounds.nulls(field.name()).cloned(),
            })
        };
        let made_by_reader = columns.scanned.virtual_columns().len();
        let others = columns.scanned.table_partition_cols().len() + made_by_reader;
        Self { columns: columns.stored.iter().enumerate().map(fetch).collect(), others, made_by_reader }
    }

    /// Of one file, over the scanned columns.
    pub(super) fn file(&self, file: &FileFacts<'_>) -> Result<Statistics> {
        let left = file.rows.map(|rows| count(rows.saturating_sub(file.deleted)));
        let mut column_statistics = Vec::with_capacity(self.columns.len() + self.others);
        for column in &self.columns {
            column_statistics.push(match column {
                Some(column) => column.statistics(file, left)?,
                None => ColumnStatistics::new_unknown(),
            });
        }
        column_statistics.extend(file.constants.iter().map(|value| constant(value, left)));
        column_statistics.extend((0..self.made_by_reader).map(|_| ColumnStatistics::new_unknown()));
        Ok(Statistics {
            num_rows: left.map_or(Precision::Absent, Precision::Exact),
            total_byte_size: Precision::Inexact(count(file.size)),
            column_statistics,
        })
    }
}

impl StoredColumn {
    fn statistics(&self, file: &FileFacts<'_>, left: Option<usize>) -> Result<ColumnStatistics> {
        let whole = file.tight && file.deleted == 0;
        let bound = |values: &Option<ArrayRef>| -> Result<Precision<ScalarValue>> {
            let Some(values) = values.as_ref().filter(|v| v.is_valid(file.row)) else {
                return Ok(Precision::Absent);
            };
            let value = ScalarValue::try_from_array(values, file.row)?;
            Ok(if whole && Bounds::exact(values.data_type()) { Precision::Exact(value) } else { Precision::Inexact(value) })
        };
        let nulls = self.nulls.as_ref().filter(|n| n.is_valid(file.row)).and_then(|n| u64::try_from(n.value(file.row)).ok());
        let null_count = match (nulls, file.rows, left) {
            (None, _, _) => Precision::Absent,
            (Some(0), _, _) => Precision::Exact(0),
            (Some(nulls), Some(rows), Some(left)) if nulls == rows => Precision::Exact(left),
            (Some(nulls), _, _) if whole => Precision::Exact(count(nulls)),
            (Some(nulls), _, _) => Precision::Inexact(count(nulls)),
        };
        Ok(ColumnStatistics { null_count, min_value: bound(&self.min)?, max_value: bound(&self.max)?, ..ColumnStatistics::new_unknown() })
    }
}

/// A column that has one value in the whole file.
fn constant(value: &ScalarValue, left: Option<usize>) -> ColumnStatistics {
    if value.is_null() {
        return ColumnStatistics { null_count: left.map_or(Precision::Absent, Precision::Exact), ..ColumnStatistics::new_unknown() };
    }
    let exact = || Precision::Exact(value.clone());
    // A file with no row left has no value either.
    let (min_value, max_value) = if left == Some(0) { (Precision::Absent, Precision::Absent) } else { (exact(), exact()) };
    ColumnStatistics { null_count: Precision::Exact(0), min_value, max_value, ..ColumnStatistics::new_unknown() }
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// What is known of several together.
pub(super) fn merge<'a>(parts: impl Iterator<Item = &'a Statistics>, columns: &Columns) -> Result<Statistics> {
    let schema = columns.scanned.table_schema();
    Statistics::try_merge_iter(parts, schema)
}

/// Whether a file's bounds are values that its rows have, deletion vectors aside; so where the log says nothing else.
pub(super) fn tight(chunk: &RecordBatch, row: usize) -> bool {
    let column = chunk.column_by_name("tight_bounds").and_then(|c| c.as_boolean_opt());
    column.is_none_or(|c| c.is_null(row) || c.value(row))
}
