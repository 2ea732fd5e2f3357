//! Parameters: their types while a statement is only described, their values when it runs.
//!
//! A driver asks for a field per `?` before it has bound anything, so types come from where the parameter stands: the column it
//! is compared with, inserted into or assigned to; for a selector, a version or a moment; text where nothing is known.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use crate::error::{Error, Result};
use crate::statement::{Kind, Selector, Statement};

/// Types of parameters, by number from 1.
#[derive(Debug, Default)]
pub struct ParameterTypes {
    types: HashMap<usize, DataType>,
}

impl ParameterTypes {
    /// What the selectors of a statement tell.
    #[must_use]
    pub fn of_selectors(statement: &Statement) -> Self {
        let mut found = Self::default();
        for table in &statement.tables {
            table.selector.iter().for_each(|selector| found.selector(selector));
        }
        if let Kind::Restore { to, .. } = &statement.kind {
            found.selector(to);
        }
        found
    }

    fn selector(&mut self, selector: &Selector) {
        match selector {
            Selector::Version(expr) => self.note(expr, &DataType::Int64),
            Selector::Timestamp(expr) => self.note(expr, &moment()),
            Selector::CompactTimestamp(_) | Selector::Ref(_) => {}
        }
    }

    /// If `expr` is a bare parameter, it has that type (the first note wins).
    pub fn note(&mut self, expr: &ast::Expr, data_type: &DataType) {
        if let Some(number) = number(expr) {
            self.types.entry(number).or_insert_with(|| data_type.clone());
        }
    }

    /// What a plan tells.
    ///
    /// # Errors
    /// A parameter used with two types.
    pub fn of_plan(&mut self, plan: &LogicalPlan) -> Result<()> {
        for (name, data_type) in plan.get_parameter_types()? {
            if let (Some(number), Some(data_type)) = (name.strip_prefix('$').and_then(|n| n.parse().ok()), data_type) {
                self.types.entry(number).or_insert(data_type);
            }
        }
        Ok(())
    }

    /// One nullable field for each of `count` parameters, `$1` …; Utf8 where nothing is known.
    #[must_use]
    pub fn schema(&self, count: usize) -> SchemaRef {
        let field = |n: usize| Field::new(format!("${n}"), self.types.get(&n).cloned().unwrap_or(DataType::Utf8), true);
        let planned = Schema::new((1..=count).map(field).collect::<Vec<_>>());
        super::normalise::schema(&planned, super::normalise::Timestamps::Zoned)
    }
}

fn moment() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The number of a bare parameter.
#[must_use]
pub fn number(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(name) => name.strip_prefix('$')?.parse().ok(),
            _ => None,
        },
        ast::Expr::Nested(inner) => number(inner),
        _ => None,
    }
}

/// The values of one row of parameters, by position.
///
/// # Errors
/// Too few or too many, or not exactly one row.
pub fn values(batch: Option<&RecordBatch>, count: usize) -> Result<Vec<ScalarValue>> {
    let given = batch.map_or(0, RecordBatch::num_columns);
    if given != count {
        let s = if count == 1 { "" } else { "s" };
        let message = format!("the statement has {count} parameter{s}, and {given} values came with it: bind one value for each");
        return Err(Error::Invalid { message, location: None });
    }
    let Some(batch) = batch.filter(|_| count > 0) else { return Ok(vec![]) };
    if batch.num_rows() != 1 {
        let message = format!("{} rows of parameters came where one was expected", batch.num_rows());
        return Err(Error::Invalid { message, location: None });
    }
    all_values(batch)
}

/// The values of all rows of parameters, one row after the other.
///
/// # Errors
/// An encoding that cannot be unpacked.
pub fn all_values(batch: &RecordBatch) -> Result<Vec<ScalarValue>> {
    let columns = batch.columns().iter().map(unpacked).collect::<Result<Vec<_>>>()?;
    let cells = (0..batch.num_rows()).flat_map(|row| columns.iter().map(move |column| (column, row)));
    cells.map(|(column, row)| Ok(ScalarValue::try_from_array(column.as_ref(), row)?)).collect()
}

/// Parameters come in whatever encoding the driver likes; literals should be plain.
fn unpacked(column: &Arc<dyn Array>) -> Result<Arc<dyn Array>> {
    let schema = Schema::new(vec![Field::new("p", column.data_type().clone(), true)]);
    let plain = super::normalise::schema(&schema, super::normalise::Timestamps::Zoned);
    let to = plain.field(0).data_type();
    if to == column.data_type() {
        return Ok(Arc::clone(column));
    }
    arrow::compute::cast(column, to)
        .map_err(|e| Error::Invalid { message: format!("a parameter of type {}: {e}", column.data_type()), location: None })
}
