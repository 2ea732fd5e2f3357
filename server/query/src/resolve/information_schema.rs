//! `information_schema`: schemata, tables, views, columns, as the standard names them.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Builder, StringBuilder};
use arrow::datatypes::Field;
use arrow::record_batch::RecordBatch;
use asof_storage::SnapshotSelector;
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;

use crate::command::type_name;
use crate::error::{Error, Result};
use crate::plan::{Relation, StatementContext};

const SCHEMA: &str = "information_schema";
const TABLES: [&str; 4] = ["columns", "schemata", "tables", "views"];

/// The relation that a name stands for, if it is one of these.
pub(super) async fn relation(ctx: &StatementContext, parts: &[String], selector: bool) -> Result<Option<Relation>> {
    let catalog = ctx.warehouse.catalog();
    let table = match parts {
        [schema, table] if schema == SCHEMA => table,
        [given, schema, table] if schema == SCHEMA && given == catalog => table,
        [table] if ctx.session.current().1 == SCHEMA => table,
        _ => return Ok(None),
    };
    if selector {
        return Err(Error::Invalid { message: format!("{SCHEMA}.{table} has no versions: it always shows now"), location: None });
    }
    let batch = match table.as_str() {
        "schemata" => schemata(ctx).await?,
        "tables" => tables(ctx).await?,
        "views" => views(ctx)?,
        "columns" => columns(ctx).await?,
        other => {
            let message = format!("no table {other:?} in {SCHEMA}: there are {}", TABLES.join(", "));
            return Err(Error::Invalid { message, location: None });
        }
    };
    let rows = MemTable::try_new(batch.schema(), vec![vec![batch]])?;
    Ok(Some(Relation::Rows { name: TableReference::full(catalog, SCHEMA, table.as_str()), rows: Arc::new(rows) }))
}

/// Rows of text, by column.
fn text_rows<const N: usize>(names: [&str; N], rows: Vec<[Option<String>; N]>) -> Result<RecordBatch> {
    let mut columns: [StringBuilder; N] = std::array::from_fn(|_| StringBuilder::new());
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.append_option(value);
        }
    }
    let columns = names.into_iter().zip(columns.iter_mut().map(|c| Arc::new(c.finish()) as ArrayRef)).map(|(n, c)| (n, c, true));
    RecordBatch::try_from_iter_with_nullable(columns).map_err(|e| Error::Internal(e.to_string()))
}

async fn schemata(ctx: &StatementContext) -> Result<RecordBatch> {
    let catalog = ctx.warehouse.catalog();
    let mut schemas = ctx.warehouse.schemas().await?;
    schemas.push(SCHEMA.to_owned());
    let row = |s: String| [Some(catalog.to_owned()), Some(s)];
    text_rows(["catalog_name", "schema_name"], schemas.into_iter().map(row).collect())
}

async fn tables(ctx: &StatementContext) -> Result<RecordBatch> {
    let catalog = ctx.warehouse.catalog();
    let row = |schema: String, table: String, kind: &str| [Some(catalog.to_owned()), Some(schema), Some(table), Some(kind.to_owned())];
    let mut rows = vec![];
    for schema in ctx.warehouse.schemas().await? {
        for table in ctx.warehouse.tables(&schema).await? {
            rows.push(row(schema.clone(), table.name.table, "BASE TABLE"));
        }
    }
    rows.extend(TABLES.map(|table| row(SCHEMA.to_owned(), table.to_owned(), "VIEW")));
    rows.extend(ctx.session.temp_views().into_keys().map(|view| row(String::new(), view, "LOCAL TEMPORARY")));
    text_rows(["table_catalog", "table_schema", "table_name", "table_type"], rows)
}

fn views(ctx: &StatementContext) -> Result<RecordBatch> {
    let catalog = ctx.warehouse.catalog();
    let row = |(view, sql): (String, String)| [Some(catalog.to_owned()), Some(String::new()), Some(view), Some(sql)];
    let rows = ctx.session.temp_views().into_iter().map(row).collect();
    text_rows(["table_catalog", "table_schema", "table_name", "view_definition"], rows)
}

/// Columns of every table's latest version. A table that cannot be read is left out and logged: one broken table must not hide the rest.
async fn columns(ctx: &StatementContext) -> Result<RecordBatch> {
    let catalog = ctx.warehouse.catalog().to_owned();
    let mut rows = vec![];
    let mut positions = Int32Builder::new();
    for schema in ctx.warehouse.schemas().await? {
        for entry in ctx.warehouse.tables(&schema).await? {
            let fields = match latest_fields(ctx, &entry.name).await {
                Ok(fields) => fields,
                Err(error) => {
                    tracing::warn!(table = %entry.name, %error, "left out of information_schema.columns");
                    continue;
                }
            };
            for (position, field) in (1i32..).zip(fields.iter()) {
                let text = |s: &str| Some(s.to_owned());
                let nullable = if field.is_nullable() { "YES" } else { "NO" };
                rows.push([
                    text(&catalog),
                    text(&schema),
                    text(&entry.name.table),
                    text(field.name()),
                    text(nullable),
                    Some(type_name(field)),
                ]);
                positions.append_value(position);
            }
        }
    }
    let text = text_rows(["table_catalog", "table_schema", "table_name", "column_name", "is_nullable", "data_type"], rows)?;
    let position = Field::new("ordinal_position", arrow::datatypes::DataType::Int32, true);
    let mut fields: Vec<_> = text.schema().fields().iter().cloned().collect();
    let mut arrays = text.columns().to_vec();
    fields.insert(4, Arc::new(position));
    arrays.insert(4, Arc::new(positions.finish()));
    RecordBatch::try_new(Arc::new(arrow::datatypes::Schema::new(fields)), arrays).map_err(|e| Error::Internal(e.to_string()))
}

async fn latest_fields(ctx: &StatementContext, name: &asof_catalog::TableName) -> Result<arrow::datatypes::Fields> {
    let table = ctx.warehouse.table(name).await?;
    Ok(table.resolve(&SnapshotSelector::Latest).await?.schema.fields().clone())
}
