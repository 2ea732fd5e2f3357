//! UPDATE.
//!
//! All right-hand sides see the row as it was, so values may swap columns. Files that hold selected rows are rewritten: the selected
//! rows with their new values, through the table's constraints, the others as they are.

use asof_storage::{Change, ReadSet};
use datafusion::sql::sqlparser::ast;

use super::delete::expect_rows;
use super::select::{item, named, not_true, select, shown};
use super::touched::{Touched, touched};
use super::{Attempt, Base, Rows, bytes_of, commit, count_of, counted, invalid, json_list, live_rows, operation};
use crate::error::{Error, Result};
use crate::plan::{Planner, StatementContext};
use crate::statement::Statement;
use crate::write::rules::{GENERATION, IDENTITY_START, Origin};
use crate::write::{self, Rules, Source, Staged, Target};

/// Column path and value, as parsed.
type Assignment = (Vec<String>, ast::Expr);

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, rows: &Rows<'_>, assignments: &[Assignment]) -> Result<Attempt> {
    let started = ctx.env.clock.now();
    let base = Base::resolve(ctx, rows.target).await?;
    base.refuse_append_only("UPDATE")?;
    let target = Target::of(base.table.as_ref(), &base.snapshot, &ctx.env);
    let values = new_values(&target, assignments)?;
    let (planner, _) = base.planner(ctx, statement).await?;
    let files = touched(ctx, &planner, &base, rows.alias, rows.predicate).await?;
    if files.is_empty() {
        return Ok(Attempt::Done(counted(0)));
    }
    base.refuse_change_feed("UPDATE")?;
    let scanned = ctx.env.clock.now();
    let updated: i64 = files.iter().map(|file| file.selected).sum();
    let staged = rewrite(ctx, &planner, &base, rows, &files, target, values).await?;
    let written = ctx.env.clock.now();

    let removed: Vec<_> = files.into_iter().map(|touched| touched.file).collect();
    let predicate: Vec<String> = rows.predicate.iter().map(|p| shown(p, &statement.tables)).collect();
    let metrics = [
        ("numRemovedFiles", count_of(&removed)),
        ("numRemovedBytes", bytes_of(&removed)),
        ("numAddedFiles", count_of(&staged.files)),
        ("numAddedBytes", staged.bytes()),
        ("numCopiedRows", staged.rows - updated),
        ("numUpdatedRows", updated),
        ("numAddedChangeFiles", 0),
        ("numDeletionVectorsAdded", 0),
        ("numDeletionVectorsRemoved", 0),
        ("numDeletionVectorsUpdated", 0),
        ("executionTimeMs", written.millis() - started.millis()),
        ("scanTimeMs", scanned.millis() - started.millis()),
        ("rewriteTimeMs", written.millis() - scanned.millis()),
    ];
    let change = Change {
        operation: operation(ctx, "UPDATE", &[("predicate", Some(json_list(&predicate)))], &metrics),
        removed,
        added: staged.files.clone(),
        reads: ReadSet::Table,
        data_change: true,
        ..Change::default()
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, staged, counted(updated)).await
}

/// For each column of the table: its new value, if it gets one.
fn new_values(target: &Target, assignments: &[Assignment]) -> Result<Vec<Option<ast::Expr>>> {
    let mut values: Vec<Option<ast::Expr>> = vec![None; target.schema.fields().len()];
    for (path, value) in assignments {
        let column = assigned_column(target, path)?;
        let field = target.schema.field(column);
        if field.metadata().contains_key(IDENTITY_START) {
            return Err(invalid(format!("column {} is an identity column and cannot be updated", field.name())));
        }
        let value = match super::columns::is_default(value) {
            true => super::columns::default_value(field)?,
            false => value.clone(),
        };
        if values[column].replace(value).is_some() {
            return Err(invalid(format!("column {} is assigned twice", field.name())));
        }
    }
    Ok(values)
}

/// The position of an assigned column; a longer path is a field of a struct, which cannot be assigned alone.
fn assigned_column(target: &Target, path: &[String]) -> Result<usize> {
    match path {
        [name] => super::columns::required(&target.schema, name, &target.name),
        _ => Err(Error::Unsupported {
            message: format!("assigning one field of a struct ({}): assign the whole struct", path.join(".")),
            location: None,
        }),
    }
}

async fn rewrite(
    ctx: &StatementContext,
    planner: &Planner,
    base: &Base,
    rows: &Rows<'_>,
    files: &[Touched],
    target: Target,
    values: Vec<Option<ast::Expr>>,
) -> Result<Staged> {
    let number = planner.bind(base.relation(ctx, base.pinned().only_files(files.iter().map(|f| f.ordinal).collect()))?);
    let mut origins = Vec::with_capacity(values.len());
    let mut items = Vec::with_capacity(values.len());
    for (at, (field, value)) in target.schema.fields().iter().zip(values).enumerate() {
        origins.push(match (&value, field.metadata().contains_key(GENERATION), field.metadata().contains_key(IDENTITY_START)) {
            (None, true, _) => Origin::Computed,
            (None, _, true) => Origin::Kept(at),
            _ => Origin::Source(at),
        });
        items.push(value.map_or_else(|| item(field.name()), |value| named(value, field.name())));
    }
    let query = select(items, number, rows.alias, rows.predicate.cloned(), vec![])?;
    let plan = planner.physical(&planner.logical(&query).await?).await?;
    let rules = Rules::new(planner, &target, &plan.schema(), &origins, &ctx.session.time_zone()).await?;
    let mut sources = vec![Source::new(planner, plan, &target, rules)?];

    let partly = files.iter().any(|file| !file.wholly());
    if let (true, Some(predicate)) = (partly, rows.predicate) {
        let items = target.schema.fields().iter().map(|field| item(field.name())).collect();
        let query = select(items, number, rows.alias, Some(not_true(predicate)), vec![])?;
        sources.push(Source::plan(planner, &query, &target, Rules::copy(&target)).await?);
    }
    let staged = write::write(target, sources).await?;
    let files: Vec<&Touched> = files.iter().collect();
    expect_rows(&files, staged, |file| live_rows(&file.file)).await
}
