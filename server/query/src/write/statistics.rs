//! A data file's statistics, as the log's `stats` text.
//!
//! Gathered from the batches as they are encoded. Bounds of strings are cut to 32 characters: the lower one by cutting, the upper by
//! cutting and appending a character not below what was cut; where there is none the bound is left out, which is always sound. Bounds of
//! timestamps are cut to milliseconds (both downwards: readers of Delta allow for it). Floats that are no numbers and infinities get no
//! bound. Binary, boolean, lists and maps have null counts only.

use std::fmt::Write as _;

use arrow::array::{Array, AsArray, PrimitiveArray, RecordBatch, StringArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{max, max_string, min, min_string};
use arrow::datatypes::{
    ArrowNumericType, DataType, Date32Type, Decimal128Type, DecimalType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
};
use asof_storage::snapshot::ColumnMapping;
use chrono::{DateTime, Datelike};

use super::layout::physical_name;
use super::partition::date;

/// Characters kept of a string bound.
const PREFIX: usize = 32;

/// Which columns get statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// The first so many leaf columns (Delta: 32).
    First(usize),
    /// Every one.
    All,
    /// These, by path; a struct stands for all its leaves.
    Named(Vec<Vec<String>>),
}

impl Indexed {
    /// From the table's properties `delta.dataSkippingStatsColumns` and `delta.dataSkippingNumIndexedCols`.
    #[must_use]
    pub fn from_properties(columns: Option<&str>, count: Option<&str>) -> Self {
        if let Some(columns) = columns.filter(|c| !c.trim().is_empty()) {
            return Self::Named(column_paths(columns));
        }
        match count.and_then(|c| c.trim().parse::<i64>().ok()) {
            Some(count) => usize::try_from(count).map_or(Self::All, Self::First),
            None => Self::First(32),
        }
    }
}

/// `a, b.c, ``d.e``.f` → paths.
fn column_paths(text: &str) -> Vec<Vec<String>> {
    let (mut paths, mut path, mut part, mut quoted) = (vec![], vec![], String::new(), false);
    for c in text.chars() {
        match c {
            '`' => quoted = !quoted,
            '.' if !quoted => path.push(std::mem::take(&mut part).trim().to_owned()),
            ',' if !quoted => {
                path.push(std::mem::take(&mut part).trim().to_owned());
                paths.push(std::mem::take(&mut path));
            }
            c => part.push(c),
        }
    }
    path.push(part.trim().to_owned());
    paths.push(path);
    paths
}

/// A smallest or largest value.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Bound {
    Integer(i64),
    Float(f64),
    Single(f32),
    Decimal(i128),
    Text(String),
}

#[derive(Clone, Debug)]
struct Leaf {
    data_type: DataType,
    nulls: i64,
    least: Option<Bound>,
    greatest: Option<Bound>,
    /// A NaN was seen: it is above every number, so there is no upper bound.
    nan: bool,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Leaf),
    Struct(Vec<Column>),
}

#[derive(Clone, Debug)]
struct Column {
    /// Physical name.
    name: String,
    /// Position among its siblings in the file.
    position: usize,
    node: Node,
}

/// Statistics of the rows seen so far.
#[derive(Clone, Debug)]
pub struct Statistics {
    rows: i64,
    columns: Vec<Column>,
}

impl Statistics {
    /// For files with these (logical) columns, in the order of the file.
    #[must_use]
    pub fn new(columns: &[&Field], mapping: ColumnMapping, indexed: &Indexed) -> Self {
        let mut left = match indexed {
            Indexed::First(count) => *count,
            Indexed::All | Indexed::Named(_) => usize::MAX,
        };
        let columns = tree(columns, mapping, indexed, &mut left, &mut vec![]);
        Self { rows: 0, columns }
    }

    /// As [`Statistics::new`] for a whole schema.
    #[must_use]
    pub fn of_schema(schema: &Schema, mapping: ColumnMapping, indexed: &Indexed) -> Self {
        let columns: Vec<&Field> = schema.fields().iter().map(AsRef::as_ref).collect();
        Self::new(&columns, mapping, indexed)
    }

    /// Rows seen.
    #[must_use]
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// See a batch in the files' layout.
    pub fn update(&mut self, batch: &RecordBatch) {
        self.rows += i64::try_from(batch.num_rows()).unwrap_or(i64::MAX);
        for column in &mut self.columns {
            column.node.update(batch.column(column.position).as_ref(), None);
        }
    }

    /// The log's text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut json = format!("{{\"numRecords\":{}", self.rows);
        json.push_str(",\"minValues\":");
        object(&mut json, &self.columns, &|leaf| leaf.least.as_ref().and_then(|b| leaf.lower(b)));
        json.push_str(",\"maxValues\":");
        object(&mut json, &self.columns, &|leaf| leaf.greatest.as_ref().filter(|_| !leaf.nan).and_then(|b| leaf.upper(b)));
        json.push_str(",\"nullCount\":");
        object(&mut json, &self.columns, &|leaf| Some(leaf.nulls.to_string()));
        json.push_str(",\"tightBounds\":true}");
        json
    }
}

fn tree(fields: &[&Field], mapping: ColumnMapping, indexed: &Indexed, left: &mut usize, path: &mut Vec<String>) -> Vec<Column> {
    let mut columns = Vec::new();
    for (position, field) in fields.iter().enumerate() {
        path.push(field.name().clone());
        let node = match field.data_type() {
            DataType::Struct(children) => {
                let children: Vec<&Field> = children.iter().map(AsRef::as_ref).collect();
                let children = tree(&children, mapping, indexed, left, path);
                (!children.is_empty()).then_some(Node::Struct(children))
            }
            data_type if *left > 0 && named(indexed, path) => {
                *left -= 1;
                Some(Node::Leaf(Leaf { data_type: data_type.clone(), nulls: 0, least: None, greatest: None, nan: false }))
            }
            _ => None,
        };
        path.pop();
        columns.extend(node.map(|node| Column { name: physical_name(field, mapping).to_owned(), position, node }));
    }
    columns
}

fn named(indexed: &Indexed, path: &[String]) -> bool {
    let Indexed::Named(names) = indexed else { return true };
    names.iter().any(|name| name.len() <= path.len() && name.iter().zip(path).all(|(a, b)| a.eq_ignore_ascii_case(b)))
}

fn object(json: &mut String, columns: &[Column], value: &dyn Fn(&Leaf) -> Option<String>) {
    json.push('{');
    let mut first = true;
    for column in columns {
        let text = match &column.node {
            Node::Leaf(leaf) => value(leaf),
            Node::Struct(children) => {
                let mut inner = String::new();
                object(&mut inner, children, value);
                (inner != "{}").then_some(inner)
            }
        };
        let Some(text) = text else { continue };
        if !std::mem::take(&mut first) {
            json.push(',');
        }
        let _ = write!(json, "{}:{text}", quoted(&column.name));
    }
    json.push('}');
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl Node {
    fn update(&mut self, values: &dyn Array, parent: Option<&NullBuffer>) {
        let nulls = NullBuffer::union(parent, values.logical_nulls().as_ref());
        match self {
            Self::Struct(children) => {
                let Some(values) = values.as_struct_opt() else { return };
                for child in children {
                    child.node.update(values.column(child.position).as_ref(), nulls.as_ref());
                }
            }
            Self::Leaf(leaf) => leaf.update(values, nulls),
        }
    }
}

impl Leaf {
    fn update(&mut self, values: &dyn Array, nulls: Option<NullBuffer>) {
        let missing = nulls.as_ref().map_or(0, NullBuffer::null_count);
        self.nulls += i64::try_from(missing).unwrap_or(i64::MAX);
        if missing == values.len() {
            return;
        }
        match values.data_type() {
            DataType::Int8 => self.primitive::<Int8Type>(values, nulls, |v| Bound::Integer(v.into())),
            DataType::Int16 => self.primitive::<Int16Type>(values, nulls, |v| Bound::Integer(v.into())),
            DataType::Int32 => self.primitive::<Int32Type>(values, nulls, |v| Bound::Integer(v.into())),
            DataType::Int64 => self.primitive::<Int64Type>(values, nulls, Bound::Integer),
            DataType::Date32 => self.primitive::<Date32Type>(values, nulls, |v| Bound::Integer(v.into())),
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.primitive::<TimestampMicrosecondType>(values, nulls, Bound::Integer);
            }
            DataType::Decimal128(..) => self.primitive::<Decimal128Type>(values, nulls, Bound::Decimal),
            DataType::Float32 => {
                let values = values.as_primitive::<Float32Type>();
                for value in valid(values.values(), nulls.as_ref()) {
                    self.nan |= value.is_nan();
                    if !value.is_nan() {
                        self.widen(Some(Bound::Single(value)), Some(Bound::Single(value)));
                    }
                }
            }
            DataType::Float64 => {
                let values = values.as_primitive::<Float64Type>();
                for value in valid(values.values(), nulls.as_ref()) {
                    self.nan |= value.is_nan();
                    if !value.is_nan() {
                        self.widen(Some(Bound::Float(value)), Some(Bound::Float(value)));
                    }
                }
            }
            DataType::Utf8 => {
                let values = values.as_string::<i32>();
                let values = StringArray::new(values.offsets().clone(), values.values().clone(), nulls);
                let text = |v: &str| Bound::Text(v.to_owned());
                self.widen(min_string(&values).map(text), max_string(&values).map(text));
            }
            _ => {}
        }
    }

    fn primitive<T: ArrowNumericType>(&mut self, values: &dyn Array, nulls: Option<NullBuffer>, bound: fn(T::Native) -> Bound) {
        let values = PrimitiveArray::<T>::new(values.as_primitive::<T>().values().clone(), nulls);
        self.widen(min(&values).map(bound), max(&values).map(bound));
    }

    fn widen(&mut self, least: Option<Bound>, greatest: Option<Bound>) {
        if least.is_some() && self.least.as_ref().is_none_or(|known| least.as_ref() < Some(known)) {
            self.least = least;
        }
        if greatest.is_some() && self.greatest.as_ref().is_none_or(|known| greatest.as_ref() > Some(known)) {
            self.greatest = greatest;
        }
    }

    fn lower(&self, bound: &Bound) -> Option<String> {
        match bound {
            Bound::Text(text) => Some(quoted(&text.chars().take(PREFIX).collect::<String>())),
            other => self.exact(other),
        }
    }

    fn upper(&self, bound: &Bound) -> Option<String> {
        match bound {
            Bound::Text(text) => truncated_above(text).map(|t| quoted(&t)),
            // A negative zero may be compared as less than zero.
            Bound::Float(0.0) => Some("0.0".to_owned()),
            Bound::Single(0.0) => Some("0.0".to_owned()),
            other => self.exact(other),
        }
    }

    fn exact(&self, bound: &Bound) -> Option<String> {
        match (bound, &self.data_type) {
            (Bound::Integer(days), DataType::Date32) => {
                let text = date(i32::try_from(*days).ok()?).ok()?;
                (text.len() == 10).then(|| quoted(&text))
            }
            (Bound::Integer(micros), DataType::Timestamp(_, zone)) => {
                let time = DateTime::from_timestamp_micros(*micros).filter(|t| (0..=9999).contains(&t.year()))?;
                let pattern = if zone.is_some() { "%Y-%m-%dT%H:%M:%S%.3fZ" } else { "%Y-%m-%dT%H:%M:%S%.3f" };
                Some(quoted(&time.format(pattern).to_string()))
            }
            (Bound::Integer(value), _) => Some(value.to_string()),
            (Bound::Float(value), _) => value.is_finite().then(|| format!("{value:?}")),
            (Bound::Single(value), _) => value.is_finite().then(|| format!("{value:?}")),
            (Bound::Decimal(value), DataType::Decimal128(precision, scale)) => {
                Some(Decimal128Type::format_decimal(*value, *precision, *scale))
            }
            (Bound::Decimal(_) | Bound::Text(_), _) => None,
        }
    }
}

fn valid<T: Copy>(values: &[T], nulls: Option<&NullBuffer>) -> impl Iterator<Item = T> {
    values.iter().enumerate().filter(move |(row, _)| nulls.is_none_or(|n| n.is_valid(*row))).map(|(_, value)| *value)
}

/// At most 33 characters that are not below `text`; `None` where there are none.
fn truncated_above(text: &str) -> Option<String> {
    let mut characters = text.chars();
    let mut bound: String = characters.by_ref().take(PREFIX).collect();
    match characters.next() {
        None => {}
        Some(cut) if cut < '\u{7f}' => bound.push('\u{7f}'),
        Some(cut) if cut < char::MAX => bound.push(char::MAX),
        Some(_) => return None,
    }
    Some(bound)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, StructArray, TimestampMicrosecondArray,
    };
    use serde_json::{Value, json};

    use super::*;

    fn of(columns: Vec<(&str, ArrayRef)>, indexed: &Indexed) -> Value {
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
        let mut statistics = Statistics::of_schema(&batch.schema(), ColumnMapping::None, indexed);
        statistics.update(&batch.slice(0, 1));
        statistics.update(&batch.slice(1, batch.num_rows() - 1));
        serde_json::from_str(&statistics.to_json()).unwrap()
    }

    #[test]
    fn bounds_by_type() {
        let check = |values: ArrayRef, least: Value, greatest: Value, nulls: i64| {
            let json = of(vec![("c", values)], &Indexed::First(32));
            assert_eq!(json["minValues"].get("c").unwrap_or(&Value::Null), &least, "{json}");
            assert_eq!(json["maxValues"].get("c").unwrap_or(&Value::Null), &greatest, "{json}");
            assert_eq!(json["nullCount"]["c"], nulls, "{json}");
        };
        check(Arc::new(Int32Array::from(vec![Some(3), None, Some(-1)])), json!(-1), json!(3), 1);
        check(Arc::new(Int32Array::from(vec![None, None])), Value::Null, Value::Null, 2);
        check(Arc::new(Float64Array::from(vec![1.5, f64::NAN, -2.0])), json!(-2.0), Value::Null, 0);
        check(Arc::new(Float64Array::from(vec![1.5, f64::INFINITY])), json!(1.5), Value::Null, 0);
        check(Arc::new(Float64Array::from(vec![-0.0, -1.0])), json!(-1.0), json!(0.0), 0);
        check(Arc::new(Date32Array::from(vec![-1, 0])), json!("1969-12-31"), json!("1970-01-01"), 0);
        check(Arc::new(BooleanArray::from(vec![Some(true), None])), Value::Null, Value::Null, 1);
        check(Arc::new(BinaryArray::from(vec![b"x".as_slice(), b"y"])), Value::Null, Value::Null, 0);
        check(Arc::new(Decimal128Array::from(vec![150, -5]).with_precision_and_scale(10, 2).unwrap()), json!(-0.05), json!(1.50), 0);
        check(
            Arc::new(TimestampMicrosecondArray::from(vec![-1, 123_999]).with_timezone("UTC")),
            json!("1969-12-31T23:59:59.999Z"),
            json!("1970-01-01T00:00:00.123Z"),
            0,
        );
    }

    #[test]
    fn upper_bounds_of_cut_strings_are_not_below_them() {
        let check = |text: &str, expect: Option<String>| {
            let bound = truncated_above(text);
            assert!(bound.as_deref().is_none_or(|b| b >= text), "{text:?} → {bound:?}");
            assert_eq!(bound, expect, "{text:?}");
        };
        let p = "p".repeat(32);
        check("short", Some("short".to_owned()));
        check(&p, Some(p.clone()));
        check(&format!("{p}1"), Some(format!("{p}\u{7f}")));
        check(&format!("{p}\u{7f}"), Some(format!("{p}\u{10ffff}")));
        check(&"ü".repeat(40), Some(format!("{}\u{10ffff}", "ü".repeat(32))));
        check(&"\u{10ffff}".repeat(40), None);
    }

    #[test]
    fn nulls_of_a_struct_count_for_its_leaves() {
        let inner = Int32Array::from(vec![Some(100), Some(7), None]);
        let fields = vec![Field::new("a", DataType::Int32, true)].into();
        let values = StructArray::new(fields, vec![Arc::new(inner)], Some(NullBuffer::from(vec![false, true, true])));
        let json = of(vec![("s", Arc::new(values))], &Indexed::All);
        assert_eq!(json["nullCount"], json!({"s": {"a": 2}}));
        assert_eq!(json["maxValues"], json!({"s": {"a": 7}}));
        assert_eq!(json["numRecords"], 3);
    }

    #[test]
    fn which_columns_get_statistics() {
        let check = |columns: Option<&str>, count: Option<&str>, expect: &[&str]| {
            let one = || Arc::new(Int32Array::from(vec![1, 1])) as ArrayRef;
            let indexed = Indexed::from_properties(columns, count);
            let json = of(vec![("a", one()), ("b", one()), ("c.d", one())], &indexed);
            let names: Vec<_> = json["nullCount"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, expect);
        };
        check(None, None, &["a", "b", "c.d"]);
        check(None, Some("2"), &["a", "b"]);
        check(None, Some("0"), &[]);
        check(None, Some("-1"), &["a", "b", "c.d"]);
        check(Some("B, `c.d`"), Some("1"), &["b", "c.d"]);
    }
}
