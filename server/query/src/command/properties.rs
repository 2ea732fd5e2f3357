//! SHOW TBLPROPERTIES and SHOW CREATE TABLE.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Field;
use asof_storage::snapshot::FormatSnapshot;

use super::{text, type_name};
use crate::error::{Error, Result};
use crate::plan::{Relation, StatementContext};
use crate::scan::PinnedTable;
use crate::statement::Statement;
use crate::write::rules::{CONSTRAINTS, CURRENT_DEFAULT, GENERATION, IDENTITY_EXPLICIT, IDENTITY_START, IDENTITY_STEP};

async fn table(ctx: &StatementContext, statement: &Statement, what: &str) -> Result<Arc<PinnedTable>> {
    let (relations, _) = crate::resolve::resolve(ctx, &statement.tables).await?;
    match relations.into_iter().next() {
        Some(Relation::Table { table, .. }) => Ok(table),
        _ => Err(Error::Invalid {
            message: format!("{what} is about a table: views and metadata tables have none"),
            location: statement.tables.first().map(|t| t.location),
        }),
    }
}

/// Spark's two columns; a property that is not there is told in place of its value, as Spark does.
pub(super) async fn show(ctx: &StatementContext, statement: &Statement, key: Option<&str>) -> Result<RecordBatch> {
    let table = table(ctx, statement, "SHOW TBLPROPERTIES").await?;
    let properties = &table.snapshot.properties;
    let rows: Vec<(String, String)> = match key {
        None => properties.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        Some(key) => {
            let missing = || format!("Table {} does not have property: {key}", table.snapshot.name);
            vec![(key.to_owned(), properties.get(key).cloned().unwrap_or_else(missing))]
        }
    };
    text(vec![("key", rows.iter().map(|r| Some(r.0.clone())).collect()), ("value", rows.into_iter().map(|r| Some(r.1)).collect())])
}

/// A statement that makes such a table.
pub(super) async fn create(ctx: &StatementContext, statement: &Statement) -> Result<RecordBatch> {
    let table = table(ctx, statement, "SHOW CREATE TABLE").await?;
    let snapshot = &table.snapshot;
    let FormatSnapshot::Delta(delta) = &snapshot.format;
    let mut lines: Vec<String> = snapshot.schema.fields().iter().map(|field| column(field)).collect();
    let constraint = |(key, sql): (&String, &String)| Some(format!("CONSTRAINT {} CHECK ({sql})", quoted(key.strip_prefix(CONSTRAINTS)?)));
    lines.extend(snapshot.properties.iter().filter_map(constraint));
    let mut sql = format!("CREATE TABLE {} (\n  {})\nUSING delta", snapshot.name, lines.join(",\n  "));
    let add = |sql: &mut String, clause: String| _ = write!(sql, "\n{clause}");
    if !snapshot.partition_columns.is_empty() {
        let columns: Vec<_> = snapshot.partition_columns.iter().map(|name| quoted(name)).collect();
        add(&mut sql, format!("PARTITIONED BY ({})", columns.join(", ")));
    }
    if let Some(description) = &delta.metadata.description {
        add(&mut sql, format!("COMMENT {}", literal(description)));
    }
    // What the table itself keeps account of is not for another one.
    let own = |key: &str| key.starts_with(CONSTRAINTS) || key.ends_with(".maxColumnId") || key.contains("inCommitTimestampEnablement");
    let properties = snapshot.properties.iter().filter(|(key, _)| !own(key));
    let properties: Vec<_> = properties.map(|(key, value)| format!("{} = {}", literal(key), literal(value))).collect();
    if !properties.is_empty() {
        add(&mut sql, format!("TBLPROPERTIES (\n  {})", properties.join(",\n  ")));
    }
    text(vec![("createtab_stmt", vec![Some(sql)])])
}

fn column(field: &Field) -> String {
    let metadata = field.metadata();
    let mut sql = format!("{} {}", quoted(field.name()), type_name(field).to_uppercase());
    if let (Some(start), Some(step)) = (metadata.get(IDENTITY_START), metadata.get(IDENTITY_STEP)) {
        let kind = if metadata.get(IDENTITY_EXPLICIT).is_some_and(|v| v == "true") { "BY DEFAULT" } else { "ALWAYS" };
        _ = write!(sql, " GENERATED {kind} AS IDENTITY (START WITH {start} INCREMENT BY {step})");
    }
    if let Some(expression) = metadata.get(GENERATION) {
        _ = write!(sql, " GENERATED ALWAYS AS ({expression})");
    }
    if !field.is_nullable() {
        sql.push_str(" NOT NULL");
    }
    if let Some(default) = metadata.get(CURRENT_DEFAULT) {
        _ = write!(sql, " DEFAULT {default}");
    }
    if let Some(comment) = metadata.get("comment") {
        _ = write!(sql, " COMMENT {}", literal(comment));
    }
    sql
}

fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// A name, in quotes where it needs them.
fn quoted(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain && !name.is_empty() { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}
