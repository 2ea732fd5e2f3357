//! Filters of several conditions, each evaluated only where the ones before left rows.
//!
//! DataFusion evaluates `a AND b AND c` two by two: where `a AND b` leaves few rows it copies all columns of those, evaluates `c`, and
//! spreads the outcome out again, and does so anew for each further condition. Here rows are narrowed once and again: only the columns that
//! conditions read, and only when few enough are left. What a condition says of rows that are out already is never asked; like DataFusion's
//! AND, this makes no promise of which condition's error is told.
//!
//! Q6 of TPC-H, with five conditions: the filter takes half the time.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

/// Rows are narrowed when at most one in so many is left.
const FEW: usize = 4;

/// Puts [`Conjunction`]s in place of filters' predicates. Belongs last among a session's physical rules: others look into predicates.
#[derive(Debug)]
pub(crate) struct NarrowingFilters;

impl PhysicalOptimizerRule for NarrowingFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(Transformed::no(plan)) };
            let conditions: Vec<_> = split_conjunction(filter.predicate()).into_iter().cloned().collect();
            if conditions.len() < 2 || conditions.iter().any(datafusion::physical_expr_common::physical_expr::is_volatile) {
                return Ok(Transformed::no(plan));
            }
            let conjunction = Arc::new(Conjunction::new(conditions)?);
            Ok(Transformed::yes(Arc::new(FilterExecBuilder::from(filter).with_predicate(conjunction).build()?)))
        })
        .data()
    }

    fn name(&self) -> &str {
        "narrowing_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether all conditions are true; never NULL, since a filter takes NULL for false.
#[derive(Debug, Eq)]
struct Conjunction {
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Columns that conditions read, ascending.
    columns: Vec<usize>,
    /// The conditions over those columns alone.
    narrow: Vec<Arc<dyn PhysicalExpr>>,
}

impl Conjunction {
    fn new(conditions: Vec<Arc<dyn PhysicalExpr>>) -> Result<Self> {
        let read = conditions.iter().flat_map(collect_columns).map(|c| c.index());
        let columns: Vec<usize> = read.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let places: BTreeMap<usize, usize> = columns.iter().enumerate().map(|(place, column)| (*column, place)).collect();
        let moved = |expr: Arc<dyn PhysicalExpr>| match expr.downcast_ref::<Column>() {
            Some(column) => match places.get(&column.index()) {
                Some(place) => Ok(Transformed::yes(Arc::new(Column::new(column.name(), *place)) as Arc<dyn PhysicalExpr>)),
                None => internal_err!("column {column} was not collected"),
            },
            None => Ok(Transformed::no(expr)),
        };
        let narrow = conditions.iter().map(|c| Arc::clone(c).transform_down(moved).data()).collect::<Result<_>>()?;
        Ok(Self { conditions, columns, narrow })
    }
}

impl PartialEq for Conjunction {
    fn eq(&self, other: &Self) -> bool {
        self.conditions == other.conditions
    }
}

impl Hash for Conjunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.conditions.hash(state);
    }
}

impl fmt::Display for Conjunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, condition) in self.conditions.iter().enumerate() {
            let and = if number == 0 { "" } else { " AND " };
            write!(f, "{and}{condition}")?;
        }
        Ok(())
    }
}

impl PhysicalExpr for Conjunction {
    fn return_field(&self, _: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new("conjunction", DataType::Boolean, false)))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let mut narrowed = batch.project(&self.columns)?;
        // What is left of all rows, then of what was left when rows were last narrowed, and so on.
        let mut levels: Vec<BooleanBuffer> = Vec::new();
        let mut left: Option<BooleanBuffer> = None;
        for (number, condition) in self.narrow.iter().enumerate() {
            let passes = truth(condition.evaluate(&narrowed)?, narrowed.num_rows())?;
            let both = match left.take() {
                Some(before) => &before & &passes,
                None => passes,
            };
            let count = both.count_set_bits();
            if count == 0 {
                return Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(BooleanBuffer::new_unset(rows), None))));
            }
            if number + 1 < self.narrow.len() && count * FEW <= narrowed.num_rows() {
                narrowed = filter_record_batch(&narrowed, &BooleanArray::new(both.clone(), None))?;
                levels.push(both);
            } else {
                left = Some(both);
            }
        }
        let last = left.unwrap_or_else(|| BooleanBuffer::new_set(narrowed.num_rows()));
        let all = levels.into_iter().rev().fold(last, |inner, outer| spread(&inner, &outer));
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(all, None))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.conditions.iter().collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Self::new(children)?))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, condition) in self.conditions.iter().enumerate() {
            if number > 0 {
                write!(f, " AND ")?;
            }
            condition.fmt_sql(f)?;
        }
        Ok(())
    }
}

/// Where a condition is true.
fn truth(value: ColumnarValue, rows: usize) -> Result<BooleanBuffer> {
    let array = value.into_array(rows)?;
    let Some(booleans) = array.as_boolean_opt() else {
        return internal_err!("a condition is {} and no boolean", array.data_type());
    };
    Ok(if booleans.null_count() > 0 { prep_null_mask_filter(booleans).values().clone() } else { booleans.values().clone() })
}

/// `inner` says which of the rows that `outer` has are left: which of all rows that is.
fn spread(inner: &BooleanBuffer, outer: &BooleanBuffer) -> BooleanBuffer {
    let mut all = BooleanBufferBuilder::new(outer.len());
    all.append_n(outer.len(), false);
    for (place, row) in outer.set_indices().enumerate() {
        if inner.value(place) {
            all.set_bit(row, true);
        }
    }
    all.finish()
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array};
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, lit};

    use super::*;

    /// Conditions `column op value` over three columns of 0..n, of which the middle one is not read where no condition names it.
    fn check(rows: i32, conditions: &[(&str, Operator, Option<i32>)], expect: impl Fn(i32) -> bool) {
        let column = |of: fn(i32) -> Option<i32>| Arc::new((0..rows).map(of).collect::<Int32Array>()) as ArrayRef;
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("a", column(Some), true),
            ("b", column(|i| (i % 3 != 0).then_some(i % 7)), true),
            ("c", column(|i| Some(i % 10)), true),
        ])
        .unwrap();
        let schema = batch.schema();
        let condition = |(name, op, value): &(&str, Operator, Option<i32>)| {
            let column = Arc::new(Column::new(name, schema.index_of(name).unwrap()));
            binary(column, *op, lit(ScalarValue::Int32(*value)), &schema).unwrap()
        };
        let conjunction = Conjunction::new(conditions.iter().map(condition).collect()).unwrap();
        let found = conjunction.evaluate(&batch).unwrap().into_array(batch.num_rows()).unwrap();
        assert_eq!(found.null_count(), 0);
        let expected: Vec<bool> = (0..rows).map(expect).collect();
        assert_eq!(found.as_boolean(), &BooleanArray::from(expected), "{conjunction}");
    }

    #[test]
    fn all_conditions_must_be_true() {
        use Operator::{Eq, GtEq, Lt};
        check(0, &[("a", Lt, Some(5)), ("c", Lt, Some(5))], |_| true);
        check(100, &[("a", GtEq, Some(10)), ("c", Lt, Some(9))], |i| i >= 10 && i % 10 < 9);
        check(100, &[("a", Lt, Some(20)), ("c", Lt, Some(5)), ("a", GtEq, Some(11))], |i| (11..20).contains(&i) && i % 10 < 5);
        check(1000, &[("a", Lt, Some(200)), ("c", Eq, Some(3)), ("b", Eq, Some(1)), ("a", GtEq, Some(8))], |i| {
            (8..200).contains(&i) && i % 10 == 3 && i % 3 != 0 && i % 7 == 1
        });
        check(50, &[("b", Lt, Some(9)), ("c", Lt, Some(9))], |i| i % 3 != 0 && i % 10 < 9);
        check(50, &[("a", Lt, None), ("c", Lt, Some(9))], |_| false);
        check(64, &[("a", Lt, Some(1)), ("c", Lt, Some(9)), ("c", Lt, Some(9))], |i| i == 0);
    }
}
