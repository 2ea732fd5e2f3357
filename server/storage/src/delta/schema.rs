//! Between Delta's schema text and Arrow's schema, keeping each field's metadata at every level.
//!
//! Arrow's field metadata holds text only. A value that is text in the log stays as it is, any other becomes its JSON text; on the way back
//! the keys of which the protocol says that they are numbers, booleans or lists become those again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use serde_json::{Map, Value, json};

/// Field metadata that marks a variant's struct.
pub const ASOF_TYPE: &str = "asof.type";
/// See [`ASOF_TYPE`].
pub const VARIANT: &str = "variant";
/// Column mapping's id.
pub const MAPPING_ID: &str = "delta.columnMapping.id";
/// Column mapping's name in data files.
pub const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
/// An identity column's highest value given.
pub const IDENTITY_HIGH_WATER: &str = "delta.identity.highWaterMark";
/// A generated column's expression.
pub const GENERATION: &str = "delta.generationExpression";
/// A column's default.
pub const DEFAULT: &str = "CURRENT_DEFAULT";
/// A column invariant of the old form.
pub const INVARIANTS: &str = "delta.invariants";
/// Which types a column had before.
pub const TYPE_CHANGES: &str = "delta.typeChanges";

const NOT_TEXT: [&str; 6] = [
    MAPPING_ID,
    "parquet.field.id",
    "delta.identity.start",
    "delta.identity.step",
    IDENTITY_HIGH_WATER,
    "delta.identity.allowExplicitInsert",
];

/// Delta's schema text as an Arrow schema; what is wrong with it otherwise.
pub fn to_arrow(schema_string: &str) -> Result<SchemaRef, String> {
    let value: Value = serde_json::from_str(schema_string).map_err(|e| format!("the schema is no JSON: {e}"))?;
    Ok(Arc::new(Schema::new(struct_fields(&value)?)))
}

fn struct_fields(value: &Value) -> Result<Fields, String> {
    let fields = value.get("fields").and_then(Value::as_array).ok_or("a struct of the schema has no fields")?;
    fields.iter().map(field_to_arrow).collect()
}

fn field_to_arrow(value: &Value) -> Result<FieldRef, String> {
    let name = value.get("name").and_then(Value::as_str).ok_or("a field of the schema has no name")?;
    let kind = value.get("type").ok_or_else(|| format!("field {name} has no type"))?;
    let nullable = value.get("nullable").and_then(Value::as_bool).unwrap_or(true);
    let metadata = value.get("metadata").and_then(Value::as_object).into_iter().flatten().map(|(k, v)| (k.clone(), text(v))).collect();
    Ok(Arc::new(marked(Field::new(name, type_to_arrow(kind)?, nullable), kind, metadata)))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn marked(field: Field, kind: &Value, mut metadata: HashMap<String, String>) -> Field {
    if kind == VARIANT {
        metadata.insert(ASOF_TYPE.to_owned(), VARIANT.to_owned());
    }
    field.with_metadata(metadata)
}

fn nested(name: &str, kind: &Value, nullable: bool) -> Result<FieldRef, String> {
    Ok(Arc::new(marked(Field::new(name, type_to_arrow(kind)?, nullable), kind, HashMap::new())))
}

fn type_to_arrow(value: &Value) -> Result<DataType, String> {
    if let Some(name) = value.as_str() {
        return primitive(name).ok_or_else(|| format!("type {name} is unknown"));
    }
    let part = |key: &str| value.get(key).ok_or_else(|| format!("a nested type lacks {key}"));
    let flag = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(true);
    match value.get("type").and_then(Value::as_str) {
        Some("struct") => Ok(DataType::Struct(struct_fields(value)?)),
        Some("array") => Ok(DataType::List(nested("element", part("elementType")?, flag("containsNull"))?)),
        Some("map") => {
            let key = nested("key", part("keyType")?, false)?;
            let of = nested("value", part("valueType")?, flag("valueContainsNull"))?;
            let entries = Field::new("key_value", DataType::Struct(Fields::from(vec![key, of])), false);
            Ok(DataType::Map(Arc::new(entries), false))
        }
        other => Err(format!("type {} is unknown", other.unwrap_or("null"))),
    }
}

fn primitive(name: &str) -> Option<DataType> {
    Some(match name {
        "string" => DataType::Utf8,
        "long" => DataType::Int64,
        "integer" => DataType::Int32,
        "short" => DataType::Int16,
        "byte" => DataType::Int8,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "void" => DataType::Null,
        VARIANT => variant_type(),
        _ => {
            let (precision, scale) = name.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
            let (precision, scale) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
            (1..=38).contains(&precision).then_some(DataType::Decimal128(precision, scale))?
        }
    })
}

/// How a variant looks in Arrow.
fn variant_type() -> DataType {
    let part = |name| Arc::new(Field::new(name, DataType::Binary, false));
    DataType::Struct(Fields::from(vec![part("metadata"), part("value")]))
}

/// An Arrow schema as Delta's schema text; what Delta cannot hold otherwise.
pub fn from_arrow(schema: &Schema) -> Result<String, String> {
    Ok(json!({ "type": "struct", "fields": fields_from_arrow(schema.fields())? }).to_string())
}

fn fields_from_arrow(fields: &Fields) -> Result<Vec<Value>, String> {
    fields.iter().map(|f| field_from_arrow(f)).collect()
}

/// A field as in Delta's schema text; what Delta cannot hold otherwise.
pub fn field_text(field: &Field) -> Result<String, String> {
    field_from_arrow(field).map(|field| field.to_string())
}

fn field_from_arrow(field: &Field) -> Result<Value, String> {
    let sorted: BTreeMap<_, _> = field.metadata().iter().filter(|(k, _)| *k != ASOF_TYPE).collect();
    let metadata: Map<String, Value> = sorted.into_iter().map(|(k, v)| (k.clone(), typed(k, v))).collect();
    Ok(json!({ "name": field.name(), "type": type_from_arrow(field)?, "nullable": field.is_nullable(), "metadata": metadata }))
}

fn typed(key: &str, value: &str) -> Value {
    let json = NOT_TEXT.contains(&key) || value.starts_with(['[', '{']) && key != INVARIANTS;
    let parsed = json.then(|| serde_json::from_str(value).ok()).flatten();
    parsed.unwrap_or_else(|| Value::String(value.to_owned()))
}

fn type_from_arrow(field: &Field) -> Result<Value, String> {
    if field.metadata().get(ASOF_TYPE).is_some_and(|t| t == VARIANT) {
        return Ok(Value::from(VARIANT));
    }
    Ok(match field.data_type() {
        DataType::Struct(fields) => json!({ "type": "struct", "fields": fields_from_arrow(fields)? }),
        DataType::List(e) | DataType::LargeList(e) | DataType::FixedSizeList(e, _) | DataType::ListView(e) | DataType::LargeListView(e) => {
            json!({ "type": "array", "elementType": type_from_arrow(e)?, "containsNull": e.is_nullable() })
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(kv) if kv.len() == 2 => json!({
                "type": "map", "keyType": type_from_arrow(&kv[0])?, "valueType": type_from_arrow(&kv[1])?,
                "valueContainsNull": kv[1].is_nullable()
            }),
            _ => return Err(format!("column {}: a map's entries are no pairs", field.name())),
        },
        DataType::Dictionary(_, value) => type_from_arrow(&Field::new(field.name(), value.as_ref().clone(), true))?,
        other => Value::from(primitive_name(other).ok_or_else(|| format!("column {}: Delta has no type for {other}", field.name()))?),
    })
}

pub(super) fn primitive_name(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::Int32 => "integer".to_owned(),
        DataType::Int16 => "short".to_owned(),
        DataType::Int8 => "byte".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(_, None) => "timestamp_ntz".to_owned(),
        DataType::Null => "void".to_owned(),
        DataType::Decimal128(precision, scale) if *scale >= 0 => format!("decimal({precision},{scale})"),
        _ => return None,
    })
}

/// Whether the field or anything below it satisfies `test`.
pub fn any_field(fields: &Fields, test: &dyn Fn(&Field) -> bool) -> bool {
    fields.iter().any(|f| field_or_below(f, test))
}

fn field_or_below(field: &Field, test: &dyn Fn(&Field) -> bool) -> bool {
    test(field)
        || match field.data_type() {
            DataType::Struct(fields) => any_field(fields, test),
            DataType::List(e) | DataType::Map(e, _) => field_or_below(e, test),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"struct","fields":[
        {"name":"a","type":"long","nullable":false,"metadata":{"comment":"x","delta.columnMapping.id":1,"delta.identity.allowExplicitInsert":true}},
        {"name":"v","type":"variant","nullable":true,"metadata":{}},
        {"name":"l","type":{"type":"array","elementType":"variant","containsNull":true},"nullable":true,"metadata":{}},
        {"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":[
            {"name":"d","type":"decimal(10,2)","nullable":true,"metadata":{"delta.typeChanges":[{"fromType":"integer","toType":"decimal(10,2)"}]}}]},
            "valueContainsNull":false},"nullable":true,"metadata":{}},
        {"name":"t","type":"timestamp_ntz","nullable":true,"metadata":{"__CHAR_VARCHAR_TYPE_STRING":"char(3)","CURRENT_DEFAULT":"'x'"}}]}"#;

    #[test]
    fn there_and_back() {
        let arrow = to_arrow(SCHEMA).unwrap();
        let back: Value = serde_json::from_str(&from_arrow(&arrow).unwrap()).unwrap();
        assert_eq!(back, serde_json::from_str::<Value>(SCHEMA).unwrap());
        assert_eq!(arrow.field(1).metadata()[ASOF_TYPE], VARIANT);
        assert_eq!(arrow.field(0).metadata()[MAPPING_ID], "1");
    }

    #[track_caller]
    fn check(schema: &str, expect: &str) {
        let error = to_arrow(schema).unwrap_err();
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn what_is_no_schema() {
        check("nonsense", "no JSON");
        check("{}", "no fields");
        check(r#"{"fields":[{"name":"a","type":"geometry"}]}"#, "type geometry is unknown");
        check(r#"{"fields":[{"name":"a","type":"decimal(99,2)"}]}"#, "unknown");
        check(r#"{"fields":[{"name":"a","type":{"type":"array"}}]}"#, "elementType");
    }
}
