//! UPDATE.
//!
//! All right-hand sides see the row as it was, so values may swap columns. Files that hold selected rows are rewritten: the selected
//! rows with their new values, through the table's constraints, the others as they are.

use arrow::datatypes::Field;
use asof_storage::{Change, ReadSet};
use datafusion::sql::sqlparser::ast;

use super::columns::{default_value, is_default, required};
use super::delete::expect_rows;
use super::select::{column as column_of, item, named, not_true, select, shown};
use super::touched::{Touched, touched};
use super::{Attempt, Base, Rows, bytes_of, commit, count_of, counted, feed, invalid, json_list, live_rows, nested, operation, vectors_of};
use crate::error::Result;
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
    let target = Target::of(base.table.as_ref(), &base.snapshot, &ctx.env)?;
    let values = new_values(&target, assignments)?;
    let (planner, _) = base.planner(ctx, statement).await?;
    let files = touched(ctx, &planner, &base, rows.alias, rows.predicate).await?;
    if files.is_empty() {
        return Ok(Attempt::Done(counted(0)));
    }
    let scanned = ctx.env.clock.now();
    let updated: i64 = files.iter().map(|file| file.selected).sum();
    let number = planner.bind(base.relation(ctx, base.pinned().only_files(files.iter().map(|f| f.ordinal).collect()))?);
    let rewriting = Rewriting { ctx, planner: &planner, rows, number };
    let mut staged = rewriting.write(&files, &target, &values).await?;
    let feed = match feed::is_on(&base) {
        true => rewriting.tell_feed(&target, &values, &mut staged).await?,
        false => vec![],
    };
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
        ("numAddedChangeFiles", count_of(&feed)),
        ("numDeletionVectorsAdded", 0),
        ("numDeletionVectorsRemoved", vectors_of(&removed)),
        ("numDeletionVectorsUpdated", 0),
        ("executionTimeMs", written.millis() - started.millis()),
        ("scanTimeMs", scanned.millis() - started.millis()),
        ("rewriteTimeMs", written.millis() - scanned.millis()),
    ];
    let change = Change {
        operation: operation(ctx, "UPDATE", &[("predicate", Some(json_list(&predicate)))], &metrics),
        removed,
        added: staged.files.clone(),
        raw: feed,
        reads: ReadSet::Table,
        data_change: true,
        ..Change::default()
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, staged, counted(updated)).await
}

/// For each column of the table: its new value, if it gets one.
fn new_values(target: &Target, assignments: &[Assignment]) -> Result<Vec<Option<ast::Expr>>> {
    let mut values: Vec<Option<ast::Expr>> = vec![None; target.schema.fields().len()];
    let mut inside: Vec<Vec<nested::Inner<'_>>> = vec![vec![]; values.len()];
    for (path, value) in assignments {
        let [name, fields @ ..] = path.as_slice() else { return Err(invalid("an assignment names no column".to_owned())) };
        let column = required(&target.schema, name, &target.name)?;
        let field = target.schema.field(column);
        if field.metadata().contains_key(IDENTITY_START) {
            return Err(invalid(format!("column {} is an identity column and cannot be updated", field.name())));
        }
        if !fields.is_empty() {
            inside[column].push((fields, value));
            continue;
        }
        let value = if is_default(value) { default_value(field)? } else { value.clone() };
        if values[column].replace(value).is_some() {
            return Err(invalid(format!("column {} is assigned twice", field.name())));
        }
    }
    for (column, inner) in inside.iter().enumerate().filter(|(_, inner)| !inner.is_empty()) {
        let field = target.schema.field(column);
        if values[column].replace(nested::assign(field, &column_of(field.name()), inner)?).is_some() {
            return Err(invalid(format!("column {} is assigned whole and in part", field.name())));
        }
    }
    Ok(values)
}

/// New rows of the touched files, which are relation `number`.
struct Rewriting<'a> {
    ctx: &'a StatementContext,
    planner: &'a Planner,
    rows: &'a Rows<'a>,
    number: usize,
}

impl Rewriting<'_> {
    async fn write(&self, files: &[Touched], target: &Target, values: &[Option<ast::Expr>]) -> Result<Staged> {
        let mut sources = vec![self.updated(target, new_items(target, values), origins(target, values)).await?];
        let partly = files.iter().any(|file| !file.wholly());
        if let (true, Some(predicate)) = (partly, self.rows.predicate) {
            sources.push(self.kept(target, old_items(target), Some(not_true(predicate))).await?);
        }
        let staged = write::write(target.clone(), sources).await?;
        let files: Vec<&Touched> = files.iter().collect();
        expect_rows(&files, staged, |file| live_rows(&file.file)).await
    }

    /// The selected rows as they were and as they are.
    async fn tell_feed(&self, table: &Target, values: &[Option<ast::Expr>], staged: &mut Staged) -> Result<Vec<serde_json::Value>> {
        let target = feed::target(table);
        let mut origins = origins(table, values);
        origins.push(Origin::Source(table.schema.fields().len()));
        let before = self.kept(&target, feed::items(old_items(table), "update_preimage"), self.rows.predicate.cloned()).await?;
        let after = self.updated(&target, feed::items(new_items(table, values), "update_postimage"), origins).await?;
        feed::write(staged, target, vec![before, after]).await
    }

    async fn updated(&self, target: &Target, items: Vec<ast::SelectItem>, origins: Vec<Origin>) -> Result<Source> {
        let query = select(items, self.number, self.rows.alias, self.rows.predicate.cloned(), vec![])?;
        let plan = self.planner.physical(&self.planner.logical(&query).await?).await?;
        let rules = Rules::new(self.planner, target, &plan.schema(), &origins, &self.ctx.session.time_zone()).await?;
        Source::new(self.planner, plan, target, rules)
    }

    async fn kept(&self, target: &Target, items: Vec<ast::SelectItem>, filter: Option<ast::Expr>) -> Result<Source> {
        let query = select(items, self.number, self.rows.alias, filter, vec![])?;
        Source::plan(self.planner, &query, target, Rules::copy(target)).await
    }
}

fn old_items(target: &Target) -> Vec<ast::SelectItem> {
    target.schema.fields().iter().map(|field| item(field.name())).collect()
}

fn new_items(target: &Target, values: &[Option<ast::Expr>]) -> Vec<ast::SelectItem> {
    let new = |value: &Option<ast::Expr>, name: &str| value.as_ref().map_or_else(|| item(name), |value| named(value.clone(), name));
    target.schema.fields().iter().zip(values).map(|(field, value)| new(value, field.name())).collect()
}

fn origins(target: &Target, values: &[Option<ast::Expr>]) -> Vec<Origin> {
    let origin = |at: usize, field: &Field, assigned: bool| match (assigned, field.metadata()) {
        (false, metadata) if metadata.contains_key(GENERATION) => Origin::Computed,
        (false, _) => Origin::Kept(at),
        (true, _) => Origin::Source(at),
    };
    target.schema.fields().iter().zip(values).enumerate().map(|(at, (field, value))| origin(at, field, value.is_some())).collect()
}
