//! What the index knows of each file's values, made safe to reason with.
//!
//! Statistics of the log are bounds, not always values: strings may be truncated, timestamps are cut to milliseconds, floats
//! say nothing of NaN (which sorts above all) and may have either zero for the other, CHAR values are taken before padding, and rows
//! that a deletion vector took are still counted where `tight_bounds` is false. [`Bounds`] widens what may be cut and withholds what
//! cannot be trusted; [`Bounds::exact`] says where a bound is a value that some live row has.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StructArray, UInt64Array};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use datafusion::common::Column;
use datafusion::common::ScalarValue;
use datafusion::common::pruning::PruningStatistics;

use super::columns::{Columns, char_length, is_variant, scanned_type};

/// Writers that cut a time before 1970 towards zero leave the least one so many microseconds too late. (The greatest one is raised when
/// the index is built.)
const CUT: i64 = 999;

/// The lower or the upper one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The least value.
    Min,
    /// The greatest.
    Max,
}

/// Bounds of the files of one chunk of the index.
pub(super) struct Bounds<'a> {
    columns: &'a Columns,
    chunk: &'a RecordBatch,
}

impl<'a> Bounds<'a> {
    pub(super) fn new(columns: &'a Columns, chunk: &'a RecordBatch) -> Self {
        Self { columns, chunk }
    }

    fn group(&self, name: &str) -> Option<&'a StructArray> {
        self.chunk.column_by_name(name)?.as_any().downcast_ref()
    }

    /// The typed values of a partition column.
    pub(super) fn partition(&self, column: &str) -> Option<ArrayRef> {
        let field = self.columns.scanned.table_partition_cols().find(column)?.1;
        as_type(self.group("partition")?.column_by_name(column)?, field.data_type())
    }

    /// Those that need no padding, and so may be compared as they are.
    fn constant(&self, column: &str) -> Option<ArrayRef> {
        self.partition(column).filter(|_| self.columns.partition_length(column).is_none())
    }

    /// Rows in each file before deletion vectors.
    pub(super) fn rows(&self) -> Option<&'a Int64Array> {
        self.chunk.column_by_name("rows")?.as_primitive_opt::<Int64Type>()
    }

    /// NULLs of a column in each file, as written.
    pub(super) fn nulls(&self, column: &str) -> Option<&'a Int64Array> {
        self.columns.stored(column)?;
        self.group("null_count")?.column_by_name(column)?.as_primitive_opt::<Int64Type>()
    }

    /// Bounds of a column that lies in files: no value of any file is beyond.
    pub(super) fn bound(&self, column: &str, end: End) -> Option<ArrayRef> {
        let stored = self.columns.stored(column)?;
        if is_variant(stored) || char_length(stored).is_some() || stored.data_type().is_nested() {
            return None;
        }
        let name = if end == End::Min { "min" } else { "max" };
        let values = as_type(self.group(name)?.column_by_name(column)?, &scanned_type(stored))?;
        Some(match (values.data_type(), end) {
            (DataType::Float32, End::Min) => {
                let lower = |v: f32| if v == 0.0 { -0.0 } else { v };
                Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(lower))
            }
            (DataType::Float64, End::Min) => {
                let lower = |v: f64| if v == 0.0 { -0.0 } else { v };
                Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(lower))
            }
            (DataType::Float32, End::Max) => {
                Arc::new(values.as_primitive::<Float32Type>().unary_opt::<_, Float32Type>(|v| v.is_nan().then_some(v)))
            }
            (DataType::Float64, End::Max) => {
                Arc::new(values.as_primitive::<Float64Type>().unary_opt::<_, Float64Type>(|v| v.is_nan().then_some(v)))
            }
            (DataType::Timestamp(TimeUnit::Microsecond, zone), End::Min) => {
                let lower = |v: i64| v.saturating_sub(CUT);
                let widened = values.as_primitive::<TimestampMicrosecondType>().unary::<_, TimestampMicrosecondType>(lower);
                Arc::new(widened.with_timezone_opt(zone.clone()))
            }
            _ => values,
        })
    }

    /// Whether a bound of this type, of a file without deletion vector whose bounds are tight, is a value that the file holds.
    pub(super) fn exact(data_type: &DataType) -> bool {
        data_type.is_integer() || matches!(data_type, DataType::Boolean | DataType::Date32 | DataType::Decimal128(_, _))
    }
}

/// The index keeps the types of the version it was built for; an older chunk may have narrower ones.
fn as_type(values: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    if values.data_type() == wanted {
        return Some(Arc::clone(values));
    }
    can_cast_types(values.data_type(), wanted).then(|| cast(values, wanted).ok()).flatten()
}

impl PruningStatistics for Bounds<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.constant(&column.name).or_else(|| self.bound(&column.name, End::Min))
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.constant(&column.name).or_else(|| self.bound(&column.name, End::Max))
    }

    fn num_containers(&self) -> usize {
        self.chunk.num_rows()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        if let Some(nulls) = self.nulls(&column.name) {
            return cast(nulls, &DataType::UInt64).ok();
        }
        let (values, rows) = (self.partition(&column.name)?, self.rows()?);
        let count = |row: usize| match (values.is_null(row), rows.is_valid(row)) {
            (false, _) => Some(0),
            (true, true) => u64::try_from(rows.value(row)).ok(),
            (true, false) => None,
        };
        Some(Arc::new((0..self.chunk.num_rows()).map(count).collect::<UInt64Array>()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        cast(self.rows()?, &DataType::UInt64).ok()
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
