//! INSERT INTO, INSERT OVERWRITE, INSERT INTO … REPLACE WHERE.
//!
//! An insert that does not read its own target is a blind append: it never conflicts, and storage rebases it. Columns that are
//! not named get their default, or NULL.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use asof_storage::snapshot::FormatSnapshot;
use asof_storage::transaction::NewMetadata;
use asof_storage::{Change, ReadSet};
use datafusion::sql::sqlparser::ast;

use super::columns::{default_value, is_default, required};
use super::losses::{Losses, by_vectors};
use super::select::shown;
use super::touched::{Touched, other_rows, selected_rows, touched};
use super::{Attempt, Base, Rows, bytes_of, commit, count_of, counted, feed, invalid, json_list, live_rows, operation};
use crate::error::Result;
use crate::plan::{Planner, StatementContext};
use crate::statement::values::double;
use crate::statement::{InsertMode, Statement, TableTarget};
use crate::write::rules::{IDENTITY_HIGH_WATER, Identity, Origin};
use crate::write::{self, Rules, Source, Target};

/// The parts of the statement.
pub(super) struct Insert<'a> {
    pub target: &'a TableTarget,
    pub columns: &'a [String],
    pub source: &'a ast::Query,
    pub mode: &'a InsertMode,
}

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, insert: &Insert<'_>) -> Result<Attempt> {
    let base = Base::resolve(ctx, insert.target).await?;
    let target = Target::of(base.table.as_ref(), &base.snapshot, &ctx.env)?;
    let given = given_columns(&target, insert.columns)?;
    let (planner, pins) = base.planner(ctx, statement).await?;
    let source = with_typed_values(insert.source, &target, &given)?;
    let plan = planner.physical(&planner.logical(&source).await?).await?;
    let origins = origins(&target, &given, !insert.columns.is_empty(), &plan.schema())?;
    let mut rules = Rules::new(&planner, &target, &plan.schema(), &origins, &ctx.session.time_zone()).await?;
    if let InsertMode::Replace(condition) = insert.mode {
        rules.must_hold(&planner, "REPLACE WHERE", &condition.to_string()).await?;
    }
    let identities = rules.identities();
    let source = Source::new(&planner, plan, &target, rules)?;

    let replaced = replaced(ctx, &planner, &base, insert, &target).await?;
    let mut sources = vec![if replaced.told_to_feed { source.for_feed_too("insert") } else { source }];
    sources.extend(replaced.sources);
    let staged = write::write(target, sources).await?;
    let losses = replaced.losses;
    if staged.files.is_empty() && losses.removed.is_empty() && losses.deletes.is_empty() {
        return Ok(Attempt::Done(counted(0)));
    }
    let inserted = staged.rows - replaced.kept;
    let mut metrics = vec![("numFiles", count_of(&staged.files)), ("numOutputRows", inserted), ("numOutputBytes", staged.bytes())];
    let mut parameters = vec![("mode", Some("Append".to_owned())), ("partitionBy", Some("[]".to_owned()))];
    if *insert.mode != InsertMode::Append {
        parameters[0].1 = Some("Overwrite".to_owned());
        metrics.extend([("numRemovedFiles", count_of(&losses.removed)), ("numRemovedBytes", bytes_of(&losses.removed))]);
    }
    if let InsertMode::Replace(condition) = insert.mode {
        parameters.push(("predicate", Some(json_list(&[shown(condition, &statement.tables)]))));
        let changed = [("numDeletedRows", replaced.rows), ("numCopiedRows", replaced.kept)];
        metrics.extend(changed.into_iter().chain([("numAddedChangeFiles", count_of(&staged.changes))]));
        metrics.extend(losses.metrics().into_iter().skip(2));
    }
    let change = Change {
        operation: operation(ctx, "WRITE", &parameters, &metrics),
        metadata: numbered(&base, &identities),
        removed: losses.removed,
        deletes: losses.deletes,
        added: staged.files.clone(),
        raw: feed::actions(&staged),
        reads: if pins.contains(&base.pin()) { ReadSet::Table } else { replaced.reads },
        data_change: true,
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, staged, counted(inserted)).await
}

/// What goes to make room, and what is written beside the new rows.
#[derive(Default)]
struct Replaced {
    losses: Losses,
    reads: ReadSet,
    /// Rows that go, where they were looked for.
    rows: i64,
    /// Rows of rewritten files that stay, and what else there is to write.
    kept: i64,
    sources: Vec<Source>,
    told_to_feed: bool,
}

async fn replaced(ctx: &StatementContext, planner: &Planner, base: &Base, insert: &Insert<'_>, target: &Target) -> Result<Replaced> {
    let condition = match insert.mode {
        InsertMode::Append => return Ok(Replaced::default()),
        InsertMode::Overwrite => {
            let removed = base.files();
            if !removed.is_empty() {
                base.refuse_append_only("INSERT OVERWRITE")?;
            }
            return Ok(Replaced { losses: Losses { removed, deletes: vec![] }, reads: ReadSet::Table, ..Replaced::default() });
        }
        InsertMode::Replace(condition) => condition,
    };
    base.refuse_append_only("INSERT … REPLACE WHERE")?;
    let rows = Rows { target: insert.target, alias: None, predicate: Some(condition) };
    let (files, reads) = touched(ctx, planner, base, &rows).await?;
    let partly: Vec<Touched> = files.iter().filter(|file| !file.wholly()).cloned().collect();
    let mut sources = vec![];
    let mut kept = 0;
    let losses = match by_vectors(base) {
        true => Losses::of_rows(base, &files).await?,
        false => {
            kept = partly.iter().filter_map(|touched| Some(live_rows(&touched.file)? - touched.selected())).sum();
            if !partly.is_empty() {
                sources.push(feed::as_it_was(ctx, planner, base, other_rows(base, &partly), target).await?);
            }
            Losses::of_files(&files)
        }
    };
    // Added files beside changed ones: then the feed must tell all of it.
    let told_to_feed = feed::is_on(base) && !files.is_empty();
    if told_to_feed {
        sources.push(feed::as_it_was(ctx, planner, base, selected_rows(base, &files), target).await?.for_feed_alone("delete"));
    }
    let rows = files.iter().map(Touched::selected).sum();
    Ok(Replaced { losses, reads, rows, kept, sources, told_to_feed })
}

/// The metadata with the last numbers that identity columns gave, if they gave any.
fn numbered(base: &Base, identities: &[Arc<Identity>]) -> Option<NewMetadata> {
    let mut fields: Vec<_> = base.snapshot.schema.fields().iter().map(|f| f.as_ref().clone()).collect();
    let mut changed = false;
    for identity in identities {
        if let (Some(last), Some(field)) = (identity.last(), fields.get_mut(identity.column)) {
            let mut metadata = field.metadata().clone();
            metadata.insert(IDENTITY_HIGH_WATER.to_owned(), last.to_string());
            field.set_metadata(metadata);
            changed = true;
        }
    }
    let FormatSnapshot::Delta(delta) = &base.snapshot.format;
    changed.then(|| NewMetadata {
        schema: Arc::new(Schema::new(fields)),
        partition_columns: base.snapshot.partition_columns.clone(),
        properties: base.snapshot.properties.clone(),
        description: delta.metadata.description.clone(),
    })
}

/// Positions in the table of the source's columns.
fn given_columns(target: &Target, columns: &[String]) -> Result<Vec<usize>> {
    if columns.is_empty() {
        return Ok((0..target.schema.fields().len()).collect());
    }
    let mut given = Vec::with_capacity(columns.len());
    for name in columns {
        let column = required(&target.schema, name, &target.name)?;
        if given.contains(&column) {
            return Err(invalid(format!("column {name} is named twice")));
        }
        given.push(column);
    }
    Ok(given)
}

fn origins(target: &Target, given: &[usize], named: bool, source: &Schema) -> Result<Vec<Origin>> {
    let columns = source.fields().len();
    if columns != given.len() {
        let expected = match named {
            true => format!("{} columns are named", given.len()),
            false => format!("table {} has {} columns", target.name, given.len()),
        };
        return Err(invalid(format!("{expected}, and the rows have {columns} values: name the columns that get values, in their order")));
    }
    let origin = |column| given.iter().position(|g| *g == column).map_or(Origin::Default, Origin::Source);
    Ok((0..target.schema.fields().len()).map(origin).collect())
}

/// The source with the word DEFAULT in VALUES replaced by the column's default, and with the strings among other values of a column of
/// dates or times read as such: VALUES wants one type in each column.
fn with_typed_values(source: &ast::Query, target: &Target, given: &[usize]) -> Result<ast::Query> {
    let mut source = source.clone();
    let ast::SetExpr::Values(values) = source.body.as_mut() else { return Ok(source) };
    for (at, column) in given.iter().enumerate() {
        let field = target.schema.field(*column);
        let mut cells: Vec<&mut ast::Expr> = values.rows.iter_mut().filter_map(|row| row.get_mut(at)).collect();
        for cell in cells.iter_mut().filter(|cell| is_default(cell)) {
            **cell = default_value(field)?;
        }
        if field.data_type().is_floating() {
            cells.iter_mut().for_each(|cell| double(cell));
        }
        let mixed = cells.iter().any(|cell| is_text(cell)) && cells.iter().any(|cell| !is_text(cell) && !is_null(cell));
        if let (true, Some(data_type)) = (mixed, time_type(field.data_type())) {
            for cell in cells.into_iter().filter(|cell| is_text(cell)) {
                let expr = Box::new(cell.clone());
                *cell = ast::Expr::Cast { kind: ast::CastKind::Cast, expr, data_type: data_type.clone(), array: false, format: None };
            }
        }
    }
    Ok(source)
}

fn is_text(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Value(value) if matches!(value.value, ast::Value::SingleQuotedString(_)))
}

fn is_null(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Value(value) if matches!(value.value, ast::Value::Null))
}

fn time_type(column: &DataType) -> Option<ast::DataType> {
    match column {
        DataType::Date32 => Some(ast::DataType::Date),
        DataType::Timestamp(_, Some(_)) => Some(ast::DataType::Timestamp(None, ast::TimezoneInfo::None)),
        DataType::Timestamp(_, None) => Some(ast::DataType::TimestampNtz(None)),
        _ => None,
    }
}
