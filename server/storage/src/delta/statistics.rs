//! A file's statistics: from the log's JSON text, or from a checkpoint's typed columns, to the index's columns.
//!
//! Statistics only help: whatever is missing, of another type or no JSON at all counts as unknown, and its file is kept by every filter.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBuilder, Int64Builder, StructArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::shape::{IndexShape, Named, struct_of};
use super::values::{Bound, ValueColumn};

/// Writers cut timestamps to milliseconds: the greatest one stands for up to so many microseconds more.
const CUT: i64 = 999;

/// A JSON object with its values left as their text, in the order written.
struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Object<'a> {
            type Value = Pairs<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(8));
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    pairs.push((key, value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object(std::marker::PhantomData))
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Pairs<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }
}

/// The log's `stats`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats<'a> {
    #[serde(default)]
    num_records: Option<i64>,
    #[serde(default)]
    tight_bounds: Option<bool>,
    #[serde(borrow, default)]
    min_values: Option<Pairs<'a>>,
    #[serde(borrow, default)]
    max_values: Option<Pairs<'a>>,
    #[serde(borrow, default)]
    null_count: Option<Pairs<'a>>,
}

/// The index's columns `rows`, `tight_bounds`, `min`, `max`, `null_count`.
pub struct StatisticsColumns {
    pub rows: ArrayRef,
    pub tight: ArrayRef,
    pub min: ArrayRef,
    pub max: ArrayRef,
    pub nulls: ArrayRef,
}

/// Builds them from text, file by file.
pub struct StatisticsBuilder<'s> {
    shape: &'s IndexShape,
    rows: Int64Builder,
    tight: BooleanBuilder,
    min: Vec<ValueColumn>,
    max: Vec<ValueColumn>,
    nulls: Vec<Int64Builder>,
    not_understood: usize,
    first_not_understood: Option<String>,
}

impl<'s> StatisticsBuilder<'s> {
    pub fn new(shape: &'s IndexShape) -> Self {
        let bounds = || shape.columns.iter().map(|c| ValueColumn::new(&c.data_type)).collect();
        Self {
            shape,
            rows: Int64Builder::new(),
            tight: BooleanBuilder::new(),
            min: bounds(),
            max: bounds(),
            nulls: shape.columns.iter().map(|_| Int64Builder::new()).collect(),
            not_understood: 0,
            first_not_understood: None,
        }
    }

    /// Appends a file's; what is not understood of them counts as unknown.
    pub fn push(&mut self, path: &str, text: Option<&str>) {
        // A list would do too, its items taken for the fields in their order.
        let object = |t: &&str| t.trim_start().starts_with('{');
        let stats: Option<Stats<'_>> = text.filter(object).and_then(|t| serde_json::from_str(t).ok());
        let mut understood = stats.is_some() || text.is_none();
        self.rows.append_option(stats.as_ref().and_then(|s| s.num_records));
        self.tight.append_value(stats.as_ref().and_then(|s| s.tight_bounds).unwrap_or(true));
        let values = stats.as_ref().map(|s| (s.min_values.as_ref(), s.max_values.as_ref(), s.null_count.as_ref()));
        let (min, max, nulls) = values.unwrap_or((None, None, None));
        for (i, named) in self.shape.columns.iter().enumerate() {
            let (min, max) = if named.no_bounds { (None, None) } else { (min, max) };
            understood &= self.min[i].push_stat(min.and_then(|m| m.get(&named.physical)), Bound::Min);
            understood &= self.max[i].push_stat(max.and_then(|m| m.get(&named.physical)), Bound::Max);
            self.nulls[i].append_option(nulls.and_then(|m| m.get(&named.physical)).and_then(|v| v.get().parse().ok()));
        }
        if !understood {
            self.not_understood += 1;
            self.first_not_understood.get_or_insert_with(|| path.to_owned());
        }
    }

    /// The columns. A warning names the first file whose statistics were not understood.
    pub fn finish(mut self) -> Result<StatisticsColumns, String> {
        if let Some(file) = self.first_not_understood {
            let files = self.not_understood;
            tracing::warn!(
                file,
                files,
                "statistics that are not as the schema wants count as unknown: no filter rules these files out by them"
            );
        }
        let finish = |columns: Vec<ValueColumn>| columns.into_iter().map(ValueColumn::finish).collect::<Vec<_>>();
        let nulls = self.nulls.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef).collect();
        let rows = Arc::new(self.rows.finish());
        let len = rows.len();
        Ok(StatisticsColumns {
            rows,
            tight: Arc::new(self.tight.finish()),
            min: struct_of(self.shape, "min", finish(self.min), len)?,
            max: struct_of(self.shape, "max", finish(self.max), len)?,
            nulls: struct_of(self.shape, "null_count", nulls, len)?,
        })
    }
}

/// From a checkpoint's column `stats_parsed`.
pub fn typed(shape: &IndexShape, parsed: &StructArray) -> Result<StatisticsColumns, String> {
    let len = parsed.len();
    let group = |name: &str| parsed.column_by_name(name).and_then(|c| c.as_struct_opt());
    let (min, max, nulls) = (group("minValues"), group("maxValues"), group("nullCount"));
    let bounds =
        |group: Option<&StructArray>, bound: Bound| shape.columns.iter().map(|c| bound_of(group, c, bound, len)).collect::<Vec<_>>();
    let counts = shape.columns.iter().map(|c| as_type(group_column(nulls, c), &DataType::Int64, len)).collect();
    let tight = as_type(parsed.column_by_name("tightBounds"), &DataType::Boolean, len);
    let tight: BooleanArray = tight.as_boolean().iter().map(|t| Some(t.unwrap_or(true))).collect();
    Ok(StatisticsColumns {
        rows: as_type(parsed.column_by_name("numRecords"), &DataType::Int64, len),
        tight: Arc::new(tight),
        min: struct_of(shape, "min", bounds(min, Bound::Min), len)?,
        max: struct_of(shape, "max", bounds(max, Bound::Max), len)?,
        nulls: struct_of(shape, "null_count", counts, len)?,
    })
}

fn group_column<'g>(group: Option<&'g StructArray>, named: &Named) -> Option<&'g ArrayRef> {
    group.and_then(|g| g.column_by_name(&named.physical))
}

fn bound_of(group: Option<&StructArray>, named: &Named, bound: Bound, len: usize) -> ArrayRef {
    let found = group_column(group, named).filter(|_| !named.no_bounds && named.data_type != DataType::Binary);
    let values = as_type(found, &named.data_type, len);
    match (values.data_type(), bound) {
        (DataType::Timestamp(TimeUnit::Microsecond, zone), Bound::Max) => {
            let raise = |t: i64| if t % 1000 == 0 { t.saturating_add(CUT) } else { t };
            let raised = values.as_primitive::<TimestampMicrosecondType>().unary::<_, TimestampMicrosecondType>(raise);
            Arc::new(raised.with_timezone_opt(zone.clone()))
        }
        _ => values,
    }
}

/// The column in the type wanted; NULLs where there is none, or of a type that cannot be it.
fn as_type(found: Option<&ArrayRef>, wanted: &DataType, len: usize) -> ArrayRef {
    let same_kind = |found: &DataType| found == wanted || is_text(found) == is_text(wanted);
    let cast = found.filter(|f| same_kind(f.data_type())).and_then(|f| cast(f, wanted).ok());
    cast.unwrap_or_else(|| new_null_array(wanted, len))
}

/// A number of another column that happens to be text is no number.
fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::ColumnMapping;
    use arrow::array::Int64Array;
    use arrow::datatypes::{Field, Int64Type, Schema};

    fn shape() -> IndexShape {
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
            Field::new("at", instant, true),
        ]);
        IndexShape::new(&schema, &[], ColumnMapping::None)
    }

    #[test]
    fn text() {
        let shape = shape();
        let mut builder = StatisticsBuilder::new(&shape);
        builder.push(
            "a",
            Some(r#"{"numRecords":3,"minValues":{"id":-1,"s":"a\"b","n":{"x":1}},"maxValues":{"id":"wrong"},"nullCount":{"s":2}}"#),
        );
        builder.push("b", Some("no JSON"));
        builder.push("c", None);
        assert_eq!((builder.not_understood, builder.first_not_understood.as_deref()), (2, Some("a")));
        let columns = builder.finish().unwrap();
        let rows = columns.rows.as_primitive::<Int64Type>();
        assert_eq!(rows, &Int64Array::from(vec![Some(3), None, None]));
        let (min, max) = (columns.min.as_struct(), columns.max.as_struct());
        assert_eq!(min.column(0).as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(-1), None, None]));
        assert_eq!(min.column(1).as_string::<i32>().value(0), "a\"b");
        assert_eq!(max.column(0).null_count(), 3);
        assert_eq!(columns.nulls.as_struct().column(1).as_primitive::<Int64Type>(), &Int64Array::from(vec![Some(2), None, None]));
    }

    #[test]
    fn a_bound_that_is_null_or_of_another_type_is_unknown() {
        let shape = shape();
        let mut builder = StatisticsBuilder::new(&shape);
        let check = |builder: &mut StatisticsBuilder<'_>, text: &str, not_understood| {
            builder.push("f", Some(text));
            assert_eq!(builder.not_understood, not_understood, "{text}");
        };
        check(&mut builder, r#"{"minValues":{"s":null,"id":null},"maxValues":{"s":null}}"#, 0);
        check(&mut builder, r#"{"minValues":{"s":7}}"#, 1);
        check(&mut builder, r#"{"minValues":{"s":"null"}}"#, 1);
        check(&mut builder, r#"{"maxValues":{"at":"soon"}}"#, 2);
        check(&mut builder, r#"{"minValues":3}"#, 3);
        check(&mut builder, "[]", 4);
        let columns = builder.finish().unwrap();
        let text = columns.min.as_struct().column(1).as_string::<i32>().clone();
        assert_eq!(text.iter().collect::<Vec<_>>(), [None, None, Some("null"), None, None, None]);
    }
}
