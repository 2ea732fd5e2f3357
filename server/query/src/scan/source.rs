//! DataFusion's Parquet source, which tells what was considered, and decides for each file when it is opened whether to decode late.
//!
//! *Late* means: columns of the predicate are decoded first, the others only where rows pass. That costs more than it saves unless few rows
//! pass: rows that pass are scattered, so pages are decompressed all the same, and what the predicate costs comes on top (TPC-H at scale 1:
//! always late takes 10% more CPU than never). How many rows pass is not known when a query is planned. But where a join has built a
//! short list of keys before its other side is read, the list's length against the range of the file's values tells it when a file is
//! opened: with a list of one in [`SELECTIVE`] or less a file is decoded late (Q17 takes less than half, Q20 a fifth less).
//!
//! Invariant: the filters of a query that are no join's run above the scan as well, so that a file may be read either way.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpener, FileScanConfig, FileSource, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{DisplayFormatType, SortOrderPushdownResult};
use datafusion_datasource::morsel::{MorselPlanner, Morselizer};
use object_store::ObjectStore;

use super::considered::Considered;

/// A file is decoded late if a join wants one in so many of its values, or fewer.
const SELECTIVE: i128 = 100;

/// A Parquet source that may decode late.
#[derive(Clone)]
pub(super) struct PinnedSource {
    parquet: ParquetSource,
    may_be_late: bool,
    considered: Arc<Considered>,
}

impl PinnedSource {
    /// Over `parquet`. Tables with variants must not be late: a filter on a variant's text cannot run while its struct is decoded, and
    /// would be dropped there silently.
    pub(super) fn new(parquet: ParquetSource, may_be_late: bool, considered: Considered) -> Self {
        Self { parquet, may_be_late, considered: Arc::new(considered) }
    }

    /// The same over what a change of the Parquet source gave.
    fn around(&self, changed: Arc<dyn FileSource>) -> Arc<dyn FileSource> {
        match changed.downcast_ref::<ParquetSource>() {
            Some(parquet) => Arc::new(Self { parquet: parquet.clone(), ..self.clone() }),
            None => changed,
        }
    }

    /// The joins' filters in the predicate.
    fn dynamic_filters(&self) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let mut found = Vec::new();
        if let Some(predicate) = self.parquet.filter() {
            predicate.apply(|expr| {
                if expr.downcast_ref::<DynamicFilterPhysicalExpr>().is_some() {
                    found.push(Arc::clone(expr));
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(found)
    }
}

impl FileSource for PinnedSource {
    fn create_file_opener(&self, store: Arc<dyn ObjectStore>, config: &FileScanConfig, partition: usize) -> Result<Arc<dyn FileOpener>> {
        self.parquet.create_file_opener(store, config, partition)
    }

    fn create_morselizer(&self, store: Arc<dyn ObjectStore>, config: &FileScanConfig, partition: usize) -> Result<Box<dyn Morselizer>> {
        let filters = if self.may_be_late { self.dynamic_filters()? } else { Vec::new() };
        let plain = self.parquet.create_morselizer(Arc::clone(&store), config, partition)?;
        if filters.is_empty() {
            return Ok(plain);
        }
        let late = self.parquet.clone().with_pushdown_filters(true).create_morselizer(store, config, partition)?;
        Ok(Box::new(PinnedMorselizer { plain, late, filters }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.parquet.table_schema()
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        self.around(self.parquet.with_batch_size(batch_size))
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        self.parquet.filter()
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.parquet.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.parquet.metrics()
    }

    fn file_type(&self) -> &str {
        self.parquet.file_type()
    }

    fn fmt_extra(&self, t: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match t {
            DisplayFormatType::TreeRender => writeln!(f, "{}", self.considered)?,
            DisplayFormatType::Default | DisplayFormatType::Verbose => write!(f, ", {}", self.considered)?,
        }
        self.parquet.fmt_extra(t, f)
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn FileSource>>> {
        let schema = self.table_schema().table_schema();
        let knows_nan: Vec<bool> = filters.iter().map(|filter| is_false_for_nan(filter, schema)).collect();
        let of_use = filters.into_iter().zip(&knows_nan).filter(|(_, of_use)| **of_use).map(|(filter, _)| filter).collect();
        let pushed = self.parquet.try_pushdown_filters(of_use, config)?;
        let mut told = pushed.filters.into_iter();
        let filters = knows_nan.iter().map(|of_use| if *of_use { told.next() } else { None }.unwrap_or(PushedDown::No)).collect();
        let updated_node = pushed.updated_node.map(|node| self.around(node));
        Ok(FilterPushdownPropagation { filters, updated_node })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
        equivalences: &EquivalenceProperties,
    ) -> Result<SortOrderPushdownResult<Arc<dyn FileSource>>> {
        Ok(match self.parquet.try_pushdown_sort(order, equivalences)? {
            SortOrderPushdownResult::Exact { inner } => SortOrderPushdownResult::Exact { inner: self.around(inner) },
            SortOrderPushdownResult::Inexact { inner } => SortOrderPushdownResult::Inexact { inner: self.around(inner) },
            SortOrderPushdownResult::Unsupported => SortOrderPushdownResult::Unsupported,
        })
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        self.parquet.reorder_files(files)
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        Ok(self.parquet.try_pushdown_projection(projection)?.map(|source| self.around(source)))
    }

    fn apply_expressions(&self, f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        self.parquet.apply_expressions(f)
    }
}

/// Whether a filter surely lets no NaN through. Statistics in Parquet files leave NaN out, which is greater than all: `x > 5` would rule out
/// a row group of 1 and NaN. The index's own bounds know that ([`super::bounds`]).
fn is_false_for_nan(filter: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let may_hold_nan = |column: &Column| schema.field_with_name(column.name()).map_or(true, |field| holds_float(field.data_type()));
    if !collect_columns(filter).iter().any(may_hold_nan) {
        return true;
    }
    let number = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Literal>().is_some_and(|literal| !is_nan(literal.value()));
    let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().is_some();
    filter.downcast_ref::<BinaryExpr>().is_some_and(|compared| match compared.op() {
        Operator::Lt | Operator::LtEq => column(compared.left()) && number(compared.right()),
        Operator::Gt | Operator::GtEq => number(compared.left()) && column(compared.right()),
        Operator::Eq => (column(compared.left()) && number(compared.right())) || (number(compared.left()) && column(compared.right())),
        _ => false,
    })
}

fn holds_float(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|f| holds_float(f.data_type())),
        DataType::List(inner) | DataType::Map(inner, _) => holds_float(inner.data_type()),
        other => other.is_floating(),
    }
}

fn is_nan(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::Float64(v) => v.is_some_and(f64::is_nan),
        ScalarValue::Float32(v) => v.is_some_and(f32::is_nan),
        _ => false,
    }
}

/// Opens each file one way or the other.
#[derive(Debug)]
struct PinnedMorselizer {
    plain: Box<dyn Morselizer>,
    late: Box<dyn Morselizer>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
}

impl Morselizer for PinnedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        let mut selective = false;
        for filter in self.filters.iter().filter_map(|f| f.downcast_ref::<DynamicFilterPhysicalExpr>()) {
            selective |= is_selective(&filter.current()?, &file)?;
        }
        if selective { self.late.plan_file(file) } else { self.plain.plan_file(file) }
    }
}

/// Whether a join's filter, as it is by now, lets few of the file's rows pass.
fn is_selective(filter: &Arc<dyn PhysicalExpr>, file: &PartitionedFile) -> Result<bool> {
    let mut selective = false;
    filter.apply(|expr| {
        if let Some(list) = expr.downcast_ref::<InListExpr>().filter(|list| !list.negated())
            && let Some(column) = list.expr().downcast_ref::<Column>()
            && let Some(distinct) = values_between(file, column.index())
        {
            selective |= has_at_most(list, distinct / SELECTIVE);
        }
        Ok(if selective { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(selective)
}

/// Whether a list names so many values at most: a join's list has one for each row of its other side, so one value may be there often.
fn has_at_most(list: &InListExpr, most: i128) -> bool {
    let Ok(most) = usize::try_from(most) else { return most > 0 };
    if list.len() <= most {
        return true;
    }
    let mut values = HashSet::new();
    for value in list.list().iter().filter_map(|v| v.downcast_ref::<Literal>()) {
        values.insert(whole(value.value()));
        if values.len() > most {
            return false;
        }
    }
    true
}

/// How many whole numbers (days) there are from the least to the greatest value of a file's column.
fn values_between(file: &PartitionedFile, column: usize) -> Option<i128> {
    let known = file.statistics.as_ref()?.column_statistics.get(column)?;
    Some(whole(known.max_value.get_value()?)? - whole(known.min_value.get_value()?)? + 1)
}

fn whole(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(v) => v.map(i128::from),
        ScalarValue::Int16(v) => v.map(i128::from),
        ScalarValue::Int32(v) | ScalarValue::Date32(v) => v.map(i128::from),
        ScalarValue::Int64(v) => v.map(i128::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::stats::Precision;
    use datafusion::common::{ColumnStatistics, Statistics};
    use datafusion::physical_expr::expressions::lit;

    use super::*;

    #[test]
    fn a_short_list_over_a_wide_range_is_selective() {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let mut file = PartitionedFile::new("f", 1);
        let bound = |v: i64| Precision::Inexact(ScalarValue::Int64(Some(v)));
        let known = ColumnStatistics { min_value: bound(-5), max_value: bound(994), ..ColumnStatistics::new_unknown() };
        file.statistics = Some(Arc::new(Statistics { column_statistics: vec![known], ..Statistics::new_unknown(&schema) }));
        let list = |values: Vec<i64>, negated| {
            let values: ArrayRef = Arc::new(Int64Array::from(values));
            let list = InListExpr::try_new_from_array(Arc::new(Column::new("k", 0)), values, negated, &schema).unwrap();
            Arc::new(list) as Arc<dyn PhysicalExpr>
        };
        let check = |filter: Arc<dyn PhysicalExpr>, expect: bool| assert_eq!(is_selective(&filter, &file).unwrap(), expect, "{filter}");
        check(list((0..10).collect(), false), true);
        check(list((0..11).collect(), false), false);
        check(list((0..500).map(|i| i % 10).collect(), false), true);
        check(list((0..500).map(|i| i % 11).collect(), false), false);
        check(list(vec![1], true), false);
        check(lit(true), false);
        file.statistics = None;
        assert!(!is_selective(&list(vec![1], false), &file).unwrap());
    }
}
