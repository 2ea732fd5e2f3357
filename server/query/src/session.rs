//! Statements that change only the session or the names: SET, RESET, USE, temporary views, schemas.

use crate::engine::Outcome;
use crate::error::{Error, Result};
use crate::plan::StatementContext;
use crate::statement::{Kind, Statement};

/// Is it one of these?
#[must_use]
pub fn is_setting(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Set { .. }
            | Kind::Reset(_)
            | Kind::Use { .. }
            | Kind::CreateTemporaryView { .. }
            | Kind::DropView { .. }
            | Kind::CreateSchema { .. }
            | Kind::DropSchema { .. }
    )
}

/// Apply it.
///
/// # Errors
/// Unknown settings and names; a view that does not plan.
pub async fn apply(ctx: &StatementContext, statement: &Statement) -> Result<Outcome> {
    let session = &ctx.session;
    match &statement.kind {
        Kind::Set { name, value } => session.set(name, value)?,
        Kind::Reset(name) => session.reset(name.as_deref())?,
        Kind::Use { catalog_only, parts } => use_names(ctx, *catalog_only, parts).await?,
        Kind::CreateTemporaryView { name, or_replace, sql, columns } => create_view(ctx, name, *or_replace, sql, columns).await?,
        Kind::DropView { name, if_exists } => {
            if !session.drop_temp_view(name)? && !if_exists {
                let views: Vec<_> = session.temp_views().into_keys().collect();
                let hint = format!("the session's views are {views:?}");
                return Err(asof_catalog::Error::UnknownTable { asked: name.clone(), hint }.into());
            }
        }
        Kind::CreateSchema { parts, if_not_exists } => {
            let schema = schema_name(ctx, parts)?;
            ctx.warehouse.create_schema(&schema, *if_not_exists).await?;
        }
        Kind::DropSchema { parts, if_exists, cascade } => {
            let schema = schema_name(ctx, parts)?;
            if !*if_exists || ctx.warehouse.schemas().await?.contains(&schema) {
                ctx.warehouse.drop_schema(&schema, *cascade).await?;
            }
        }
        _ => return Err(Error::Internal("not a statement of the session".to_owned())),
    }
    Ok(Outcome::done())
}

/// The schema of `[catalog.]schema`.
fn schema_name(ctx: &StatementContext, parts: &[String]) -> Result<String> {
    match parts {
        [schema] => Ok(schema.clone()),
        [catalog, schema] if catalog == ctx.warehouse.catalog() => Ok(schema.clone()),
        [catalog, _] => {
            let existing = vec![ctx.warehouse.catalog().to_owned()];
            Err(asof_catalog::Error::UnknownCatalog { asked: catalog.clone(), existing }.into())
        }
        _ => Err(Error::Invalid { message: format!("{} is no schema's name", parts.join(".")), location: None }),
    }
}

/// `USE a`: a schema, or else a catalog of that name; `USE a.b`; `USE CATALOG a`.
async fn use_names(ctx: &StatementContext, catalog_only: bool, parts: &[String]) -> Result<()> {
    let (catalog, current) = ctx.session.current();
    let schemas = ctx.warehouse.schemas().await?;
    let schema = match parts {
        [name] if name == ctx.warehouse.catalog() && (catalog_only || !schemas.contains(name)) => {
            ctx.session.set_current(name, &current)?;
            return Ok(());
        }
        [name] if catalog_only => {
            let existing = vec![ctx.warehouse.catalog().to_owned()];
            return Err(asof_catalog::Error::UnknownCatalog { asked: name.clone(), existing }.into());
        }
        parts => schema_name(ctx, parts)?,
    };
    if !schemas.contains(&schema) && schema != "information_schema" {
        let hint = format!("there are {schemas:?}; CREATE SCHEMA makes one");
        return Err(asof_catalog::Error::UnknownSchema { catalog, asked: schema, hint }.into());
    }
    let catalog = ctx.warehouse.catalog().to_owned();
    ctx.session.set_current(&catalog, &schema)?;
    Ok(())
}

/// A view must plan when it is made; its text is kept and resolved again at each use.
async fn create_view(ctx: &StatementContext, name: &str, or_replace: bool, sql: &str, columns: &[String]) -> Result<()> {
    let text = if columns.is_empty() { sql.to_owned() } else { renamed(sql, columns) };
    let statement = crate::statement::parse(&text)?;
    let Kind::Query(query) = &statement.kind else {
        return Err(Error::Invalid { message: format!("view {name:?} must be a query"), location: None });
    };
    if statement.parameters > 0 {
        return Err(Error::Invalid { message: format!("view {name:?} cannot hold parameters"), location: None });
    }
    let (planner, _) = crate::plan::Planner::resolve(ctx, &statement).await?;
    planner.logical(query).await?;
    Ok(ctx.session.create_temp_view(name, &text, or_replace)?)
}

fn renamed(sql: &str, columns: &[String]) -> String {
    let columns: Vec<_> = columns.iter().map(|c| format!("\"{}\"", c.replace('"', "\"\""))).collect();
    format!("SELECT * FROM ({sql}) AS v ({})", columns.join(", "))
}
