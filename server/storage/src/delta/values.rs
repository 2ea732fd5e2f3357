//! Typed Arrow columns from the log's text: partition values and statistics.
//!
//! Partition values decide which rows a file holds: one that cannot be parsed is damage. Statistics only help: one that cannot be
//! parsed, or may be narrower than the data (see [`ValueColumn::push_stat`]), counts as unknown.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder, Int8Builder, Int16Builder,
    Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, new_null_array,
};
use arrow::datatypes::DataType;
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use serde_json::value::RawValue;

/// A column under construction.
pub enum ValueColumn {
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Utf8(StringBuilder),
    Binary(BinaryBuilder),
    /// A type without values here; only their number counts.
    Other(DataType, usize),
}

/// Which side of the data a statistic bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Not above any value.
    Min,
    /// Not below any value.
    Max,
}

/// Appends what `parse` gives, or NULL; whether it gave something.
macro_rules! append {
    ($builder:expr, $value:expr) => {{
        let value = $value;
        let known = value.is_some();
        $builder.append_option(value);
        known
    }};
}

impl ValueColumn {
    /// For values of a type.
    pub fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Self::Int8(Int8Builder::new()),
            DataType::Int16 => Self::Int16(Int16Builder::new()),
            DataType::Int32 => Self::Int32(Int32Builder::new()),
            DataType::Int64 => Self::Int64(Int64Builder::new()),
            DataType::Float32 => Self::Float32(Float32Builder::new()),
            DataType::Float64 => Self::Float64(Float64Builder::new()),
            DataType::Decimal128(p, s) => Self::Decimal(Decimal128Builder::new().with_data_type(data_type.clone()), *p, *s),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Timestamp(..) => Self::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone())),
            DataType::Utf8 => Self::Utf8(StringBuilder::new()),
            DataType::Binary => Self::Binary(BinaryBuilder::new()),
            other => Self::Other(other.clone(), 0),
        }
    }

    /// Appends NULL.
    pub fn push_null(&mut self) {
        self.push_text(None);
    }

    /// Appends a partition value; false when it is no value of the type (then NULL is appended). The empty text is NULL.
    pub fn push_partition(&mut self, value: Option<&str>) -> bool {
        match value {
            None | Some("") => {
                self.push_text(None);
                true
            }
            some => self.push_text(some),
        }
    }

    /// Appends a statistic as it stands in the JSON text, NULL where it is unknown; false when there is something that is no value of the type.
    ///
    /// Writers cut timestamps to milliseconds, so a largest one with no more than three decimals stands for up to 999 µs more.
    pub fn push_stat(&mut self, value: Option<&RawValue>, bound: Bound) -> bool {
        let Some(json) = value.map(RawValue::get).filter(|json| *json != "null") else {
            self.push_null();
            return true;
        };
        let quoted = json.starts_with('"');
        let text = if quoted { serde_json::from_str::<String>(json).ok() } else { Some(json.to_owned()) };
        match (self, text.as_deref(), bound) {
            (Self::Timestamp(b), Some(text), Bound::Max) => {
                let cut = text.split_once('.').map_or(0, |(_, f)| f.bytes().take_while(u8::is_ascii_digit).count()) <= 3;
                append!(b, timestamp(text).map(|t| if cut { t.saturating_add(999) } else { t }))
            }
            (Self::Binary(b), ..) => {
                b.append_null();
                true
            }
            (Self::Other(_, count), ..) => {
                *count += 1;
                true
            }
            (Self::Utf8(b), text, _) => append!(b, text.filter(|_| quoted)),
            (column, text, _) => column.push_text(text),
        }
    }

    fn push_text(&mut self, text: Option<&str>) -> bool {
        match self {
            Self::Boolean(b) => append!(b, text.and_then(|t| t.parse().ok())),
            Self::Int8(b) => append!(b, text.and_then(|t| t.parse().ok())),
            Self::Int16(b) => append!(b, text.and_then(|t| t.parse().ok())),
            Self::Int32(b) => append!(b, text.and_then(|t| t.parse().ok())),
            Self::Int64(b) => append!(b, text.and_then(|t| t.parse().ok())),
            Self::Float32(b) => append!(b, text.and_then(|t| t.parse().ok())),
            Self::Float64(b) => append!(b, text.and_then(|t| t.parse().ok())),
            Self::Decimal(b, precision, scale) => append!(b, text.and_then(|t| decimal(t, *precision, *scale))),
            Self::Date(b) => append!(b, text.and_then(date)),
            Self::Timestamp(b) => append!(b, text.and_then(timestamp)),
            Self::Utf8(b) => append!(b, text),
            Self::Binary(b) => append!(b, text.map(str::as_bytes)),
            Self::Other(_, count) => {
                *count += 1;
                text.is_none()
            }
        }
    }

    /// The column.
    pub fn finish(self) -> ArrayRef {
        match self {
            Self::Boolean(mut b) => Arc::new(b.finish()),
            Self::Int8(mut b) => Arc::new(b.finish()),
            Self::Int16(mut b) => Arc::new(b.finish()),
            Self::Int32(mut b) => Arc::new(b.finish()),
            Self::Int64(mut b) => Arc::new(b.finish()),
            Self::Float32(mut b) => Arc::new(b.finish()),
            Self::Float64(mut b) => Arc::new(b.finish()),
            Self::Decimal(mut b, ..) => Arc::new(b.finish()),
            Self::Date(mut b) => Arc::new(b.finish()),
            Self::Timestamp(mut b) => Arc::new(b.finish()),
            Self::Utf8(mut b) => Arc::new(b.finish()),
            Self::Binary(mut b) => Arc::new(b.finish()),
            Self::Other(data_type, count) => new_null_array(&data_type, count),
        }
    }
}

/// Days since 1970 of `2026-01-31` (the protocol's form; years of more than four digits have a sign).
fn date(text: &str) -> Option<i32> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
}

/// Microseconds since 1970 of `2026-01-31 12:00:00.5`, `2026-01-31T12:00:00.5Z` or with an offset; without one it is UTC. A mere date is
/// its midnight (a column that was a date before).
fn timestamp(text: &str) -> Option<i64> {
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(moment.timestamp_micros());
    }
    let formats = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M%.f"];
    let naive = formats.iter().find_map(|f| NaiveDateTime::parse_from_str(text, f).ok());
    naive.map(|t| t.and_utc().timestamp_micros()).or_else(|| Some(i64::from(date(text)?) * 86_400_000_000))
}

/// An exact decimal of the scale; `None` when it does not fit (digits beyond the scale, but zeros, do not).
fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, Some(0)), |(m, e)| (m, e.parse::<i32>().ok()));
    let (negative, digits) = mantissa.strip_prefix('-').map_or((false, mantissa.strip_prefix('+').unwrap_or(mantissa)), |m| (true, m));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let mut value: i128 = all.parse().ok().filter(|_| all.bytes().all(|b| b.is_ascii_digit()))?;
    let mut shift = i32::from(scale).checked_add(exponent?)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    while shift > 0 {
        value = value.checked_mul(10)?;
        shift -= 1;
    }
    while shift < 0 {
        value = (value % 10 == 0).then_some(value / 10)?;
        shift += 1;
        if value == 0 {
            break;
        }
    }
    let fits = value < 10_i128.checked_pow(u32::from(precision))?;
    fits.then_some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{Decimal128Type, TimeUnit, TimestampMicrosecondType};

    #[test]
    fn decimals() {
        let check = |text: &str, expect: Option<i128>| assert_eq!(decimal(text, 10, 2), expect, "{text}");
        check("1.50", Some(150));
        check("-99999999.99", Some(-9_999_999_999));
        check("5", Some(500));
        check("1.500", Some(150));
        check("1.505", None);
        check("100000000", None);
        check("1E+2", Some(10_000));
        check("15e-1", Some(150));
        check("0e-999999999", Some(0));
        check("1e999999999", None);
        check("x", None);
        check("", None);
        check("1-2", None);
    }

    #[test]
    fn moments() {
        let check = |text: &str, expect: Option<i64>| assert_eq!(timestamp(text), expect, "{text}");
        check("1970-01-01T00:00:00.000001Z", Some(1));
        check("1970-01-01 00:00:00.5", Some(500_000));
        check("1970-01-01T00:00:00.000", Some(0));
        check("1970-01-01T02:00:00.000+02:00", Some(0));
        check("1970-01-02", Some(86_400_000_000));
        check("0001-01-01T00:00:00.000000Z", Some(-62_135_596_800_000_000));
        check("9999-12-31 23:59:59.999999", Some(253_402_300_799_999_999));
        check("yesterday", None);
    }

    #[test]
    fn a_cut_maximum_is_still_a_bound() {
        let mut column = ValueColumn::new(&DataType::Timestamp(TimeUnit::Microsecond, None));
        let raw = |t: &str| RawValue::from_string(format!("{t:?}")).unwrap();
        column.push_stat(Some(&raw("1970-01-01T00:00:00.001Z")), Bound::Max);
        column.push_stat(Some(&raw("1970-01-01T00:00:00.001000Z")), Bound::Max);
        column.push_stat(Some(&raw("1970-01-01T00:00:00.001Z")), Bound::Min);
        column.push_stat(None, Bound::Max);
        let array = column.finish();
        let values: Vec<Option<i64>> = array.as_primitive::<TimestampMicrosecondType>().iter().collect();
        assert_eq!(values, [Some(1999), Some(1000), Some(1000), None]);
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let mut column = ValueColumn::new(&DataType::Decimal128(38, 10));
        column.push_stat(Some(&RawValue::from_string("1234567890123456789012345678.0123456789".into()).unwrap()), Bound::Min);
        let array = column.finish();
        assert_eq!(array.as_primitive::<Decimal128Type>().value(0), 12_345_678_901_234_567_890_123_456_780_123_456_789);
        assert_eq!(array.null_count(), 0);
    }
}
