//! Types of the parameters of statements that change tables, for drivers that ask before they bind.

use datafusion::sql::sqlparser::ast;

use super::columns::{position, required};
use super::select::select;
use super::{Base, Rows};
use crate::error::Result;
use crate::plan::parameters::ParameterTypes;
use crate::plan::{Planner, StatementContext};
use crate::statement::{Kind, Statement};

/// Note the types of a writing statement's parameters; resolves its tables, runs nothing.
///
/// # Errors
/// As planning.
pub async fn parameters(ctx: &StatementContext, statement: &Statement, types: &mut ParameterTypes) -> Result<()> {
    if statement.parameters == 0 {
        return Ok(());
    }
    match &statement.kind {
        Kind::Insert { target, columns, source, .. } => {
            let base = Base::resolve(ctx, target).await?;
            note_values(&base, columns, source, types)?;
            let (planner, _) = base.planner(ctx, statement).await?;
            types.of_plan(&planner.template(source).await?)
        }
        Kind::Update { target, alias, assignments, predicate } => {
            let base = Base::resolve(ctx, target).await?;
            for (path, value) in assignments {
                if let Some(column) = path.last().and_then(|name| position(&base.snapshot.schema, name)) {
                    types.note(value, base.snapshot.schema.field(column).data_type());
                }
            }
            let values = assignments.iter().map(|(_, value)| ast::SelectItem::UnnamedExpr(value.clone())).collect();
            let rows = Rows { target, alias: alias.as_deref(), predicate: predicate.as_ref() };
            note_rows(ctx, statement, &base, &rows, values, types).await
        }
        Kind::Delete { target, alias, predicate } => {
            let base = Base::resolve(ctx, target).await?;
            let rows = Rows { target, alias: alias.as_deref(), predicate: predicate.as_ref() };
            let one = ast::SelectItem::UnnamedExpr(ast::Expr::Value(ast::Value::Boolean(true).with_empty_span()));
            note_rows(ctx, statement, &base, &rows, vec![one], types).await
        }
        Kind::CreateTable(create) => match &create.query {
            Some(query) => {
                let (planner, _) = Planner::resolve(ctx, statement).await?;
                types.of_plan(&planner.template(query).await?)
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A parameter that is inserted has its column's type.
fn note_values(base: &Base, columns: &[String], source: &ast::Query, types: &mut ParameterTypes) -> Result<()> {
    let schema = &base.snapshot.schema;
    let given = match columns {
        [] => (0..schema.fields().len()).collect(),
        names => names.iter().map(|name| required(schema, name, base.table.name())).collect::<Result<Vec<_>>>()?,
    };
    match source.body.as_ref() {
        ast::SetExpr::Values(values) => {
            for (value, column) in values.rows.iter().flat_map(|row| row.iter().zip(&given)) {
                types.note(value, schema.field(*column).data_type());
            }
        }
        ast::SetExpr::Select(select) => {
            for (item, column) in select.projection.iter().zip(&given) {
                if let ast::SelectItem::UnnamedExpr(value) | ast::SelectItem::ExprWithAlias { expr: value, .. } = item {
                    types.note(value, schema.field(*column).data_type());
                }
            }
        }
        _ => {}
    }
    Ok(())
}

async fn note_rows(
    ctx: &StatementContext,
    statement: &Statement,
    base: &Base,
    rows: &Rows<'_>,
    items: Vec<ast::SelectItem>,
    types: &mut ParameterTypes,
) -> Result<()> {
    let (planner, _) = base.planner(ctx, statement).await?;
    let number = planner.bind(base.relation(ctx, base.pinned())?);
    let query = select(items, number, rows.alias, rows.predicate.cloned())?;
    types.of_plan(&planner.template(&query).await?)
}
