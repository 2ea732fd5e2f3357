//! Dates and their parts. An instant's day, hour … are those of the session's zone.

use std::sync::Arc;

use chrono::Months;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Date32Array, Int32Array};
use datafusion::arrow::compute::{DatePart, cast, date_part};
use datafusion::arrow::datatypes::{DataType, Date32Type, Int32Type, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, cast as cast_expr};

use super::instant;
use super::pattern::Language;
use super::scalar::{Call, Scalar, session_zone};
use super::timestamp::{Compiled, OnBadText, locals};

pub(super) fn functions() -> Vec<Scalar> {
    let part = |name, body| Scalar::new(name, &[1], |_| Ok(DataType::Int32), body);
    vec![
        Scalar::new("date", &[1], returns_date, |call| days(&call.arrays[0], call, OnBadText::Fail)).simplify(plain_date),
        Scalar::new("to_date", &[1, 2], returns_date, |call| read(call, OnBadText::Fail)),
        Scalar::new("try_to_date", &[1, 2], returns_date, |call| read(call, OnBadText::Null)),
        Scalar::new("date_add", &[2], returns_date, |call| shift(call, 1)),
        Scalar::new("date_sub", &[2], returns_date, |call| shift(call, -1)),
        Scalar::new("add_months", &[2], returns_date, add_months),
        Scalar::new("date_diff", &[2], |_| Ok(DataType::Int32), difference).aliases(&["datediff"]),
        part("year", |call| part_of(call, DatePart::Year)),
        part("quarter", |call| part_of(call, DatePart::Quarter)),
        part("month", |call| part_of(call, DatePart::Month)),
        part("day", |call| part_of(call, DatePart::Day)).aliases(&["dayofmonth"]),
        part("dayofyear", |call| part_of(call, DatePart::DayOfYear)),
        part("weekofyear", |call| part_of(call, DatePart::Week)),
        // Spark counts Sunday as 1, arrow as 0.
        part("dayofweek", |call| {
            Ok(Arc::new(part_of(call, DatePart::DayOfWeekSunday0)?.as_primitive::<Int32Type>().unary::<_, Int32Type>(|d| d + 1)))
        }),
        part("hour", |call| part_of(call, DatePart::Hour)),
        part("minute", |call| part_of(call, DatePart::Minute)),
        part("second", |call| part_of(call, DatePart::Second)),
    ]
}

fn returns_date(_: &[DataType]) -> Result<DataType> {
    Ok(DataType::Date32)
}

/// `date(x)` where a cast says the same: dates and text always, instants when the session's zone is UTC. Casts are what pruning knows.
fn plain_date(args: &[Expr], info: &SimplifyContext) -> Result<Option<Expr>> {
    let [arg] = args else { return Ok(None) };
    let plain = match info.get_data_type(arg)? {
        DataType::Date32 => return Ok(Some(arg.clone())),
        DataType::Date64 | DataType::Timestamp(_, None) => true,
        DataType::Timestamp(_, Some(zone)) => {
            let utc = |name: &str| instant::Zone::parse(name).is_some_and(instant::Zone::is_utc);
            utc(&zone) && session_zone(info.config_options().execution.time_zone.as_deref())?.is_utc()
        }
        _ => false,
    };
    Ok(plain.then(|| cast_expr(arg.clone(), DataType::Date32)))
}

/// Any value as a date.
fn days(array: &ArrayRef, call: &Call, on_bad_text: OnBadText) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = cast(array, &DataType::Utf8)?;
            let days = texts.as_string::<i32>().iter().map(|text| {
                let Some(text) = text else { return Ok(None) };
                match instant::parse_date(text) {
                    None if on_bad_text == OnBadText::Fail => {
                        Err(DataFusionError::Execution(format!("'{text}' is no date: write 'yyyy-MM-dd', or use try_to_date")))
                    }
                    day => Ok(day.map(Date32Type::from_naive_date)),
                }
            });
            Ok(Arc::new(days.collect::<Result<Date32Array>>()?))
        }
        DataType::Date32 | DataType::Date64 | DataType::Null => Ok(cast(array, &DataType::Date32)?),
        DataType::Timestamp(..) => Ok(cast(&locals(array, call.zone)?, &DataType::Date32)?),
        other => Err(DataFusionError::Plan(format!("{other} is no date; give a text, a date or a timestamp"))),
    }
}

/// `to_date(x)`, `to_date(text, pattern)`.
fn read(call: &Call, on_bad_text: OnBadText) -> Result<ArrayRef> {
    let is_text = matches!(call.arrays[0].data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let Some(patterns) = call.arrays.get(1).filter(|_| is_text) else { return days(&call.arrays[0], call, on_bad_text) };
    let (texts, patterns) = (cast(&call.arrays[0], &DataType::Utf8)?, cast(patterns, &DataType::Utf8)?);
    let mut compiled = Compiled::new(Language::Java);
    let days = texts.as_string::<i32>().iter().zip(patterns.as_string::<i32>()).map(|pair| {
        let (Some(text), Some(pattern)) = pair else { return Ok(None) };
        match compiled.get(pattern)?.read(text) {
            None if on_bad_text == OnBadText::Fail => {
                Err(DataFusionError::Execution(format!("'{text}' does not fit the pattern '{pattern}'; use try_to_date for NULL instead")))
            }
            read => Ok(read.map(|(local, _)| Date32Type::from_naive_date(local.date()))),
        }
    });
    Ok(Arc::new(days.collect::<Result<Date32Array>>()?))
}

fn shift(call: &Call, sign: i64) -> Result<ArrayRef> {
    let dates = days(&call.arrays[0], call, OnBadText::Fail)?;
    if !call.arrays[1].data_type().is_integer() && !call.arrays[1].data_type().is_null() {
        return Err(DataFusionError::Plan(format!(
            "date_add and date_sub take a whole number of days, not {}; add an INTERVAL to a timestamp",
            call.arrays[1].data_type()
        )));
    }
    let numbers = cast(&call.arrays[1], &DataType::Int64)?;
    let shifted = dates.as_primitive::<Date32Type>().iter().zip(numbers.as_primitive::<Int64Type>()).map(|pair| {
        let (Some(day), Some(number)) = pair else { return Ok(None) };
        let day = number.checked_mul(sign).and_then(|n| i64::from(day).checked_add(n)).and_then(|d| i32::try_from(d).ok());
        day.map(Some).ok_or_else(|| DataFusionError::Execution("a date is out of range".to_owned()))
    });
    Ok(Arc::new(shifted.collect::<Result<Date32Array>>()?))
}

/// The same day some months on, or the month's last.
fn add_months(call: &Call) -> Result<ArrayRef> {
    let dates = days(&call.arrays[0], call, OnBadText::Fail)?;
    let numbers = cast(&call.arrays[1], &DataType::Int64)?;
    let shifted = dates.as_primitive::<Date32Type>().iter().zip(numbers.as_primitive::<Int64Type>()).map(|pair| {
        let (Some(day), Some(number)) = pair else { return Ok(None) };
        let months = u32::try_from(number.unsigned_abs()).ok().map(Months::new);
        let day = Date32Type::to_naive_date_opt(day).zip(months);
        let moved = day.and_then(|(day, months)| if number < 0 { day.checked_sub_months(months) } else { day.checked_add_months(months) });
        moved
            .map(|day| Some(Date32Type::from_naive_date(day)))
            .ok_or_else(|| DataFusionError::Execution("a date is out of range".to_owned()))
    });
    Ok(Arc::new(shifted.collect::<Result<Date32Array>>()?))
}

fn difference(call: &Call) -> Result<ArrayRef> {
    let (end, start) = (days(&call.arrays[0], call, OnBadText::Fail)?, days(&call.arrays[1], call, OnBadText::Fail)?);
    let between =
        end.as_primitive::<Date32Type>().iter().zip(start.as_primitive::<Date32Type>()).map(|(end, start)| Some(end?.wrapping_sub(start?)));
    Ok(Arc::new(between.collect::<Int32Array>()))
}

fn part_of(call: &Call, part: DatePart) -> Result<ArrayRef> {
    Ok(date_part(&locals(&call.arrays[0], call.zone)?, part)?)
}
