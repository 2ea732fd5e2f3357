//! Catalogs, schemas, tables and their columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::{CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables};
use asof_catalog::{Session, TableName};
use asof_query::Interrupt;
use asof_storage::SnapshotSelector;
use futures::{StreamExt, TryStreamExt};

use super::built;
use crate::error::Result;
use crate::node::Node;

/// Tables whose columns are asked for at one time.
const AT_ONCE: usize = 8;
/// What every table of a warehouse is.
const TABLE: &str = "TABLE";

/// GetCatalogs.
pub(super) fn catalogs(node: &Node, asked: CommandGetCatalogs) -> Result<RecordBatch> {
    let mut builder = asked.into_builder();
    builder.append(node.warehouse().catalog());
    builder.build().map_err(built)
}

/// GetDbSchemas.
pub(super) async fn schemas(node: &Node, asked: CommandGetDbSchemas) -> Result<RecordBatch> {
    let mut builder = asked.into_builder();
    for schema in node.warehouse().schemas().await? {
        builder.append(node.warehouse().catalog(), schema);
    }
    builder.append(node.warehouse().catalog(), "information_schema");
    builder.build().map_err(built)
}

/// GetTableTypes.
pub(super) fn table_types(asked: CommandGetTableTypes) -> Result<RecordBatch> {
    let mut builder = asked.into_builder();
    builder.append(TABLE);
    builder.append("VIEW");
    builder.build().map_err(built)
}

/// GetTables. Columns are looked up only of the tables that pass the filters.
pub(super) async fn tables(node: &Node, session: &Arc<Session>, asked: CommandGetTables) -> Result<RecordBatch> {
    let mut filter = CommandGetTables { include_schema: false, ..asked.clone() }.into_builder();
    for schema in node.warehouse().schemas().await? {
        // A schema that was dropped in the meantime has no tables.
        for table in node.warehouse().tables(&schema).await.unwrap_or_default() {
            let name = table.name;
            filter.append(name.catalog, name.schema, name.table, TABLE, &Schema::empty()).map_err(built)?;
        }
    }
    let found = filter.build().map_err(built)?;
    if !asked.include_schema {
        return Ok(found);
    }
    let described = futures::stream::iter(names(&found))
        .map(|name| async move {
            let columns = columns(node, session, &name).await;
            Ok::<_, crate::error::Error>((name, columns))
        })
        .buffered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    let mut builder = CommandGetTables { include_schema: true, ..CommandGetTables::default() }.into_builder();
    for (name, columns) in described {
        builder.append(name.catalog, name.schema, name.table, TABLE, &columns).map_err(built)?;
    }
    builder.build().map_err(built)
}

fn names(found: &RecordBatch) -> Vec<TableName> {
    let (catalogs, schemas, tables) =
        (found.column(0).as_string::<i32>(), found.column(1).as_string::<i32>(), found.column(2).as_string::<i32>());
    (0..found.num_rows()).map(|at| TableName::new(catalogs.value(at), schemas.value(at), tables.value(at))).collect()
}

/// A table's columns as a query of it would give them, with the standard's metadata. One damaged table must not hide the others: it has none.
async fn columns(node: &Node, session: &Arc<Session>, name: &TableName) -> Schema {
    let quoted = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    let sql = format!("SELECT * FROM {}.{}.{}", quoted(&name.catalog), quoted(&name.schema), quoted(&name.table));
    // A table by its name: nothing here goes on for long enough to be ended early.
    let described = match node.engine.describe(session, &sql, &Interrupt::new()).await {
        Ok(described) => described,
        Err(error) => {
            tracing::warn!(table = %name, %error, "a table's columns cannot be listed");
            return Schema::empty();
        }
    };
    let comments = comments(node, name).await;
    let fields = described.schema.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        metadata.extend(column_metadata(name, field));
        if let Some(comment) = comments.get(field.name()) {
            metadata.insert("ARROW:FLIGHT:SQL:REMARKS".to_owned(), comment.clone());
        }
        field.as_ref().clone().with_metadata(metadata)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// Comments of the columns.
async fn comments(node: &Node, name: &TableName) -> HashMap<String, String> {
    let Ok(table) = node.warehouse().table(name).await else { return HashMap::new() };
    let Ok(snapshot) = table.resolve(&SnapshotSelector::Latest).await else { return HashMap::new() };
    let commented = |field: &Arc<Field>| Some((field.name().clone(), field.metadata().get("comment")?.clone()));
    snapshot.schema.fields().iter().filter_map(commented).collect()
}

fn column_metadata(name: &TableName, field: &Field) -> Vec<(String, String)> {
    let mut entries = vec![
        ("CATALOG_NAME", name.catalog.clone()),
        // The standard's name, and the one arrow-java reads.
        ("DB_SCHEMA_NAME", name.schema.clone()),
        ("SCHEMA_NAME", name.schema.clone()),
        ("TABLE_NAME", name.table.clone()),
        ("TYPE_NAME", type_name(field.data_type())),
        ("IS_AUTO_INCREMENT", "0".to_owned()),
        ("IS_CASE_SENSITIVE", "0".to_owned()),
        ("IS_READ_ONLY", "0".to_owned()),
        ("IS_SEARCHABLE", "1".to_owned()),
    ];
    if let Some((precision, scale)) = precision_and_scale(field.data_type()) {
        entries.extend([("PRECISION", precision.to_string()), ("SCALE", scale.to_string())]);
    }
    entries.into_iter().map(|(key, value)| (format!("ARROW:FLIGHT:SQL:{key}"), value)).collect()
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
pub(super) fn type_name(data_type: &DataType) -> String {
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
