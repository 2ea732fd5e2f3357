//! Moments: making, reading and writing them.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;

use super::instant::{self, Zone};
use super::pattern::{Language, Pattern};
use super::scalar::{Call, Scalar};

const DAY_MICROS: i64 = 86_400_000_000;

pub(super) fn functions() -> Vec<Scalar> {
    vec![
        Scalar::new("timestamp", &[1], returns_instant, |call| instants(&call.arrays[0], call.zone, OnBadText::Fail))
            .simplify(keep_instant),
        Scalar::new("to_timestamp", &[1, 2], returns_instant, |call| read(call, OnBadText::Fail)).aliases(&["to_timestamp_ltz"]),
        Scalar::new("try_to_timestamp", &[1, 2], returns_instant, |call| read(call, OnBadText::Null)),
        Scalar::new("timestamp_seconds", &[1], returns_instant, |call| from_epoch(&call.arrays[0], 1_000_000)),
        Scalar::new("timestamp_millis", &[1], returns_instant, |call| from_epoch(&call.arrays[0], 1_000)),
        Scalar::new("timestamp_micros", &[1], returns_instant, |call| from_epoch(&call.arrays[0], 1)),
        Scalar::new(
            "unix_timestamp",
            &[1, 2],
            |_| Ok(DataType::Int64),
            |call| {
                let micros = read(call, OnBadText::Null)?;
                let seconds: Int64Array = micros.as_primitive::<TimestampMicrosecondType>().unary(|m| m.div_euclid(1_000_000));
                Ok(Arc::new(seconds))
            },
        )
        .aliases(&["to_unix_timestamp"]),
        Scalar::new("date_format", &[2], |_| Ok(DataType::Utf8), |call| write(call, Language::Java)),
        Scalar::new("format", &[2], returns_formatted, |call| write(call, Language::DotNet)),
    ]
}

/// What a text that is no moment becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnBadText {
    Fail,
    Null,
}

fn instant_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn returns_instant(_: &[DataType]) -> Result<DataType> {
    Ok(instant_type())
}

fn returns_formatted(arguments: &[DataType]) -> Result<DataType> {
    match arguments.first() {
        Some(t) if t.is_temporal() || t.is_null() || matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
            Ok(DataType::Utf8)
        }
        other => Err(DataFusionError::Plan(format!(
            "format writes dates and times ('yyyy-MM-dd'), not {}; cast a number to DECIMAL(p, s) or STRING",
            other.map(ToString::to_string).unwrap_or_default()
        ))),
    }
}

/// `timestamp(x)` of what is an instant already.
fn keep_instant(args: &[Expr], info: &SimplifyContext) -> Result<Option<Expr>> {
    match args {
        [arg] if info.get_data_type(arg)? == instant_type() => Ok(Some(arg.clone())),
        _ => Ok(None),
    }
}

fn instant_array(values: impl Iterator<Item = Result<Option<i64>>>) -> Result<ArrayRef> {
    let micros = values.collect::<Result<TimestampMicrosecondArray>>()?;
    Ok(Arc::new(micros.with_timezone("UTC")))
}

/// Any value as an instant: text is read, numbers are seconds since 1970, dates and zoneless times count in `zone`.
pub(super) fn instants(array: &ArrayRef, zone: Zone, on_bad_text: OnBadText) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(array, &DataType::Utf8)?;
            instant_array(
                texts
                    .as_string::<i32>()
                    .iter()
                    .map(|text| text.map_or(Ok(None), |text| found(instant::parse(text, zone), text, on_bad_text))),
            )
        }
        DataType::Timestamp(_, Some(_)) => Ok(cast(array, &instant_type())?),
        DataType::Timestamp(_, None) => {
            let locals = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
            instant_array(
                locals.as_primitive::<TimestampMicrosecondType>().iter().map(|micros| Ok(micros.and_then(|m| from_local(m, zone)))),
            )
        }
        DataType::Date32 | DataType::Date64 => {
            let days = cast(array, &DataType::Date32)?;
            instant_array(
                days.as_primitive::<Date32Type>().iter().map(|day| Ok(day.and_then(|d| from_local(i64::from(d) * DAY_MICROS, zone)))),
            )
        }
        DataType::Null => Ok(cast(array, &instant_type())?),
        other if other.is_numeric() => from_epoch(array, 1_000_000),
        other => Err(DataFusionError::Plan(format!("{other} is no moment; give a text, a date, a timestamp or seconds since 1970"))),
    }
}

fn from_local(micros: i64, zone: Zone) -> Option<i64> {
    if zone.is_utc() {
        return Some(micros);
    }
    zone.instant(chrono::DateTime::from_timestamp_micros(micros)?.naive_utc())
}

fn found(micros: Option<i64>, text: &str, on_bad_text: OnBadText) -> Result<Option<i64>> {
    match (micros, on_bad_text) {
        (None, OnBadText::Fail) => {
            Err(DataFusionError::Execution(format!("'{text}' is no timestamp: write 'yyyy-MM-dd HH:mm:ss', or use try_to_timestamp")))
        }
        (micros, _) => Ok(micros),
    }
}

/// Numbers since 1970, of which `unit` microseconds make one.
fn from_epoch(array: &ArrayRef, unit: i64) -> Result<ArrayRef> {
    let overflow = || DataFusionError::Execution("a timestamp is out of range".to_owned());
    match array.data_type() {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let numbers = cast(array, &DataType::Float64)?;
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                reason = "a fraction of a microsecond has no place in a timestamp"
            )]
            let micros = |number: f64| (number.is_finite()).then_some((number * unit as f64) as i64);
            instant_array(numbers.as_primitive::<Float64Type>().iter().map(|number| Ok(number.and_then(micros))))
        }
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let numbers = cast(array, &DataType::Decimal128(38, 6))?;
            instant_array(numbers.as_primitive::<Decimal128Type>().iter().map(|number| {
                let micros = number.map(|n| (n * i128::from(unit)).div_euclid(1_000_000));
                micros.map(|m| i64::try_from(m).map_err(|_| overflow())).transpose()
            }))
        }
        other if other.is_integer() || other.is_null() => {
            let numbers = cast(array, &DataType::Int64)?;
            instant_array(
                numbers
                    .as_primitive::<Int64Type>()
                    .iter()
                    .map(|number| number.map(|n| n.checked_mul(unit).ok_or_else(overflow)).transpose()),
            )
        }
        other => Err(DataFusionError::Plan(format!("{other} is no number since 1970"))),
    }
}

/// `to_timestamp(x)`, `to_timestamp(text, pattern)`.
fn read(call: &Call, on_bad_text: OnBadText) -> Result<ArrayRef> {
    let Some(patterns) = call.arrays.get(1) else { return instants(&call.arrays[0], call.zone, on_bad_text) };
    if !matches!(call.arrays[0].data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
        return instants(&call.arrays[0], call.zone, on_bad_text);
    }
    let (texts, patterns) = (cast(&call.arrays[0], &DataType::Utf8)?, cast(patterns, &DataType::Utf8)?);
    let mut compiled = Compiled::new(Language::Java);
    instant_array(texts.as_string::<i32>().iter().zip(patterns.as_string::<i32>()).map(|pair| {
        let (Some(text), Some(pattern)) = pair else { return Ok(None) };
        let micros = compiled.get(pattern)?.read(text).and_then(|(local, zone)| zone.unwrap_or(call.zone).instant(local));
        if micros.is_none() && on_bad_text == OnBadText::Fail {
            return Err(DataFusionError::Execution(format!(
                "'{text}' does not fit the pattern '{pattern}'; use try_to_timestamp for NULL instead"
            )));
        }
        Ok(micros)
    }))
}

/// `date_format(x, pattern)`, `format(x, pattern)`.
fn write(call: &Call, language: Language) -> Result<ArrayRef> {
    // A time without a zone is written as it stands.
    let zone = if matches!(call.arrays[0].data_type(), DataType::Timestamp(_, None)) { Zone::UTC } else { call.zone };
    let moments = instants(&call.arrays[0], zone, OnBadText::Fail)?;
    let patterns = cast(&call.arrays[1], &DataType::Utf8)?;
    let mut compiled = Compiled::new(language);
    let texts = moments.as_primitive::<TimestampMicrosecondType>().iter().zip(patterns.as_string::<i32>()).map(|pair| {
        let (Some(micros), Some(pattern)) = pair else { return Ok(None) };
        let Some((local, offset)) = zone.local(micros) else { return Ok(None) };
        Ok(Some(compiled.get(pattern)?.write(local, offset, zone)))
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

/// The last pattern, compiled: a column mostly has one.
pub(super) struct Compiled {
    language: Language,
    last: Option<(String, Pattern)>,
}

impl Compiled {
    pub(super) fn new(language: Language) -> Self {
        Self { language, last: None }
    }

    pub(super) fn get(&mut self, text: &str) -> Result<&Pattern> {
        if self.last.as_ref().is_none_or(|(known, _)| known != text) {
            let pattern = Pattern::compile(text, self.language).map_err(DataFusionError::Execution)?;
            self.last = Some((text.to_owned(), pattern));
        }
        self.last.as_ref().map(|(_, pattern)| pattern).ok_or_else(|| DataFusionError::Internal("no pattern".to_owned()))
    }
}

/// The local time of each instant in `zone`, without a zone: what calendar functions count with.
pub(super) fn locals(array: &ArrayRef, zone: Zone) -> Result<ArrayRef> {
    let zoneless = DataType::Timestamp(TimeUnit::Microsecond, None);
    match array.data_type() {
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => Ok(cast(array, &zoneless)?),
        _ => {
            let moments = instants(array, zone, OnBadText::Fail)?;
            let micros = moments.as_primitive::<TimestampMicrosecondType>();
            if zone.is_utc() {
                return Ok(Arc::new(micros.clone().with_timezone_opt(None::<Arc<str>>)));
            }
            let local = micros.iter().map(|m| m.and_then(|m| zone.local(m)).map(|(local, _)| local.and_utc().timestamp_micros()));
            Ok(Arc::new(local.collect::<TimestampMicrosecondArray>()))
        }
    }
}
