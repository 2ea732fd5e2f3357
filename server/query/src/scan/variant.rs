//! Variants as JSON text.
//!
//! A variant lies in a file as two binaries: a dictionary of field names, and a value that refers to it (Parquet's `VariantEncoding.md`).
//! Queries see its JSON as Spark's `to_json` prints it: fields of an object that are null are left out, elements of an array that are
//! null stay. Damaged bytes are an error, never a guess.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveDate, TimeDelta};

use std::sync::Arc;

/// How deep values may nest; Parquet sets no bound, a stack does.
const MAX_DEPTH: usize = 128;

/// A column of variants (a struct of `metadata` and `value`) as JSON.
pub(super) fn to_json(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let variants = array.as_struct();
    if variants.column_by_name("typed_value").is_some() {
        return Err(ArrowError::NotYetImplemented("reading shredded variants".into()));
    }
    let part = |name: &str| {
        let column = variants.column_by_name(name).ok_or_else(|| damaged(&format!("it has no {name}")))?;
        cast(column, &DataType::Binary)
    };
    let (metadata, value) = (part("metadata")?, part("value")?);
    let (metadata, value) = (metadata.as_binary::<i32>(), value.as_binary::<i32>());
    let mut out = StringBuilder::new();
    for row in 0..variants.len() {
        if variants.is_null(row) || value.is_null(row) {
            out.append_null();
            continue;
        }
        let mut text = String::new();
        let names = Names::new(metadata.value(row)).ok_or_else(|| damaged("its metadata is cut short"))?;
        print(value.value(row), &names, MAX_DEPTH, &mut text).ok_or_else(|| damaged("its value is cut short or unknown"))?;
        out.append_value(text);
    }
    Ok(Arc::new(out.finish()))
}

fn damaged(what: &str) -> ArrowError {
    ArrowError::ParquetError(format!("a variant is damaged: {what}"))
}

/// The dictionary of field names.
struct Names<'a> {
    bytes: &'a [u8],
    width: usize,
    count: usize,
}

impl<'a> Names<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let width = usize::from(bytes.first()? >> 6) + 1;
        let count = number(bytes, 1, width)?;
        Some(Self { bytes, width, count })
    }

    fn get(&self, id: usize) -> Option<&'a str> {
        if id >= self.count {
            return None;
        }
        let offset = |i: usize| number(self.bytes, 1 + self.width * (1 + i), self.width);
        let start = 1 + self.width * (2 + self.count);
        let name = self.bytes.get(start + offset(id)?..start + offset(id + 1)?)?;
        std::str::from_utf8(name).ok()
    }
}

/// An unsigned little-endian number of 1 to 4 bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let raw = bytes.get(at..at + width)?;
    Some(raw.iter().rev().fold(0, |n, b| (n << 8) | usize::from(*b)))
}

/// A signed little-endian number of `N` bytes.
fn signed<const N: usize>(bytes: &[u8], at: usize) -> Option<i128> {
    let raw: [u8; N] = bytes.get(at..at + N)?.try_into().ok()?;
    let sign = if raw[N - 1] & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    wide[..N].copy_from_slice(&raw);
    Some(i128::from_le_bytes(wide))
}

fn is_null(value: &[u8]) -> bool {
    value.first() == Some(&0)
}

fn print(value: &[u8], names: &Names<'_>, depth: usize, out: &mut String) -> Option<()> {
    let first = *value.first()?;
    let header = first >> 2;
    match first & 3 {
        0 => print_primitive(header, value, out),
        1 => quote(std::str::from_utf8(value.get(1..1 + usize::from(header))?).ok()?, out),
        2 => print_object(header, value, names, depth.checked_sub(1)?, out),
        _ => print_array(header, value, names, depth.checked_sub(1)?, out),
    }
}

fn print_object(header: u8, value: &[u8], names: &Names<'_>, depth: usize, out: &mut String) -> Option<()> {
    let offset_width = usize::from(header & 3) + 1;
    let id_width = usize::from((header >> 2) & 3) + 1;
    let count_width = if header & 0x10 == 0 { 1 } else { 4 };
    let count = number(value, 1, count_width)?;
    let ids = 1 + count_width;
    let offsets = ids + count.checked_mul(id_width)?;
    let data = offsets + (count + 1).checked_mul(offset_width)?;
    let mut comma = false;
    out.push('{');
    for i in 0..count {
        let field = value.get(data.checked_add(number(value, offsets + i * offset_width, offset_width)?)?..)?;
        if is_null(field) {
            continue;
        }
        if std::mem::replace(&mut comma, true) {
            out.push(',');
        }
        quote(names.get(number(value, ids + i * id_width, id_width)?)?, out)?;
        out.push(':');
        print(field, names, depth, out)?;
    }
    out.push('}');
    Some(())
}

fn print_array(header: u8, value: &[u8], names: &Names<'_>, depth: usize, out: &mut String) -> Option<()> {
    let offset_width = usize::from(header & 3) + 1;
    let count_width = if header & 4 == 0 { 1 } else { 4 };
    let count = number(value, 1, count_width)?;
    let offsets = 1 + count_width;
    let data = offsets + (count + 1).checked_mul(offset_width)?;
    out.push('[');
    for i in 0..count {
        if i > 0 {
            out.push(',');
        }
        print(value.get(data.checked_add(number(value, offsets + i * offset_width, offset_width)?)?..)?, names, depth, out)?;
    }
    out.push(']');
    Some(())
}

fn print_primitive(kind: u8, value: &[u8], out: &mut String) -> Option<()> {
    match kind {
        0 => out.push_str("null"),
        1 => out.push_str("true"),
        2 => out.push_str("false"),
        3 => write!(out, "{}", signed::<1>(value, 1)?).ok()?,
        4 => write!(out, "{}", signed::<2>(value, 1)?).ok()?,
        5 => write!(out, "{}", signed::<4>(value, 1)?).ok()?,
        6 => write!(out, "{}", signed::<8>(value, 1)?).ok()?,
        7 => print_float(f64::from_le_bytes(value.get(1..9)?.try_into().ok()?), out)?,
        8 => print_decimal(signed::<4>(value, 2)?, *value.get(1)?, out)?,
        9 => print_decimal(signed::<8>(value, 2)?, *value.get(1)?, out)?,
        10 => print_decimal(signed::<16>(value, 2)?, *value.get(1)?, out)?,
        11 => {
            let days = i64::try_from(signed::<4>(value, 1)?).ok()?;
            let date = NaiveDate::default().checked_add_signed(TimeDelta::try_days(days)?)?;
            write!(out, "\"{date}\"").ok()?;
        }
        12 | 13 => {
            let moment = DateTime::from_timestamp_micros(i64::try_from(signed::<8>(value, 1)?).ok()?)?;
            write!(out, "\"{}{}\"", moment.format("%Y-%m-%d %H:%M:%S%.f"), if kind == 12 { "+00:00" } else { "" }).ok()?;
        }
        14 => print_float(f32::from_le_bytes(value.get(1..5)?.try_into().ok()?).into(), out)?,
        15 => write!(out, "\"{}\"", STANDARD.encode(long(value)?)).ok()?,
        16 => quote(std::str::from_utf8(long(value)?).ok()?, out)?,
        20 => write!(out, "\"{}\"", uuid::Uuid::from_slice(value.get(1..17)?).ok()?).ok()?,
        _ => return None,
    }
    Some(())
}

/// The bytes of a long string or a binary: four bytes of length before them.
fn long(value: &[u8]) -> Option<&[u8]> {
    value.get(5..5 + number(value, 1, 4)?)
}

fn print_float(value: f64, out: &mut String) -> Option<()> {
    match value {
        v if v.is_nan() => out.push_str("\"NaN\""),
        v if v.is_infinite() => out.push_str(if v > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" }),
        v if v != 0.0 && !(1e-3..1e7).contains(&v.abs()) => {
            let text = format!("{v:E}");
            let (mantissa, exponent) = text.split_once('E')?;
            let dot = if mantissa.contains('.') { "" } else { ".0" };
            write!(out, "{mantissa}{dot}E{exponent}").ok()?;
        }
        v => write!(out, "{v:?}").ok()?,
    }
    Some(())
}

fn print_decimal(unscaled: i128, scale: u8, out: &mut String) -> Option<()> {
    let scale = usize::from(scale);
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    let sign = if unscaled < 0 { "-" } else { "" };
    let dot = if fraction.is_empty() { "" } else { "." };
    write!(out, "{sign}{whole}{dot}{fraction}").ok()
}

fn quote(text: &str, out: &mut String) -> Option<()> {
    out.push_str(&serde_json::to_string(text).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(metadata: &[u8], value: &[u8], expect: Option<&str>) {
        let mut out = String::new();
        let done = Names::new(metadata).and_then(|names| print(value, &names, 8, &mut out));
        assert_eq!(done.map(|()| out).as_deref(), expect);
    }

    const NONE: &[u8] = &[1, 0, 0];
    /// The dictionary ["a", "bc"].
    const AB: &[u8] = &[1, 2, 0, 1, 3, b'a', b'b', b'c'];

    #[test]
    fn primitives() {
        check(NONE, &[0], Some("null"));
        check(NONE, &[3 << 2, 0xff], Some("-1"));
        check(NONE, &[5 << 2, 1, 0, 0, 0x80], Some("-2147483647"));
        check(NONE, &[8 << 2, 2, 0x7b, 0, 0, 0], Some("1.23"));
        check(NONE, &[8 << 2, 3, 0xff, 0xff, 0xff, 0xff], Some("-0.001"));
        check(NONE, &[8 << 2, 1, 10, 0, 0, 0], Some("1"));
        check(NONE, &[11 << 2, 1, 0, 0, 0], Some("\"1970-01-02\""));
        check(NONE, &[12 << 2, 64, 66, 15, 0, 0, 0, 0, 0], Some("\"1970-01-01 00:00:01+00:00\""));
        check(NONE, &[16 << 2, 2, 0, 0, 0, b'h', b'"'], Some("\"h\\\"\""));
        check(NONE, &[(2 << 2) | 1, b'h', b'i'], Some("\"hi\""));
    }

    #[test]
    fn floats_print_as_java_does() {
        #[track_caller]
        fn float(value: f64, expect: &str) {
            let mut bytes = vec![7 << 2];
            bytes.extend(value.to_le_bytes());
            check(NONE, &bytes, Some(expect));
        }
        float(1.5, "1.5");
        float(0.0, "0.0");
        float(1e7, "1.0E7");
        float(1.25e-5, "1.25E-5");
        float(f64::NAN, "\"NaN\"");
    }

    #[test]
    fn null_fields_go_and_null_elements_stay() {
        let object = [2, 2, 0, 1, 0, 1, 3, 0, 3 << 2, 7];
        check(AB, &object, Some("{\"bc\":7}"));
        let array = [3, 2, 0, 1, 3, 0, 3 << 2, 7];
        check(AB, &array, Some("[null,7]"));
    }

    #[test]
    fn damage_is_told() {
        check(NONE, &[], None);
        check(NONE, &[5 << 2, 1], None);
        check(NONE, &[63 << 2], None);
        check(NONE, &[2, 1, 9, 0, 2, 3 << 2, 7], None);
        check(&[1, 200], &[0], Some("null"));
        check(&[], &[0], None);
        let nested = [3, 1, 0, 9].repeat(20);
        check(NONE, &nested, None);
    }
}
