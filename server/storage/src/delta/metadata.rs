//! New metadata for a table: made at its creation, replaced, or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use super::DeltaSnapshot;
use super::actions::{Format, Metadata};
use super::features::{MAPPING_MAX, MAPPING_MODE, VECTORS};
use super::schema::{ASOF_TYPE, MAPPING_ID, PHYSICAL_NAME, from_arrow};
use crate::clock::Env;
use crate::error::{Error, Result};
use crate::transaction::NewMetadata;

/// What a name in a Parquet file without column mapping cannot hold (Spark's rule).
const ILLEGAL: [char; 9] = [' ', ',', ';', '{', '}', '(', ')', '\n', '\t'];

/// The log's metadata for `new`. `replaces`: the table starts anew (or is new), with a new id and deletion vectors on unless it says otherwise.
pub fn build(new: &NewMetadata, base: Option<&DeltaSnapshot>, replaces: bool, env: &Env) -> Result<(Metadata, SchemaRef)> {
    let old = base.filter(|_| !replaces);
    let mut properties = new.properties.clone();
    if old.is_none() {
        properties.entry(VECTORS.to_owned()).or_insert_with(|| "true".to_owned());
    }
    let keep_names = old.is_some_and(|o| !o.metadata.configuration.contains_key(MAPPING_MODE));
    let (schema, properties) = with_column_mapping(&new.schema, properties, keep_names, env)?;
    check_schema(&schema, &new.partition_columns, properties.contains_key(MAPPING_MODE))?;
    let metadata = Metadata {
        id: old.map_or_else(|| env.entropy.uuid().to_string(), |o| o.metadata.id.clone()),
        name: old.and_then(|o| o.metadata.name.clone()),
        description: new.description.clone(),
        format: Format::default(),
        schema_string: from_arrow(&schema).map_err(Error::Invalid)?,
        partition_columns: new.partition_columns.clone(),
        configuration: properties,
        created_time: old.map_or_else(|| Some(env.clock.now().millis()), |o| o.metadata.created_time),
    };
    Ok((metadata, schema))
}

/// Gives every column its id and its name in data files where the properties ask for column mapping, and leaves those that have them. Whoever writes
/// files of a new table calls this first, and writes with the names it gives. `keep_names`: columns without a physical name have data under
/// their own (a table that gets column mapping later).
///
/// # Errors
/// `Invalid` for a mode that is neither `none`, `name` nor `id`.
pub fn with_column_mapping(
    schema: &SchemaRef,
    mut properties: BTreeMap<String, String>,
    keep_names: bool,
    env: &Env,
) -> Result<(SchemaRef, BTreeMap<String, String>)> {
    match properties.get(MAPPING_MODE).map(String::as_str) {
        None => return Ok((Arc::clone(schema), properties)),
        Some("none") => {
            properties.remove(MAPPING_MODE);
            return Ok((Arc::clone(schema), properties));
        }
        Some("name" | "id") => {}
        Some(other) => return Err(Error::Invalid(format!("{MAPPING_MODE} is {other:?}; it can be none, name or id"))),
    }
    let mut highest = properties.get(MAPPING_MAX).and_then(|v| v.parse().ok()).unwrap_or(0);
    highest = highest.max(highest_id(schema.fields()));
    let mut mapper = Mapper { highest, keep_names, env };
    let fields = mapper.fields(schema.fields());
    properties.insert(MAPPING_MAX.to_owned(), mapper.highest.to_string());
    Ok((Arc::new(Schema::new(fields)), properties))
}

fn highest_id(fields: &Fields) -> i64 {
    let of = |f: &FieldRef| {
        let own = f.metadata().get(MAPPING_ID).and_then(|v| v.parse().ok()).unwrap_or(0);
        own.max(match f.data_type() {
            DataType::Struct(fields) => highest_id(fields),
            DataType::List(e) | DataType::Map(e, _) => highest_id(&Fields::from(vec![Arc::clone(e)])),
            _ => 0,
        })
    };
    fields.iter().map(of).max().unwrap_or(0)
}

struct Mapper<'e> {
    highest: i64,
    keep_names: bool,
    env: &'e Env,
}

impl Mapper<'_> {
    /// The fields of a struct, each with id and physical name.
    fn fields(&mut self, fields: &Fields) -> Fields {
        fields.iter().map(|f| self.field(f)).collect()
    }

    fn field(&mut self, field: &Field) -> FieldRef {
        let mut metadata = field.metadata().clone();
        if !metadata.contains_key(MAPPING_ID) {
            self.highest += 1;
            metadata.insert(MAPPING_ID.to_owned(), self.highest.to_string());
        }
        if !metadata.contains_key(PHYSICAL_NAME) {
            let own = if self.keep_names { field.name().clone() } else { format!("col-{}", self.env.entropy.uuid()) };
            metadata.insert(PHYSICAL_NAME.to_owned(), own);
        }
        let inside = self.below(field);
        Arc::new(inside.with_metadata(metadata))
    }

    /// The same field, with the fields of structs inside it mapped.
    fn below(&mut self, field: &Field) -> Field {
        if field.metadata().contains_key(ASOF_TYPE) {
            return field.clone();
        }
        let data_type = match field.data_type() {
            DataType::Struct(fields) => DataType::Struct(self.fields(fields)),
            DataType::List(e) => DataType::List(Arc::new(self.below(e))),
            DataType::Map(entries, sorted) => DataType::Map(Arc::new(self.entries(entries)), *sorted),
            other => other.clone(),
        };
        field.clone().with_data_type(data_type)
    }

    /// A map's key and value have no ids of their own.
    fn entries(&mut self, entries: &Field) -> Field {
        match entries.data_type() {
            DataType::Struct(kv) => {
                let kv: Fields = kv.iter().map(|f| Arc::new(self.below(f))).collect();
                entries.clone().with_data_type(DataType::Struct(kv))
            }
            _ => entries.clone(),
        }
    }
}

fn check_schema(schema: &Schema, partition_columns: &[String], mapped: bool) -> Result<()> {
    let mut seen = BTreeSet::new();
    if schema.fields().is_empty() {
        return Err(Error::Invalid("a table needs at least one column".to_owned()));
    }
    for field in schema.fields() {
        let name = field.name();
        if !seen.insert(name.to_lowercase()) {
            return Err(Error::Invalid(format!("column {name} is there twice (names of columns differ by more than case)")));
        }
        if !mapped && name.contains(|c| ILLEGAL.contains(&c) || c == '=') {
            let hint = format!("set the property {MAPPING_MODE} = 'name' to allow it");
            return Err(Error::Invalid(format!("column name {name:?} holds a space or one of ,;{{}}()=; {hint}")));
        }
        if *field.data_type() == DataType::Null {
            return Err(Error::Invalid(format!("column {name} has no type: cast its NULLs to one")));
        }
    }
    for column in partition_columns {
        let field = schema.field_with_name(column).map_err(|_| {
            let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            Error::Invalid(format!("partition column {column} is not in the schema: {}", columns.join(", ")))
        })?;
        if field.data_type().is_nested() {
            return Err(Error::Invalid(format!("column {column} is of a nested type and cannot be a partition column")));
        }
    }
    if partition_columns.len() == schema.fields().len() {
        return Err(Error::Invalid("all columns are partition columns; at least one must be left for the files".to_owned()));
    }
    Ok(())
}
