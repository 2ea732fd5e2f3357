//! A scalar function from two plain functions: what type it gives, what it computes.

use std::hash::{Hash, Hasher};

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility};

use super::instant::Zone;

/// Rewrites a call whose arguments make it simpler; `None` leaves it.
pub(super) type Simplify = fn(&[Expr], &SimplifyContext) -> Result<Option<Expr>>;

/// One function.
#[derive(Debug)]
pub(super) struct Scalar {
    name: &'static str,
    aliases: Vec<String>,
    signature: Signature,
    returns: fn(&[DataType]) -> Result<DataType>,
    body: fn(&Call) -> Result<ArrayRef>,
    simplify: Option<Simplify>,
}

/// A call: arrays of one length, and the session's zone.
pub(super) struct Call {
    pub(super) arrays: Vec<ArrayRef>,
    pub(super) zone: Zone,
}

impl Scalar {
    /// A function of `arities` numbers of arguments of any type. Its result may depend on the session's zone, so it is stable.
    pub(super) fn new(
        name: &'static str,
        arities: &[usize],
        returns: fn(&[DataType]) -> Result<DataType>,
        body: fn(&Call) -> Result<ArrayRef>,
    ) -> Self {
        let signature = Signature::one_of(arities.iter().map(|n| TypeSignature::Any(*n)).collect(), Volatility::Stable);
        Self { name, aliases: Vec::new(), signature, returns, body, simplify: None }
    }

    pub(super) fn aliases(mut self, aliases: &[&str]) -> Self {
        self.aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        self
    }

    pub(super) fn simplify(mut self, simplify: Simplify) -> Self {
        self.simplify = Some(simplify);
        self
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        (self.returns)(arguments)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let zone = session_zone(args.config_options.execution.time_zone.as_deref())?;
        let all_scalar = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if all_scalar { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let result = (self.body)(&Call { arrays, zone })?;
        if all_scalar { Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)) } else { Ok(ColumnarValue::Array(result)) }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if let Some(simplify) = self.simplify
            && let Some(expr) = simplify(&args, info)?
        {
            return Ok(ExprSimplifyResult::Simplified(expr));
        }
        Ok(ExprSimplifyResult::Original(args))
    }
}

/// The session's zone.
pub(super) fn session_zone(name: Option<&str>) -> Result<Zone> {
    match name {
        None => Ok(Zone::UTC),
        Some(name) => {
            Zone::parse(name).ok_or_else(|| DataFusionError::Configuration(format!("the session's time zone '{name}' is not known")))
        }
    }
}
