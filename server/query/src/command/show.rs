//! SHOW CATALOGS, SCHEMAS, TABLES, VIEWS, COLUMNS, and settings.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};

use super::{like, text};
use crate::error::{Error, Result};
use crate::plan::StatementContext;
use crate::statement::Statement;

pub(super) fn catalogs(ctx: &StatementContext) -> Result<RecordBatch> {
    text(vec![("catalog", vec![Some(ctx.warehouse.catalog().to_owned())])])
}

fn check_catalog(ctx: &StatementContext, asked: &str) -> Result<()> {
    let catalog = ctx.warehouse.catalog();
    if asked == catalog {
        return Ok(());
    }
    Err(asof_catalog::Error::UnknownCatalog { asked: asked.to_owned(), existing: vec![catalog.to_owned()] }.into())
}

pub(super) async fn schemas(ctx: &StatementContext, catalog: Option<&str>, pattern: Option<&str>) -> Result<RecordBatch> {
    if let Some(catalog) = catalog {
        check_catalog(ctx, catalog)?;
    }
    let schemas = ctx.warehouse.schemas().await?;
    text(vec![("namespace", schemas.into_iter().filter(|s| like(s, pattern)).map(Some).collect())])
}

/// Spark's three columns.
pub(super) async fn tables(ctx: &StatementContext, schema: Option<&[String]>, pattern: Option<&str>) -> Result<RecordBatch> {
    let schema = match schema {
        None => ctx.session.current().1,
        Some([schema]) => schema.clone(),
        Some([catalog, schema]) => {
            check_catalog(ctx, catalog)?;
            schema.clone()
        }
        Some(parts) => return Err(Error::Invalid { message: format!("{} is no schema's name", parts.join(".")), location: None }),
    };
    let views = ctx.session.temp_views().into_keys().map(|view| (String::new(), view, true));
    let tables = ctx.warehouse.tables(&schema).await?.into_iter().map(|t| (t.name.schema, t.name.table, false));
    let rows: Vec<_> = tables.chain(views).filter(|(_, name, _)| like(name, pattern)).collect();
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("namespace", Arc::new(rows.iter().map(|r| Some(r.0.as_str())).collect::<StringArray>()), true),
        ("tableName", Arc::new(rows.iter().map(|r| Some(r.1.as_str())).collect::<StringArray>()), true),
        ("isTemporary", Arc::new(rows.iter().map(|r| Some(r.2)).collect::<BooleanArray>()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(|e| Error::Internal(e.to_string()))
}

pub(super) fn views(ctx: &StatementContext, pattern: Option<&str>) -> Result<RecordBatch> {
    let views: Vec<_> = ctx.session.temp_views().into_iter().filter(|(name, _)| like(name, pattern)).collect();
    text(vec![
        ("viewName", views.iter().map(|v| Some(v.0.clone())).collect()),
        ("isTemporary", views.iter().map(|_| Some("true".to_owned())).collect()),
        ("definition", views.iter().map(|v| Some(v.1.clone())).collect()),
    ])
}

pub(super) async fn columns(ctx: &StatementContext, statement: &Statement) -> Result<RecordBatch> {
    let (relations, _) = crate::resolve::resolve(ctx, &statement.tables).await?;
    let names = relations.first().map(crate::plan::Relation::columns).unwrap_or_default();
    text(vec![("col_name", names.into_iter().map(Some).collect())])
}

pub(super) fn setting(ctx: &StatementContext, name: Option<&str>) -> Result<RecordBatch> {
    let rows: Vec<(String, String)> = match name {
        Some(name) => vec![(name.to_owned(), ctx.session.get(name)?)],
        None => ctx.session.settings().into_iter().collect(),
    };
    text(vec![("name", rows.iter().map(|r| Some(r.0.clone())).collect()), ("value", rows.iter().map(|r| Some(r.1.clone())).collect())])
}
