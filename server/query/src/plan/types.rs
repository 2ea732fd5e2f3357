//! What SQL's type names mean.
//!
//! TIMESTAMP is Spark's and Delta's: an instant, whose text without an offset is read in the session's time zone. TIMESTAMP_NTZ and
//! `TIMESTAMP WITHOUT TIME ZONE` are wall-clock times. All are microseconds. STRING is Utf8, never a view.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast;

/// Types in one session's time zone.
#[derive(Debug)]
pub(crate) struct SqlTypes {
    zone: Arc<str>,
}

impl SqlTypes {
    pub(crate) fn new(zone: &str) -> Self {
        Self { zone: zone.into() }
    }

    fn zoned(&self) -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::clone(&self.zone)))
    }
}

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let planned = match sql_type {
            ast::DataType::Timestamp(_, ast::TimezoneInfo::WithoutTimeZone) => DataType::Timestamp(TimeUnit::Microsecond, None),
            ast::DataType::Timestamp(..) => self.zoned(),
            ast::DataType::TimestampNtz(_) | ast::DataType::Datetime(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
            other => match crate::statement::types::arrow_type(other) {
                Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(_))) => self.zoned(),
                Ok(planned) => planned,
                // Left to DataFusion, which knows more names, or says which it does not know.
                Err(_) => return Ok(None),
            },
        };
        Ok(Some(Arc::new(Field::new("", planned, true))))
    }
}
