//! Values of one type into a column of another, as SQL assigns them.
//!
//! Stricter than CAST: a value that does not fit is an error, never NULL and never wrapped; types that mean different things (a boolean and
//! a number, a number and a time) are refused when the statement is planned. Strings are read as what the column holds; times without an
//! offset are the session's wall clock. Structs go by field name where the names are the same set, else by position. Decimals round half up.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, AsArray, ListArray, MapArray, PrimitiveArray, RecordBatch, StructArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, SchemaRef, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType};
use arrow::error::ArrowError;
use arrow::util::display::FormatOptions;

use crate::error::{Error, Result};

const CHECKED: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f")),
};

/// Whether values of type `from` can be assigned to a column of type `to` (single values may still not fit).
#[must_use]
pub fn assignable(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Null, _) => true,
        (DataType::Dictionary(_, values), _) => assignable(values, to),
        (DataType::Struct(from), DataType::Struct(to)) => {
            from.len() == to.len()
                && match by_name(from, to) {
                    Some(order) => order.iter().zip(to).all(|(at, to)| assignable(from[*at].data_type(), to.data_type())),
                    None => from.iter().zip(to).all(|(from, to)| assignable(from.data_type(), to.data_type())),
                }
        }
        (DataType::Map(from, _), DataType::Map(to, _)) => assignable(from.data_type(), to.data_type()),
        (_, DataType::List(to)) => element(from).is_some_and(|from| assignable(from.data_type(), to.data_type())),
        _ => from == to || scalar(from, to),
    }
}

fn scalar(from: &DataType, to: &DataType) -> bool {
    let text = |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let bytes = |t: &DataType| matches!(t, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_));
    let time = |t: &DataType| matches!(t, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    if from.is_nested() || to.is_nested() {
        return false;
    }
    match to {
        _ if text(to) => true,
        _ if bytes(to) => bytes(from) || text(from),
        _ if text(from) => true,
        _ if time(to) => time(from),
        DataType::Boolean => *from == DataType::Boolean,
        _ => from.is_numeric() && to.is_numeric(),
    }
}

fn element(list: &DataType) -> Option<&FieldRef> {
    match list {
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => Some(element),
        _ => None,
    }
}

/// For each field of `to`, its position in `from`, if both have the same names.
fn by_name(from: &Fields, to: &Fields) -> Option<Vec<usize>> {
    to.iter().map(|to| from.iter().position(|from| from.name().eq_ignore_ascii_case(to.name()))).collect()
}

/// Refuse an assignment that makes no sense, naming column and types.
///
/// # Errors
/// `Invalid`.
pub fn check(from: &DataType, column: &Field) -> Result<()> {
    if assignable(from, column.data_type()) {
        return Ok(());
    }
    Err(Error::Invalid {
        message: format!(
            "column {} is {}: a value of type {} cannot be assigned to it; use CAST",
            column.name(),
            sql_type(column.data_type()),
            sql_type(from)
        ),
        location: None,
    })
}

/// Assign values to a column, in a session's time zone.
///
/// # Errors
/// `Execution` naming the column when a value does not fit.
pub fn assign(values: &ArrayRef, column: &Field, zone: &str) -> Result<ArrayRef> {
    convert(values, column.data_type(), zone).map_err(|error| {
        Error::Execution(format!("a value does not fit column {} ({}): {error}", column.name(), sql_type(column.data_type())))
    })
}

/// Bring a batch to a schema that differs only in names and nullability of its fields, column by column.
///
/// # Errors
/// `Internal` when it differs in more.
pub fn reshape_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(values, field)| convert(values, field.data_type(), "UTC"));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|e| Error::Internal(e.to_string()))?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(|e| Error::Internal(e.to_string()))
}

fn convert(values: &ArrayRef, to: &DataType, zone: &str) -> Result<ArrayRef, ArrowError> {
    let from = values.data_type();
    if from == to {
        return Ok(Arc::clone(values));
    }
    match (from, to) {
        (DataType::Null, _) => Ok(new_null_array(to, values.len())),
        (DataType::Dictionary(_, plain), _) => convert(&cast_with_options(values, plain, &CHECKED)?, to, zone),
        (DataType::Struct(_), DataType::Struct(fields)) => structs(values.as_struct(), fields, zone),
        (DataType::Map(..), DataType::Map(entries, sorted)) => maps(values.as_map(), entries, *sorted, zone),
        (DataType::List(_), DataType::List(element)) => lists(values.as_list::<i32>(), element, zone),
        (_, DataType::List(_)) if element(from).is_some() => {
            let plain = DataType::List(Arc::clone(element(from).ok_or_else(|| mismatch(from, to))?));
            convert(&cast_with_options(values, &plain, &CHECKED)?, to, zone)
        }
        _ if scalar(from, to) => scalars(values, to, zone),
        _ => Err(mismatch(from, to)),
    }
}

fn mismatch(from: &DataType, to: &DataType) -> ArrowError {
    ArrowError::CastError(format!("{} is no {}", sql_type(from), sql_type(to)))
}

fn structs(values: &StructArray, fields: &Fields, zone: &str) -> Result<ArrayRef, ArrowError> {
    if values.num_columns() != fields.len() {
        return Err(mismatch(values.data_type(), &DataType::Struct(fields.clone())));
    }
    let order = by_name(values.fields(), fields).unwrap_or_else(|| (0..fields.len()).collect());
    let columns =
        order.iter().zip(fields).map(|(at, field)| convert(values.column(*at), field.data_type(), zone)).collect::<Result<Vec<_>, _>>()?;
    let nulls = values.nulls().cloned();
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, values.len())?))
}

/// Offsets from 0 and the part of the values that they reach.
fn trimmed(offsets: &OffsetBuffer<i32>, values: &ArrayRef) -> (OffsetBuffer<i32>, ArrayRef) {
    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
    let (start, length) = (usize::try_from(first).unwrap_or(0), usize::try_from(last - first).unwrap_or(0));
    if start == 0 && length == values.len() {
        return (offsets.clone(), Arc::clone(values));
    }
    let shifted: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    (OffsetBuffer::new(shifted.into()), values.slice(start, length))
}

fn lists(values: &ListArray, element: &FieldRef, zone: &str) -> Result<ArrayRef, ArrowError> {
    let (offsets, items) = trimmed(values.offsets(), values.values());
    let items = convert(&items, element.data_type(), zone)?;
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, items, values.nulls().cloned())?))
}

fn maps(values: &MapArray, entries: &FieldRef, sorted: bool, zone: &str) -> Result<ArrayRef, ArrowError> {
    let DataType::Struct(pair) = entries.data_type() else { return Err(mismatch(values.data_type(), entries.data_type())) };
    let pairs: ArrayRef = Arc::new(values.entries().clone());
    let (offsets, pairs) = trimmed(values.offsets(), &pairs);
    let pairs = pairs.as_struct();
    // By position: entries are called key and value, or something else, by whoever made them.
    let columns = pairs.columns().iter().zip(pair).map(|(values, field)| convert(values, field.data_type(), zone));
    let pairs = StructArray::try_new(pair.clone(), columns.collect::<Result<Vec<_>, _>>()?, None)?;
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, values.nulls().cloned(), sorted)?))
}

fn scalars(values: &ArrayRef, to: &DataType, zone: &str) -> Result<ArrayRef, ArrowError> {
    use DataType::{Date32, Timestamp, Utf8};
    use TimeUnit::{Microsecond, Nanosecond};

    let local = || Timestamp(Microsecond, Some(zone.into()));
    let cast = |values: &ArrayRef, to: &DataType| cast_with_options(values, to, &CHECKED);
    match (values.data_type(), to) {
        (Timestamp(Nanosecond, at), _) => {
            // Cast would round moments before 1970 up.
            let micros: PrimitiveArray<TimestampMicrosecondType> =
                values.as_primitive::<TimestampNanosecondType>().unary(|nanos| nanos.div_euclid(1000));
            convert(&(Arc::new(micros.with_timezone_opt(at.clone())) as ArrayRef), to, zone)
        }
        (Timestamp(unit, at), _) if *unit != Microsecond => convert(&cast(values, &Timestamp(Microsecond, at.clone()))?, to, zone),
        (Timestamp(_, Some(_)), Timestamp(_, Some(_))) => cast(values, to),
        (Timestamp(_, Some(_)), Timestamp(_, None)) => wall_clock(values, zone),
        (Timestamp(_, Some(_)), Date32) => cast(&cast(values, &local())?, to),
        (Timestamp(_, Some(_)), Utf8) => cast(&wall_clock(values, zone)?, to),
        (Timestamp(_, None), Timestamp(_, Some(_))) => cast(&cast(values, &local())?, to),
        (_, Timestamp(_, Some(_))) => cast(&cast(values, &local())?, to),
        _ => cast(values, to),
    }
}

/// What the clocks of a zone show at these instants.
fn wall_clock(values: &ArrayRef, zone: &str) -> Result<ArrayRef, ArrowError> {
    let tz: Tz = zone.parse()?;
    let instants = values.as_primitive::<TimestampMicrosecondType>();
    let shown: TimestampMicrosecondArray = instants.try_unary(|micros| {
        arrow::temporal_conversions::as_datetime_with_timezone::<TimestampMicrosecondType>(micros, tz)
            .map(|moment| moment.naive_local().and_utc().timestamp_micros())
            .ok_or_else(|| ArrowError::CastError(format!("{micros} µs since 1970 is no moment that {zone} has a clock for")))
    })?;
    Ok(Arc::new(shown))
}

/// A type's name in SQL, for messages.
#[must_use]
pub fn sql_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "NULL".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "BINARY".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP_NTZ".to_owned(),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}: {}", f.name(), sql_type(f.data_type()))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                format!("MAP<{}>", pair.iter().map(|f| sql_type(f.data_type())).collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        },
        DataType::Dictionary(_, values) => sql_type(values),
        other => element(other).map_or_else(|| other.to_string(), |e| format!("ARRAY<{}>", sql_type(e.data_type()))),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray, StringViewArray,
        TimestampNanosecondArray,
    };

    use super::*;

    const UTC: &str = "UTC";

    fn instant() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()))
    }

    fn micros(values: &ArrayRef) -> i64 {
        values.as_primitive::<TimestampMicrosecondType>().value(0)
    }

    #[test]
    fn what_can_be_assigned() {
        let check = |from: DataType, to: DataType, expect: bool| assert_eq!(assignable(&from, &to), expect, "{from} → {to}");
        check(DataType::Null, DataType::Int32, true);
        check(DataType::Int64, DataType::Int8, true);
        check(DataType::Float64, DataType::Decimal128(10, 2), true);
        check(DataType::Utf8View, DataType::Date32, true);
        check(DataType::Int32, DataType::Utf8, true);
        check(DataType::Boolean, DataType::Int32, false);
        check(DataType::Int64, instant(), false);
        check(DataType::Int32, DataType::Boolean, false);
        check(DataType::Binary, DataType::Int32, false);
        check(DataType::Utf8, DataType::List(Arc::new(Field::new("x", DataType::Utf8, true))), false);
    }

    #[test]
    fn values_that_do_not_fit_are_errors_that_name_the_column() {
        let check = |values: ArrayRef, to: DataType| {
            let error = assign(&values, &Field::new("qty", to, true), UTC).unwrap_err().to_string();
            assert!(error.contains("column qty"), "{error}");
        };
        check(Arc::new(Int64Array::from(vec![300])), DataType::Int8);
        check(Arc::new(Float64Array::from(vec![1e12])), DataType::Int32);
        check(Arc::new(Decimal128Array::from(vec![100_000]).with_precision_and_scale(10, 0).unwrap()), DataType::Decimal128(3, 0));
        check(Arc::new(StringArray::from(vec!["x1"])), DataType::Int32);
        check(Arc::new(StringArray::from(vec!["2026-13-01"])), DataType::Date32);
        check(Arc::new(BooleanArray::from(vec![true])), DataType::Int32);
    }

    #[test]
    fn times_are_the_sessions() {
        let check = |values: ArrayRef, to: DataType, zone: &str, expect: i64| {
            let field = Field::new("t", to, true);
            assert_eq!(micros(&assign(&values, &field, zone).unwrap()), expect, "{values:?} in {zone}");
        };
        let hour = 3_600_000_000;
        let berlin = "Europe/Berlin";
        let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
        check(text("1970-01-02 00:00:00"), instant(), UTC, 24 * hour);
        check(text("1970-01-02 00:00:00"), instant(), berlin, 23 * hour);
        check(text("1970-01-02T00:00:00+05:00"), instant(), berlin, 19 * hour);
        check(Arc::new(Date32Array::from(vec![1])), instant(), berlin, 23 * hour);
        check(Arc::new(TimestampMicrosecondArray::from(vec![24 * hour])), instant(), berlin, 23 * hour);
        let at = Arc::new(TimestampMicrosecondArray::from(vec![23 * hour]).with_timezone(UTC));
        check(at, DataType::Timestamp(TimeUnit::Microsecond, None), berlin, 24 * hour);
        check(Arc::new(TimestampNanosecondArray::from(vec![-1])), DataType::Timestamp(TimeUnit::Microsecond, None), UTC, -1);
        let at: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![23 * hour]).with_timezone(UTC));
        let day = assign(&at, &Field::new("d", DataType::Date32, true), berlin).unwrap();
        assert_eq!(day.as_primitive::<arrow::datatypes::Date32Type>().value(0), 1);
    }

    #[test]
    fn nested_values_take_the_columns_names_and_types() {
        let pair = |a: &str, b: &str, nullable| {
            Fields::from(vec![Field::new(a, DataType::Int64, nullable), Field::new(b, DataType::Utf8View, nullable)])
        };
        let values = |a: &str, b: &str| {
            let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringViewArray::from(vec!["x", "y"]))];
            Arc::new(StructArray::new(pair(a, b, false), columns, None)) as ArrayRef
        };
        let to = Fields::from(vec![Field::new("n", DataType::Int32, true), Field::new("s", DataType::Utf8, true)]);
        let column = Field::new("c", DataType::Struct(to), true);
        let check = |values: ArrayRef| {
            let assigned = assign(&values, &column, UTC).unwrap();
            assert_eq!(assigned.data_type(), column.data_type());
            assert_eq!(assigned.as_struct().column(0).as_primitive::<arrow::datatypes::Int32Type>().values(), &[1, 2]);
        };
        check(values("n", "s"));
        check(values("c0", "c1"));

        let items: ArrayRef = Arc::new(Int32Array::from(vec![7, 8, 9]));
        let from = Arc::new(Field::new("item", DataType::Int32, false));
        let list = ListArray::new(from, OffsetBuffer::new(vec![0, 1, 3].into()), items, None).slice(1, 1);
        let column = Field::new("l", DataType::List(Arc::new(Field::new("element", DataType::Int64, true))), true);
        let assigned = assign(&(Arc::new(list) as ArrayRef), &column, UTC).unwrap();
        assert_eq!(assigned.data_type(), column.data_type());
        assert_eq!(assigned.as_list::<i32>().values().as_primitive::<arrow::datatypes::Int64Type>().values(), &[8, 9]);
    }
}
