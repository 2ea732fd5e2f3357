//! UPDATE.
//!
//! All right-hand sides see the row as it was, so values may swap columns. The selected rows are written with their new values, through the
//! table's constraints, and go from their files by deletion vectors or, where the table has those off, by rewriting the others too.

use arrow::datatypes::Field;
use asof_storage::Change;
use datafusion::sql::sqlparser::ast;

use super::columns::{default_value, is_default, required};
use super::losses::{Losses, by_vectors};
use super::select::{column as column_of, item, named, select, shown};
use super::touched::{Touched, other_rows, selected_rows, touched};
use super::{Attempt, Base, Rows, commit, count_of, counted, feed, invalid, json_list, nested, operation};
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
    let (files, reads) = touched(ctx, &planner, &base, rows).await?;
    if files.is_empty() {
        return Ok(Attempt::Done(counted(0)));
    }
    let scanned = ctx.env.clock.now();
    let updated: i64 = files.iter().map(Touched::selected).sum();
    let staged = Rewriting { ctx, planner: &planner, base: &base, rows }.write(&files, &target, &values).await?;
    let losses = if by_vectors(&base) { Losses::of_rows(&base, &files).await? } else { Losses::of_files(&files) };
    let written = ctx.env.clock.now();

    let predicate: Vec<String> = rows.predicate.iter().map(|p| shown(p, &statement.tables)).collect();
    let mut metrics = losses.metrics().to_vec();
    metrics.extend([
        ("numAddedFiles", count_of(&staged.files)),
        ("numAddedBytes", staged.bytes()),
        ("numCopiedRows", staged.rows - updated),
        ("numUpdatedRows", updated),
        ("numAddedChangeFiles", count_of(&staged.changes)),
        ("executionTimeMs", written.millis() - started.millis()),
        ("scanTimeMs", scanned.millis() - started.millis()),
        ("rewriteTimeMs", written.millis() - scanned.millis()),
    ]);
    let change = Change {
        operation: operation(ctx, "UPDATE", &[("predicate", Some(json_list(&predicate)))], &metrics),
        removed: losses.removed,
        deletes: losses.deletes,
        added: staged.files.clone(),
        raw: feed::actions(&staged),
        reads,
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

/// New rows of the touched files.
struct Rewriting<'a> {
    ctx: &'a StatementContext,
    planner: &'a Planner,
    base: &'a Base,
    rows: &'a Rows<'a>,
}

impl Rewriting<'_> {
    /// The selected rows as they will be, the others of rewritten files, and for the feed the selected ones as they were.
    async fn write(&self, files: &[Touched], target: &Target, values: &[Option<ast::Expr>]) -> Result<Staged> {
        let fed = feed::is_on(self.base);
        let updated = self.updated(files, target, values).await?;
        let mut sources = vec![if fed { updated.for_feed_too("update_postimage") } else { updated }];
        let partly: Vec<Touched> = files.iter().filter(|file| !file.wholly()).cloned().collect();
        if !partly.is_empty() && !by_vectors(self.base) {
            sources.push(feed::as_it_was(self.ctx, self.planner, self.base, other_rows(self.base, &partly), target).await?);
        }
        if fed {
            let before = feed::as_it_was(self.ctx, self.planner, self.base, selected_rows(self.base, files), target).await?;
            sources.push(before.for_feed_alone("update_preimage"));
        }
        write::write(target.clone(), sources).await
    }

    async fn updated(&self, files: &[Touched], target: &Target, values: &[Option<ast::Expr>]) -> Result<Source> {
        let number = self.planner.bind(self.base.relation(self.ctx, selected_rows(self.base, files))?);
        let query = select(new_items(target, values), number, self.rows.alias, None)?;
        let plan = self.planner.physical(&self.planner.logical(&query).await?).await?;
        let rules = Rules::new(self.planner, target, &plan.schema(), &origins(target, values), &self.ctx.session.time_zone()).await?;
        Source::new(self.planner, plan, target, rules)
    }
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
