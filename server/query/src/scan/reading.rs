//! How a column of a file becomes the column that a query sees.
//!
//! A table's columns are renamed, dropped, added again and widened while its old files stay as they are. So for each file and column
//! there is a plan, made once from both types: which child holds which field, where NULL stands in for a field that the file lacks,
//! which values are cast (only widenings occur, so a cast never loses), padded (CHAR) or decoded (variant). The outcome has exactly the
//! presented type, to the names and nullability of its innermost field.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StringArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use asof_storage::snapshot::ColumnMapping;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use super::columns::{char_length, find, is_variant, present, presented_type, scanned_type};
use super::variant;

/// A plan to read one column or nested field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reading {
    /// As it lies.
    Same,
    /// Widened to this type.
    Cast(DataType),
    /// CHAR(n): padded with blanks to so many characters.
    Pad(usize),
    /// A variant's JSON text.
    Json,
    /// A struct, child by child.
    Struct(Vec<Child>),
    /// A list with the presented element.
    List(FieldRef, Box<Reading>),
    /// A map with the presented entries, keys and values.
    Map(FieldRef, bool, Box<Reading>),
}

/// A child of a struct.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Child {
    /// As queries see it.
    pub field: FieldRef,
    /// Where it lies in the file's struct: position and name; `None`: NULL.
    pub from: Option<(usize, String)>,
    /// How it is read from there.
    pub reading: Reading,
}

impl Reading {
    /// The plan for the snapshot's column `stored`, which lies in a file as `found`: as for a field, but text becomes a view.
    pub(super) fn column(stored: &Field, found: &DataType, mapping: ColumnMapping) -> Result<Self> {
        match (scanned_type(stored), found) {
            (DataType::Utf8View, DataType::Utf8View) => Ok(Self::Same),
            (view @ DataType::Utf8View, _) if can_cast_types(found, &view) => Ok(Self::Cast(view)),
            _ => Self::plan(stored, found, mapping),
        }
    }

    /// The plan for the snapshot's field `stored`, which lies in a file as `found`.
    pub(super) fn plan(stored: &Field, found: &DataType, mapping: ColumnMapping) -> Result<Self> {
        if is_variant(stored) {
            return match found {
                DataType::Struct(_) => Ok(Self::Json),
                other => exec_err!("column {} is a variant, but the file holds {other}", stored.name()),
            };
        }
        if let Some(n) = char_length(stored) {
            return Ok(Self::Pad(n));
        }
        if !stored.data_type().is_nested() && stored.data_type() == found {
            return Ok(Self::Same);
        }
        match (stored.data_type(), found) {
            (DataType::Struct(fields), DataType::Struct(found)) => Self::structure(fields, found, mapping),
            (DataType::List(element), DataType::List(found) | DataType::LargeList(found) | DataType::FixedSizeList(found, _)) => {
                let inner = Self::plan(element, found.data_type(), mapping)?;
                Ok(Self::List(Arc::new(present(element)), Box::new(inner)))
            }
            (DataType::Map(entries, sorted), DataType::Map(found, _)) => {
                let inner = Self::entries(entries.data_type(), found.data_type(), mapping)?;
                Ok(Self::Map(Arc::new(present(entries)), *sorted, Box::new(inner)))
            }
            (to, from) if !to.is_nested() && can_cast_types(from, to) => Ok(Self::Cast(to.clone())),
            (to, from) => exec_err!("column {} has type {to}, but the file holds {from}", stored.name()),
        }
    }

    fn structure(fields: &Fields, found: &Fields, mapping: ColumnMapping) -> Result<Self> {
        let child = |stored: &FieldRef| {
            let field = Arc::new(present(stored));
            match find(stored, found, mapping) {
                Some(at) => {
                    let reading = Self::plan(stored, found[at].data_type(), mapping)?;
                    Ok(Child { field, from: Some((at, found[at].name().clone())), reading })
                }
                None => Ok(Child { field, from: None, reading: Self::Same }),
            }
        };
        Ok(Self::Struct(fields.iter().map(child).collect::<Result<_>>()?))
    }

    /// A map's entries are matched by position: writers name them as they like.
    fn entries(stored: &DataType, found: &DataType, mapping: ColumnMapping) -> Result<Self> {
        let (DataType::Struct(stored), DataType::Struct(found)) = (stored, found) else {
            return exec_err!("a map's entries are {found} in the file");
        };
        let child = |(at, (stored, found)): (usize, (&FieldRef, &FieldRef))| {
            let reading = Self::plan(stored, found.data_type(), mapping)?;
            Ok(Child { field: Arc::new(present(stored)), from: Some((at, found.name().clone())), reading })
        };
        Ok(Self::Struct(stored.iter().zip(found.iter()).enumerate().map(child).collect::<Result<_>>()?))
    }

    /// Reads an array of a file.
    pub(super) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Same => Ok(Arc::clone(array)),
            Self::Cast(to) => widen(array, to),
            Self::Pad(n) => pad(array, *n),
            Self::Json => variant::to_json(array),
            Self::Struct(children) => structure(array, children),
            Self::List(element, inner) => {
                let found = match array.data_type() {
                    DataType::LargeList(f) | DataType::FixedSizeList(f, _) => &widen(array, &DataType::List(Arc::clone(f)))?,
                    _ => array,
                };
                let list = found.as_list::<i32>();
                let values = inner.apply(list.values())?;
                Ok(Arc::new(ListArray::try_new(Arc::clone(element), list.offsets().clone(), values, list.nulls().cloned())?))
            }
            Self::Map(entries, sorted, inner) => {
                let map = array.as_map();
                let found: ArrayRef = Arc::new(map.entries().clone());
                let read = inner.apply(&found)?.as_struct().clone();
                Ok(Arc::new(MapArray::try_new(Arc::clone(entries), map.offsets().clone(), read, map.nulls().cloned(), *sorted)?))
            }
        }
    }
}

fn widen(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

fn structure(array: &ArrayRef, children: &[Child]) -> Result<ArrayRef, ArrowError> {
    let found = array.as_struct();
    let read = |child: &Child| match &child.from {
        Some((at, _)) => child.reading.apply(found.column(*at)),
        None => Ok(new_null_array(child.field.data_type(), found.len())),
    };
    let columns = children.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let fields: Fields = children.iter().map(|c| Arc::clone(&c.field)).collect();
    Ok(Arc::new(StructArray::try_new_with_length(fields, columns, found.nulls().cloned(), found.len())?))
}

/// CHAR(n) values as SQL sees them: blank-padded to n characters.
pub(super) fn pad(array: &ArrayRef, n: usize) -> Result<ArrayRef, ArrowError> {
    let text = widen(array, &DataType::Utf8)?;
    let text = text.as_string::<i32>();
    if text.iter().flatten().all(|v| v.chars().count() >= n) {
        return Ok(Arc::new(text.clone()));
    }
    Ok(Arc::new(text.iter().map(|v| v.map(|v| format!("{v:<n$}"))).collect::<StringArray>()))
}

/// A [`Reading`] as an expression over a file's column.
#[derive(Clone, Debug, Eq)]
pub(super) struct Read {
    child: Arc<dyn PhysicalExpr>,
    reading: Reading,
    field: FieldRef,
}

// Neither is derived: the derived comparison moves out of the `Arc<dyn …>`.
impl PartialEq for Read {
    fn eq(&self, other: &Self) -> bool {
        self.child.eq(&other.child) && self.reading == other.reading && self.field == other.field
    }
}

impl Hash for Read {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.child.hash(state);
        self.reading.hash(state);
        self.field.hash(state);
    }
}

impl Read {
    pub(super) fn new(child: Arc<dyn PhysicalExpr>, reading: Reading, stored: &Field) -> Self {
        Self { child, reading, field: Arc::new(Field::new(stored.name(), presented_type(stored), stored.is_nullable())) }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read({} as {})", self.child, self.field.name())
    }
}

impl PhysicalExpr for Read {
    fn return_field(&self, _input_schema: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let array = self.child.evaluate(batch)?.into_array(batch.num_rows())?;
        Ok(ColumnarValue::Array(self.reading.apply(&array)?))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.child]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let Some(child) = children.pop() else {
            return exec_err!("a read has one child");
        };
        Ok(Arc::new(Self { child, reading: self.reading.clone(), field: Arc::clone(&self.field) }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.child.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, Int64Array};
    use arrow::datatypes::TimeUnit;

    fn nullable(name: &str, data_type: DataType) -> FieldRef {
        Arc::new(Field::new(name, data_type, true))
    }

    #[track_caller]
    fn check(stored: &Field, found: impl Array + 'static) -> ArrayRef {
        let found: ArrayRef = Arc::new(found);
        let reading = Reading::plan(stored, found.data_type(), ColumnMapping::None).unwrap();
        let read = reading.apply(&found).unwrap();
        assert_eq!(read.data_type(), &presented_type(stored));
        read
    }

    #[test]
    fn structs_are_rebuilt_child_by_child() {
        let found = StructArray::from(vec![
            (nullable("gone", DataType::Int32), Arc::new(Int32Array::from(vec![9, 9])) as ArrayRef),
            (nullable("a", DataType::Int32), Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef),
        ]);
        let stored = Field::new_struct("s", vec![nullable("new", DataType::Utf8), nullable("a", DataType::Int64)], true);
        let read = check(&stored, found);
        let read = read.as_struct();
        assert_eq!(read.column(0).null_count(), 2);
        assert_eq!(read.column(1).as_ref(), &Int64Array::from(vec![Some(1), None]));
    }

    #[test]
    fn lists_take_the_presented_element() {
        let found = ListArray::from_iter_primitive::<arrow::datatypes::Int32Type, _, _>([Some(vec![Some(1), None]), None]);
        let stored = Field::new_list("l", Field::new("element", DataType::Int64, true), true);
        let read = check(&stored, found);
        assert_eq!(read.as_list::<i32>().values().as_ref(), &Int64Array::from(vec![Some(1), None]));
        assert!(read.is_null(1));
    }

    #[test]
    fn dates_become_moments_and_numbers_decimals() {
        let dates = arrow::array::Date32Array::from(vec![-1, 2]);
        let moments = check(&Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true), dates);
        let day = 86_400_000_000;
        assert_eq!(moments.as_primitive::<arrow::datatypes::TimestampMicrosecondType>().values(), &[-day, 2 * day]);
        let numbers = Int32Array::from(vec![i32::MIN, 7]);
        let decimals = check(&Field::new("d", DataType::Decimal128(12, 2), true), numbers);
        assert_eq!(decimals.as_primitive::<arrow::datatypes::Decimal128Type>().values(), &[-214_748_364_800, 700]);
    }

    #[test]
    fn char_values_are_padded_by_characters() {
        let stored =
            Field::new("c", DataType::Utf8, true).with_metadata([("__CHAR_VARCHAR_TYPE_STRING".to_owned(), "char(3)".to_owned())].into());
        let read = check(&stored, StringArray::from(vec![Some("ü"), None, Some("abc")]));
        assert_eq!(read.as_string::<i32>(), &StringArray::from(vec![Some("ü  "), None, Some("abc")]));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let stored = Field::new_struct("s", vec![nullable("a", DataType::Int32)], true);
        let error = Reading::plan(&stored, &DataType::Int32, ColumnMapping::None).unwrap_err();
        assert!(error.to_string().contains("column s"), "{error}");
    }
}
