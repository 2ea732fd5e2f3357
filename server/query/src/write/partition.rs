//! Partition values: split, serialised, escaped.
//!
//! A value is text in the log (protocol, "Partition Value Serialization"): an empty string is NULL. It also names a folder, escaped
//! as Hive does; and the folder's path is percent-encoded once more when the log names it. So the value `a/b` of column `p` lies in the folder
//! `p=a%2Fb`, which the log calls `p=a%252Fb`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, SchemaRef, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::row::{RowConverter, SortField};
use chrono::{DateTime, NaiveDate};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::{Error, Result};

/// The folder name of NULL.
const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";

/// What stays as it is in a path of the log: the unreserved and the harmless.
const LOG_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b'=')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'&')
    .remove(b'$')
    .remove(b'!')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'@');

/// A path as the log writes it: percent-encoded.
#[must_use]
pub fn log_path(path: &str) -> String {
    utf8_percent_encode(path, LOG_PATH).to_string()
}

/// A name or value as part of a folder's name, escaped as Hive does.
#[must_use]
pub fn hive_escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '#' | '%' | '\'' | '*' | '/' | ':' | '=' | '?' | '\\' | '{' | '[' | ']' | '^' => push_escaped(&mut escaped, c),
            c if c.is_ascii_control() => push_escaped(&mut escaped, c),
            c => escaped.push(c),
        }
    }
    escaped
}

fn push_escaped(text: &mut String, c: char) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let code = u32::from(c) as usize;
    text.push('%');
    text.push(char::from(HEX[code >> 4 & 15]));
    text.push(char::from(HEX[code & 15]));
}

/// The rows of one partition: its values (by column name, as in the log) and its folder (empty, or ending in a slash).
#[derive(Debug)]
pub struct Part {
    /// Values by the given names.
    pub values: BTreeMap<String, Option<String>>,
    /// Folder relative to the table, Hive-escaped, not percent-encoded.
    pub folder: String,
    /// Its rows without the partition columns.
    pub rows: RecordBatch,
}

/// Splits batches of table rows by their partition values.
#[derive(Debug)]
pub struct Splitter {
    /// Position and physical name of each partition column.
    partition: Vec<(usize, String)>,
    /// Positions of the other columns.
    rest: Vec<usize>,
    /// Make a folder for each partition (not where columns are mapped: names of folders would be of no use).
    folders: bool,
    converter: Option<RowConverter>,
}

impl Splitter {
    /// For batches of `schema`, whose columns at these positions are the partition columns.
    ///
    /// # Errors
    /// A partition column of a nested type.
    pub fn new(schema: &SchemaRef, partition: Vec<(usize, String)>, folders: bool) -> Result<Self> {
        let rest = (0..schema.fields().len()).filter(|i| partition.iter().all(|(p, _)| p != i)).collect();
        let converter = match partition.is_empty() {
            true => None,
            false => {
                let keys = partition.iter().map(|(i, _)| SortField::new(schema.field(*i).data_type().clone())).collect();
                Some(RowConverter::new(keys).map_err(|e| Error::Internal(e.to_string()))?)
            }
        };
        Ok(Self { partition, rest, folders, converter })
    }

    /// The partitions of a batch.
    ///
    /// # Errors
    /// A value that cannot be a partition value.
    pub fn split(&mut self, batch: &RecordBatch) -> Result<Vec<Part>> {
        let rows = batch.project(&self.rest).map_err(|e| Error::Internal(e.to_string()))?;
        let Some(converter) = &self.converter else {
            return Ok(vec![Part { values: BTreeMap::new(), folder: String::new(), rows }]);
        };
        let keys: Vec<ArrayRef> = self.partition.iter().map(|(i, _)| Arc::clone(batch.column(*i))).collect();
        let keys = converter.convert_columns(&keys).map_err(|e| Error::Internal(e.to_string()))?;
        let mut groups: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for (row, key) in keys.iter().enumerate() {
            groups.entry(key).or_default().push(u32::try_from(row).map_err(|e| Error::Internal(e.to_string()))?);
        }
        groups.into_values().map(|group| self.part(batch, &rows, group)).collect()
    }

    fn part(&self, batch: &RecordBatch, rows: &RecordBatch, group: Vec<u32>) -> Result<Part> {
        let first = group.first().map_or(0, |row| *row as usize);
        let mut values = BTreeMap::new();
        let mut folder = String::new();
        for (column, name) in &self.partition {
            let value = serialise(batch.column(*column).as_ref(), first)?;
            if self.folders {
                let shown = folder_value(batch.column(*column).data_type(), value.as_deref());
                folder.push_str(&format!("{}={shown}/", hive_escape(name)));
            }
            values.insert(name.clone(), value);
        }
        let rows = if group.len() == rows.num_rows() {
            rows.clone()
        } else {
            arrow::compute::take_record_batch(rows, &UInt32Array::from(group)).map_err(|e| Error::Internal(e.to_string()))?
        };
        Ok(Part { values, folder, rows })
    }
}

/// What Hive names the folder: a timestamp with a space instead of `T`, everything else as in the log.
fn folder_value(data_type: &DataType, value: Option<&str>) -> String {
    match (data_type, value) {
        (_, None) => NULL_FOLDER.to_owned(),
        (DataType::Timestamp(_, Some(_)), Some(value)) => hive_escape(&value.replace('T', " ").replace('Z', "")),
        (_, Some(value)) => hive_escape(value),
    }
}

/// A value as the log writes partition values; `None` is NULL.
///
/// # Errors
/// Binary that is no UTF-8, a date or time out of range, a type that cannot partition a table.
pub fn serialise(values: &dyn Array, row: usize) -> Result<Option<String>> {
    if values.is_null(row) {
        return Ok(None);
    }
    let text = match values.data_type() {
        DataType::Utf8 => values.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => std::str::from_utf8(values.as_binary::<i32>().value(row))
            .map_err(|_| Error::Invalid { message: "binary partition values must be UTF-8 text".to_owned(), location: None })?
            .to_owned(),
        DataType::Boolean => values.as_boolean().value(row).to_string(),
        DataType::Int8 => values.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => values.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => values.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => values.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => float(values.as_primitive::<Float32Type>().value(row), f32::is_finite, f32::is_nan),
        DataType::Float64 => float(values.as_primitive::<Float64Type>().value(row), f64::is_finite, f64::is_nan),
        DataType::Decimal128(..) => values.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Date32 => date(values.as_primitive::<Date32Type>().value(row))?,
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            timestamp(values.as_primitive::<TimestampMicrosecondType>().value(row), zone.is_some())?
        }
        other => {
            return Err(Error::Unsupported {
                message: format!("a table cannot be partitioned by a column of type {other}"),
                location: None,
            });
        }
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn float<T: std::fmt::Debug + Copy + PartialOrd + Default>(value: T, finite: fn(T) -> bool, nan: fn(T) -> bool) -> String {
    match (finite(value), nan(value)) {
        (true, _) => format!("{value:?}"),
        (_, true) => "NaN".to_owned(),
        _ if value > T::default() => "Infinity".to_owned(),
        _ => "-Infinity".to_owned(),
    }
}

/// A date as `yyyy-MM-dd`.
pub(crate) fn date(days: i32) -> Result<String> {
    // 719 163 days from the first of January of year 1 to that of 1970.
    let date = days.checked_add(719_163).and_then(NaiveDate::from_num_days_from_ce_opt);
    date.map(|d| d.format("%Y-%m-%d").to_string()).ok_or_else(|| out_of_range("date", i64::from(days)))
}

fn timestamp(micros: i64, instant: bool) -> Result<String> {
    let time = DateTime::from_timestamp_micros(micros).ok_or_else(|| out_of_range("timestamp", micros))?;
    Ok(match (instant, time.timestamp_subsec_micros()) {
        (true, _) => time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        (false, 0) => time.format("%Y-%m-%d %H:%M:%S").to_string(),
        (false, _) => time.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
    })
}

fn out_of_range(what: &str, value: i64) -> Error {
    Error::Execution(format!("{what} {value} is out of range"))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, StringArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn folders_and_log_paths_are_those_of_spark() {
        let check = |value: &str, folder: &str, logged: &str| {
            assert_eq!(hive_escape(value), folder, "{value:?}");
            assert_eq!(log_path(&hive_escape(value)), logged, "{value:?}");
        };
        // From golden table partitions_string.
        check("#?&", "%23%3F&", "%2523%253F&");
        check("%20", "%2520", "%252520");
        check("[y]", "%5By%5D", "%255By%255D");
        check("{x}", "%7Bx}", "%257Bx%7D");
        check("..", "..", "..");
        check("12:30:00", "12%3A30%3A00", "12%253A30%253A00");
        check("a b", "a b", "a%20b");
        check("a/b", "a%2Fb", "a%252Fb");
        check("a+b", "a+b", "a+b");
        check("a,b;c", "a,b;c", "a,b;c");
        check("back\\slash", "back%5Cslash", "back%255Cslash");
        check("it's", "it%27s", "it%2527s");
        check("k=v", "k%3Dv", "k%253Dv");
        check("new\nline", "new%0Aline", "new%250Aline");
        check("~^`|<>*", "~%5E`|<>%2A", "~%255E%60%7C%3C%3E%252A");
        check("ü", "ü", "%C3%BC");
    }

    #[test]
    fn values_are_serialised_as_the_protocol_says() {
        let check = |values: ArrayRef, expect: Option<&str>| {
            assert_eq!(serialise(values.as_ref(), 0).unwrap().as_deref(), expect, "{values:?}");
        };
        check(Arc::new(StringArray::from(vec![" lead"])), Some(" lead"));
        check(Arc::new(StringArray::from(vec![""])), None);
        check(Arc::new(StringArray::from(vec![None::<&str>])), None);
        check(Arc::new(BooleanArray::from(vec![true])), Some("true"));
        check(Arc::new(Int32Array::from(vec![i32::MIN])), Some("-2147483648"));
        check(Arc::new(Float64Array::from(vec![1.5])), Some("1.5"));
        check(Arc::new(Float64Array::from(vec![f64::NEG_INFINITY])), Some("-Infinity"));
        check(Arc::new(Float64Array::from(vec![f64::NAN])), Some("NaN"));
        check(Arc::new(Decimal128Array::from(vec![150]).with_precision_and_scale(10, 2).unwrap()), Some("1.50"));
        check(Arc::new(Date32Array::from(vec![-1])), Some("1969-12-31"));
        check(Arc::new(Date32Array::from(vec![-719_162])), Some("0001-01-01"));
        let instant = TimestampMicrosecondArray::from(vec![-500_000]).with_timezone("UTC");
        check(Arc::new(instant), Some("1969-12-31T23:59:59.500000Z"));
        check(Arc::new(TimestampMicrosecondArray::from(vec![0])), Some("1970-01-01 00:00:00"));
        check(Arc::new(TimestampMicrosecondArray::from(vec![1])), Some("1970-01-01 00:00:00.000001"));
        check(Arc::new(BinaryArray::from(vec![b"AB".as_slice()])), Some("AB"));
        assert!(serialise(&BinaryArray::from(vec![[0xff].as_slice()]), 0).is_err());
    }

    #[test]
    fn rows_go_to_their_partitions() {
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int32, true), Field::new("p", DataType::Utf8, true)]));
        let batch = RecordBatch::try_new(
            Arc::clone(&schema),
            vec![Arc::new(Int32Array::from(vec![1, 2, 3, 4])), Arc::new(StringArray::from(vec![Some("b"), None, Some("a/b"), Some("b")]))],
        )
        .unwrap();
        let mut splitter = Splitter::new(&schema, vec![(1, "p".to_owned())], true).unwrap();
        let parts = splitter.split(&batch).unwrap();
        let shown: Vec<_> = parts.iter().map(|p| (p.folder.as_str(), p.values["p"].as_deref(), p.rows.num_rows())).collect();
        assert_eq!(shown, [("p=__HIVE_DEFAULT_PARTITION__/", None, 1), ("p=a%2Fb/", Some("a/b"), 1), ("p=b/", Some("b"), 2)]);
        assert_eq!(parts[2].rows.column(0).as_primitive::<Int32Type>().values(), &[1, 4]);
        assert_eq!(parts[2].rows.num_columns(), 1);
    }
}
