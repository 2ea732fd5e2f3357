//! What a client is told of a column beside its Arrow type: the standard's metadata of fields, which JDBC's `getPrecision`, `getScale` and
//! `getColumnTypeName` read.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

/// The schema with its columns' type names, precisions (digits, or characters of a moment) and scales.
#[must_use]
pub fn typed(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        metadata.insert(key("TYPE_NAME"), type_name(field.data_type()));
        if let Some((precision, scale)) = precision_and_scale(field.data_type()) {
            metadata.extend([(key("PRECISION"), precision.to_string()), (key("SCALE"), scale.to_string())]);
        }
        field.as_ref().clone().with_metadata(metadata)
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<Field>>(), schema.metadata().clone()))
}

/// The standard's name of a field's property.
pub(super) fn key(property: &str) -> String {
    format!("ARROW:FLIGHT:SQL:{property}")
}

fn precision_and_scale(data_type: &DataType) -> Option<(i32, i32)> {
    match data_type {
        DataType::Int8 => Some((3, 0)),
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::Float32 => Some((7, 0)),
        DataType::Float64 => Some((15, 0)),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => Some((i32::from(*precision), i32::from(*scale))),
        DataType::Timestamp(..) => Some((26, 6)),
        DataType::Date32 => Some((10, 0)),
        _ => None,
    }
}

/// A type as CREATE TABLE takes it.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "BINARY".to_owned(),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP_NTZ".to_owned(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::List(item) | DataType::LargeList(item) => format!("ARRAY<{}>", type_name(item.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let types: Vec<String> = pair.iter().map(|f| type_name(f.data_type())).collect();
                format!("MAP<{}>", types.join(", "))
            }
            _ => "MAP".to_owned(),
        },
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|f| format!("{}: {}", f.name(), type_name(f.data_type()))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        other => other.to_string().to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_has_its_digits() {
        let schema = typed(&Schema::new(vec![Field::new("d", DataType::Decimal128(10, 2), true), Field::new("s", DataType::Utf8, true)]));
        let told = |column: usize, property: &str| schema.field(column).metadata().get(&key(property)).cloned();
        assert_eq!((told(0, "PRECISION"), told(0, "SCALE")), (Some("10".to_owned()), Some("2".to_owned())));
        assert_eq!((told(1, "PRECISION"), told(1, "TYPE_NAME")), (None, Some("STRING".to_owned())));
    }

    #[test]
    fn types_are_named_as_they_are_created() {
        fn check(data_type: &DataType, expect: &str) {
            assert_eq!(type_name(data_type), expect);
        }
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        check(&DataType::List(Arc::clone(&item)), "ARRAY<BIGINT>");
        check(
            &DataType::Struct(vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Date32, true)].into()),
            "STRUCT<a: STRING, b: DATE>",
        );
        let pair = vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Decimal128(10, 2), true)];
        check(&DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair.into()), false)), false), "MAP<STRING, DECIMAL(10,2)>");
    }
}
