//! Changing a column's type to a wider one, so that files written before stay as they are.
//!
//! The protocol lists the pairs, and wants every change kept in the field's metadata: readers of the files go by it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use serde_json::{Value, json};

use super::schema::{TYPE_CHANGES, primitive_name};

/// The field with a wider type, or with one `below` it (`element`, `key`, `value`, from the outside in); `None` where the one type does
/// not widen to the other.
#[must_use]
pub fn widened(field: &Field, below: &[String], to: &DataType) -> Option<Field> {
    let (from, data_type) = replaced(field.data_type(), below, to)?;
    let mut change = json!({ "fromType": primitive_name(&from)?, "toType": primitive_name(to)? });
    if !below.is_empty() {
        change["fieldPath"] = below.join(".").to_ascii_lowercase().into();
    }
    let mut metadata = field.metadata().clone();
    let mut changes: Vec<Value> = metadata.get(TYPE_CHANGES).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    changes.push(change);
    metadata.insert(TYPE_CHANGES.to_owned(), Value::Array(changes).to_string());
    Some(field.clone().with_data_type(data_type).with_metadata(metadata))
}

/// The type that widens, and the whole type with the wider one in its place.
fn replaced(data_type: &DataType, below: &[String], to: &DataType) -> Option<(DataType, DataType)> {
    let Some((first, rest)) = below.split_first() else {
        return widens(data_type, to).then(|| (data_type.clone(), to.clone()));
    };
    let is = |name: &str| first.eq_ignore_ascii_case(name);
    let within = |field: &Field| {
        let (from, changed) = replaced(field.data_type(), rest, to)?;
        Some((from, Arc::new(field.clone().with_data_type(changed))))
    };
    match data_type {
        DataType::List(element) if is("element") => {
            let (from, element) = within(element)?;
            Some((from, DataType::List(element)))
        }
        DataType::Map(entries, sorted) if is("key") || is("value") => {
            let DataType::Struct(pair) = entries.data_type() else { return None };
            let mut pair: Vec<FieldRef> = pair.iter().cloned().collect();
            let place = pair.get_mut(usize::from(is("value")))?;
            let (from, changed) = within(place)?;
            *place = changed;
            let entries = entries.as_ref().clone().with_data_type(DataType::Struct(Fields::from(pair)));
            Some((from, DataType::Map(Arc::new(entries), *sorted)))
        }
        _ => None,
    }
}

fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp};
    // Digits before the point that a whole number may need.
    let digits = match from {
        Int8 | Int16 | Int32 => Some(10),
        Int64 => Some(20),
        _ => None,
    };
    match (from, to) {
        (Int8, Int16 | Int32 | Int64 | Float64) | (Int16, Int32 | Int64 | Float64) | (Int32, Int64 | Float64) | (Float32, Float64) => true,
        (Date32, Timestamp(_, None)) => true,
        (Decimal128(p, s), Decimal128(wider, scale)) => {
            let (before, after) = (i16::from(*p) - i16::from(*s), i16::from(*wider) - i16::from(*scale));
            scale >= s && after >= before && (p, s) != (wider, scale)
        }
        (_, Decimal128(p, s)) => digits.is_some_and(|digits| i16::from(*p) - i16::from(*s) >= digits),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocols_pairs() {
        use DataType::{Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Utf8};
        let check = |from: DataType, to: DataType, expect: bool| assert_eq!(widens(&from, &to), expect, "{from} to {to}");
        check(Int8, Int16, true);
        check(Int32, Int64, true);
        check(Int64, Int32, false);
        check(Int32, Float64, true);
        check(Int64, Float64, false);
        check(Float32, Float64, true);
        check(Date32, DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None), true);
        check(Date32, DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("UTC".into())), false);
        check(Decimal128(10, 2), Decimal128(12, 4), true);
        check(Decimal128(10, 2), Decimal128(11, 4), false);
        check(Decimal128(10, 2), Decimal128(10, 2), false);
        check(Int32, Decimal128(10, 0), true);
        check(Int32, Decimal128(10, 1), false);
        check(Int64, Decimal128(20, 0), true);
        check(Int32, Utf8, false);
    }

    #[test]
    fn changes_are_kept_in_their_order() {
        let field = widened(&Field::new("a", DataType::Int8, true), &[], &DataType::Int16).unwrap();
        let field = widened(&field, &[], &DataType::Int64).unwrap();
        let expect = r#"[{"fromType":"byte","toType":"short"},{"fromType":"short","toType":"long"}]"#;
        assert_eq!((field.data_type(), field.metadata()[TYPE_CHANGES].as_str()), (&DataType::Int64, expect));
        let list = Field::new_list("l", Field::new("element", DataType::Int32, true), true);
        let wider = widened(&list, &["Element".to_owned()], &DataType::Int64).unwrap();
        assert_eq!(*wider.data_type(), DataType::List(Arc::new(Field::new("element", DataType::Int64, true))));
        assert_eq!(wider.metadata()[TYPE_CHANGES], r#"[{"fieldPath":"element","fromType":"integer","toType":"long"}]"#);
        assert_eq!(widened(&list, &["key".to_owned()], &DataType::Int64), None);
    }
}
