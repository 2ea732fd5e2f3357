//! Changing a column's type to a wider one, so that files written before stay as they are.
//!
//! The protocol lists the pairs, and wants every change kept in the field's metadata: readers of the files go by it.

use arrow::datatypes::{DataType, Field};
use serde_json::{Value, json};

use super::schema::{TYPE_CHANGES, primitive_name};

/// The field with the wider type; `None` where the one type does not widen to the other.
#[must_use]
pub fn widened(field: &Field, to: &DataType) -> Option<Field> {
    if !widens(field.data_type(), to) {
        return None;
    }
    let mut metadata = field.metadata().clone();
    let mut changes: Vec<Value> = metadata.get(TYPE_CHANGES).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    changes.push(json!({ "fromType": primitive_name(field.data_type())?, "toType": primitive_name(to)? }));
    metadata.insert(TYPE_CHANGES.to_owned(), Value::Array(changes).to_string());
    Some(field.clone().with_data_type(to.clone()).with_metadata(metadata))
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
        let field = widened(&Field::new("a", DataType::Int8, true), &DataType::Int16).unwrap();
        let field = widened(&field, &DataType::Int64).unwrap();
        let expect = r#"[{"fromType":"byte","toType":"short"},{"fromType":"short","toType":"long"}]"#;
        assert_eq!((field.data_type(), field.metadata()[TYPE_CHANGES].as_str()), (&DataType::Int64, expect));
    }
}
