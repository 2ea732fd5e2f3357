//! Where two types meet, the meaning that Spark and the standard give it; before DataFusion's own coercion, which differs.
//!
//! * A DECIMAL beside a DOUBLE or FLOAT: both count as DOUBLE. Every literal such as `0.5` is a DECIMAL; DataFusion would make the double one of
//!   fifteen decimals, so that 1e-20 equals 0.0, and 3e15 or NaN is an error.
//! * Text beside an instant: an instant, read in the session's time zone. DataFusion would read it in UTC.
//! * `EXTRACT`, `date_trunc` and `to_char` of an instant: those of the session's wall clock.
//!
//! The first two hold in comparisons, arithmetic, BETWEEN, IN lists, CASE, COALESCE and its like, and set operations.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, ScalarUDF, Union, cast};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::instant::Zone;
use crate::scan::compares;

/// Functions whose arguments have one type.
const ALIKE: [&str; 9] = ["coalesce", "greatest", "least", "nullif", "nvl", "nvl2", "ifnull", "make_array", "array"];

/// DataFusion's functions over the wall clock that an instant's own zone shows.
const LOCAL: [&str; 3] = ["date_part", "date_trunc", "to_char"];

/// See the module.
#[derive(Debug)]
pub(crate) struct MeetingTypes {
    /// Text to instant.
    timestamp: Arc<ScalarUDF>,
}

impl MeetingTypes {
    pub(crate) fn new(timestamp: Arc<ScalarUDF>) -> Self {
        Self { timestamp }
    }
}

impl AnalyzerRule for MeetingTypes {
    fn name(&self) -> &'static str {
        "meeting_types"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let zone = config.execution.time_zone.as_deref().filter(|zone| !Zone::parse(zone).is_none_or(Zone::is_utc));
        let met = plan.transform_up_with_subqueries(|plan| {
            let plan = match plan {
                LogicalPlan::Union(union) => alike_inputs(union)?,
                other => other,
            };
            let mut schema = merge_schema(&plan.inputs());
            if let LogicalPlan::TableScan(scan) = &plan {
                schema = scan.projected_schema.as_ref().clone();
            }
            let names = NamePreserver::new(&plan);
            let plan = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                Ok(expr.transform_up(|expr| self.meet(expr, &schema, zone))?.update_data(|expr| name.restore(expr)))
            })?;
            // A CASE that is a double now changes what is above it.
            plan.map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(met.data)
    }
}

impl MeetingTypes {
    fn meet(&self, mut expr: Expr, schema: &DFSchema, zone: Option<&str>) -> Result<Transformed<Expr>> {
        let changed = match &mut expr {
            Expr::BinaryExpr(binary) if compares(binary.op) || binary.op.is_numerical_operators() => {
                let compared = compares(binary.op);
                self.alike(&mut [&mut binary.left, &mut binary.right], schema, compared)?
            }
            Expr::Between(between) => self.alike(&mut [&mut between.expr, &mut between.low, &mut between.high], schema, true)?,
            Expr::InList(list) => {
                let mut all: Vec<&mut Expr> = std::iter::once(list.expr.as_mut()).chain(&mut list.list).collect();
                self.alike(&mut all, schema, true)?
            }
            Expr::Case(case) => {
                let (whens, thens): (Vec<_>, Vec<_>) = case.when_then_expr.iter_mut().map(|(w, t)| (w.as_mut(), t.as_mut())).unzip();
                let mut results: Vec<&mut Expr> = thens.into_iter().chain(case.else_expr.as_deref_mut()).collect();
                let mut changed = self.alike(&mut results, schema, false)?;
                if let Some(base) = case.expr.as_deref_mut() {
                    let mut compared: Vec<&mut Expr> = std::iter::once(base).chain(whens).collect();
                    changed |= self.alike(&mut compared, schema, true)?;
                }
                changed
            }
            Expr::ScalarFunction(call) if ALIKE.contains(&call.func.name()) => {
                let mut all: Vec<&mut Expr> = call.args.iter_mut().collect();
                self.alike(&mut all, schema, false)?
            }
            Expr::ScalarFunction(call) if LOCAL.contains(&call.func.name()) => local(&mut call.args, schema, zone)?,
            _ => false,
        };
        Ok(Transformed::new_transformed(expr, changed))
    }

    /// Makes those alike that meet; whether something changed.
    fn alike(&self, sides: &mut [&mut Expr], schema: &DFSchema, compared: bool) -> Result<bool> {
        // A side whose type cannot be told (a parameter) is left to DataFusion.
        let types: Vec<DataType> = sides.iter().map(|side| side.get_type(schema).unwrap_or(DataType::Null)).collect();
        let doubles = types.iter().any(is_float) && types.iter().any(is_decimal);
        let instants = compared && types.iter().any(is_instant) && types.iter().any(DataType::is_string);
        for (side, data_type) in sides.iter_mut().zip(&types) {
            if doubles && is_decimal(data_type) {
                **side = cast(std::mem::take(*side), DataType::Float64);
            } else if instants && data_type.is_string() {
                **side = self.timestamp.call(vec![std::mem::take(*side)]);
            }
        }
        Ok(doubles || instants)
    }
}

/// Gives instants the session's zone, where it is not UTC.
fn local(args: &mut [Expr], schema: &DFSchema, zone: Option<&str>) -> Result<bool> {
    let Some(zone) = zone else { return Ok(false) };
    let mut changed = false;
    for arg in args {
        if let Ok(DataType::Timestamp(unit, Some(given))) = arg.get_type(schema)
            && given.as_ref() != zone
        {
            *arg = cast(std::mem::take(arg), DataType::Timestamp(unit, Some(zone.into())));
            changed = true;
        }
    }
    Ok(changed)
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..) | DataType::Decimal32(..) | DataType::Decimal64(..))
}

fn is_instant(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(_)))
}

/// The inputs of a set operation, with the decimals of a column that elsewhere is a double made doubles.
fn alike_inputs(union: Union) -> Result<LogicalPlan> {
    let columns = union.schema.fields().len();
    let of = |input: &LogicalPlan, at: usize| input.schema().field(at).data_type().clone();
    let is_double: Vec<bool> = (0..columns)
        .map(|at| union.inputs.iter().any(|i| is_float(&of(i, at))) && union.inputs.iter().any(|i| is_decimal(&of(i, at))))
        .collect();
    if !is_double.contains(&true) {
        return Ok(LogicalPlan::Union(union));
    }
    let alike = |input: Arc<LogicalPlan>| {
        let projected = input.schema().iter().enumerate().map(|(at, (qualifier, field))| {
            let column = Expr::Column(Column::from((qualifier, field)));
            let needs = is_double[at] && is_decimal(field.data_type());
            if needs { cast(column, DataType::Float64).alias_qualified(qualifier.cloned(), field.name()) } else { column }
        });
        let projected: Vec<Expr> = projected.collect();
        LogicalPlanBuilder::from(Arc::unwrap_or_clone(input)).project(projected)?.build().map(Arc::new)
    };
    let inputs = union.inputs.into_iter().map(alike).collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Union(Union::try_new(inputs)?))
}
