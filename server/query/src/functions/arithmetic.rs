//! Whole numbers that do not fit are errors.
//!
//! DataFusion's `+`, `-` and `*` of integers wrap around silently: `9223372036854775807 + 1` is a negative number. Spark, DuckDB and Trino
//! raise an error, and a wrong sum that nobody notices is the worst answer of all. So where both sides are integers the operator is planned as
//! a function that computes the same with checks; it shows itself as the operator.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Datum};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum;
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans operators of two integers.
#[derive(Debug)]
pub(super) struct IntegerArithmetic {
    checked: [Arc<ScalarUDF>; 3],
}

impl IntegerArithmetic {
    pub(super) fn new() -> Self {
        Self { checked: [Operator::Plus, Operator::Minus, Operator::Multiply].map(|op| Arc::new(ScalarUDF::from(Checked::new(op)))) }
    }
}

impl ExprPlanner for IntegerArithmetic {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let [plus, minus, times] = &self.checked;
        let function = match expr.op {
            BinaryOperator::Plus => plus,
            BinaryOperator::Minus => minus,
            BinaryOperator::Multiply => times,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        // A side whose type is not known here (a parameter) is left to DataFusion.
        let is_integer = |side: &Expr| side.get_type(schema).is_ok_and(|t| t.is_integer());
        if is_integer(&expr.left) && is_integer(&expr.right) {
            return Ok(PlannerResult::Planned(function.call(vec![expr.left, expr.right])));
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// One operator, checked.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: Operator,
    signature: Signature,
}

impl Checked {
    fn new(op: Operator) -> Self {
        Self { op, signature: Signature::user_defined(Volatility::Immutable) }
    }

    fn compute(&self) -> fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError> {
        match self.op {
            Operator::Plus => numeric::add,
            Operator::Minus => numeric::sub,
            _ => numeric::mul,
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &'static str {
        match self.op {
            Operator::Plus => "checked_plus",
            Operator::Minus => "checked_minus",
            _ => "checked_times",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else { return plan_err!("{} has two sides", self.op) };
        let (left, right) = BinaryTypeCoercer::new(left, &self.op, right).get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first() {
            Some(kind) => Ok(kind.clone()),
            None => plan_err!("{} has two sides", self.op),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else { return plan_err!("{} has two sides", self.op) };
        datum::apply(left, right, self.compute())
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return plan_err!("{} has two sides", self.op) };
        let side = |e: &Expr| if matches!(e, Expr::ScalarFunction(f) if is_checked(&f.func)) { format!("({e})") } else { e.to_string() };
        Ok(format!("{} {} {}", side(left), self.op, side(right)))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return plan_err!("{} has two sides", self.op) };
        Ok(format!("{} {} {}", left.schema_name(), self.op, right.schema_name()))
    }
}

fn is_checked(function: &ScalarUDF) -> bool {
    function.name().starts_with("checked_")
}
