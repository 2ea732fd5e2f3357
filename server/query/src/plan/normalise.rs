//! One schema per statement on the wire (Q2).
//!
//! Drivers compare the schemas of prepare, FlightInfo and stream, and know neither views nor dictionaries nor run-ends. So the
//! planned schema is normalised once, and every batch is cast to it: strings are Utf8, binary is Binary, lists are List, timestamps
//! are microseconds (zoned ones in UTC), small decimals are Decimal128.

use std::sync::Arc;

use arrow::array::RecordBatchOptions;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;

use crate::error::{Error, Result};

/// How zoned timestamps go over the wire (session setting `timestamps`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// As instants in UTC.
    #[default]
    Zoned,
    /// As wall-clock times of UTC, for drivers that mishandle zones.
    Naive,
    /// As text.
    Text,
}

impl Timestamps {
    /// From the setting's value; zoned when it is none of the three.
    #[must_use]
    pub fn from_setting(value: &str) -> Self {
        match value {
            "naive" => Self::Naive,
            "text" => Self::Text,
            _ => Self::Zoned,
        }
    }
}

/// The schema that goes over the wire for a planned one.
#[must_use]
pub fn schema(planned: &Schema, timestamps: Timestamps) -> SchemaRef {
    Arc::new(Schema::new(planned.fields().iter().map(|f| field(f, timestamps)).collect::<Fields>()))
}

fn field(planned: &FieldRef, timestamps: Timestamps) -> FieldRef {
    // The format's keys (column mapping, defaults) are not the client's business.
    Arc::new(Field::new(planned.name(), data_type(planned.data_type(), timestamps), planned.is_nullable()))
}

fn data_type(planned: &DataType, timestamps: Timestamps) -> DataType {
    use DataType as T;
    match planned {
        T::Utf8View | T::LargeUtf8 => T::Utf8,
        T::BinaryView | T::LargeBinary => T::Binary,
        T::Float16 => T::Float32,
        T::Decimal32(p, s) | T::Decimal64(p, s) => T::Decimal128(*p, *s),
        T::Dictionary(_, value) => data_type(value, timestamps),
        T::RunEndEncoded(_, value) => data_type(value.data_type(), timestamps),
        T::Timestamp(_, None) => T::Timestamp(TimeUnit::Microsecond, None),
        T::Timestamp(_, Some(_)) => match timestamps {
            Timestamps::Zoned => T::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Timestamps::Naive => T::Timestamp(TimeUnit::Microsecond, None),
            Timestamps::Text => T::Utf8,
        },
        T::List(item) | T::LargeList(item) | T::ListView(item) | T::LargeListView(item) | T::FixedSizeList(item, _) => {
            T::List(field(item, timestamps))
        }
        T::Map(entries, sorted) => T::Map(map_entries(entries, timestamps), *sorted),
        T::Struct(fields) => T::Struct(fields.iter().map(|f| field(f, timestamps)).collect()),
        other => other.clone(),
    }
}

/// Entries under the names that Arrow's specification gives: Java's reader looks keys and values up by them, and finds NULLs otherwise.
fn map_entries(planned: &FieldRef, timestamps: Timestamps) -> FieldRef {
    let DataType::Struct(fields) = planned.data_type() else { return field(planned, timestamps) };
    let named = fields.iter().zip(["key", "value"]).map(|(f, name)| field(f, timestamps).as_ref().clone().with_name(name));
    Arc::new(Field::new("entries", DataType::Struct(named.collect()), false))
}

/// A batch as the wire's schema wants it. Columns are matched by position.
///
/// # Errors
/// A column that cannot be cast, or a NULL where the plan promised none: both are bugs.
pub fn batch(batch: &RecordBatch, to: &SchemaRef) -> Result<RecordBatch> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(to.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        cast_with_options(column, field.data_type(), &options)
            .map_err(|e| Error::Internal(format!("column {} of type {} as {}: {e}", field.name(), column.data_type(), field.data_type())))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(to), columns, &rows).map_err(|e| Error::Internal(e.to_string()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, DictionaryArray, StringArray, StringViewArray, TimestampNanosecondArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn no_encoding_of_the_engine_reaches_the_wire() {
        let dictionary: DictionaryArray<Int32Type> = vec!["a", "b", "a"].into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("view", Arc::new(StringViewArray::from(vec!["x", "y", "z"]))),
            ("dictionary", Arc::new(dictionary)),
            ("instant", Arc::new(TimestampNanosecondArray::from(vec![1_000, 2_000, 3_999]).with_timezone("+02:00"))),
        ];
        let planned = RecordBatch::try_from_iter(columns).unwrap();
        let wire = schema(planned.schema().as_ref(), Timestamps::Zoned);
        let sent = batch(&planned, &wire).unwrap();
        assert_eq!(sent.column(0).as_ref(), &StringArray::from(vec!["x", "y", "z"]));
        assert_eq!(sent.column(1).as_ref(), &StringArray::from(vec!["a", "b", "a"]));
        assert_eq!(wire.field(2).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
        let text = schema(planned.schema().as_ref(), Timestamps::Text);
        assert_eq!(text.field(2).data_type(), &DataType::Utf8);
    }
}
