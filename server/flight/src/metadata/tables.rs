//! Catalogs, schemas, tables and their columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use arrow_flight::sql::{CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables};
use asof_catalog::{Session, TableName};
use asof_query::Interrupt;
use asof_storage::SnapshotSelector;
use futures::{StreamExt, TryStreamExt};

use super::{built, columns};
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
            let columns = table_columns(node, session, &name).await;
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
async fn table_columns(node: &Node, session: &Arc<Session>, name: &TableName) -> Schema {
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
    let typed = columns::typed(&described.schema);
    let fields = typed.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        metadata.extend(column_metadata(name));
        if let Some(comment) = comments.get(field.name()) {
            metadata.insert(columns::key("REMARKS"), comment.clone());
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

fn column_metadata(name: &TableName) -> Vec<(String, String)> {
    let entries = [
        ("CATALOG_NAME", name.catalog.clone()),
        // The standard's name, and the one arrow-java reads.
        ("DB_SCHEMA_NAME", name.schema.clone()),
        ("SCHEMA_NAME", name.schema.clone()),
        ("TABLE_NAME", name.table.clone()),
        ("IS_AUTO_INCREMENT", "0".to_owned()),
        ("IS_CASE_SENSITIVE", "0".to_owned()),
        ("IS_READ_ONLY", "0".to_owned()),
        ("IS_SEARCHABLE", "1".to_owned()),
    ];
    entries.into_iter().map(|(property, value)| (columns::key(property), value)).collect()
}
