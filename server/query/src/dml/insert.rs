//! INSERT INTO and INSERT OVERWRITE.
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
use super::{Attempt, Base, bytes_of, commit, count_of, counted, invalid, operation};
use crate::error::Result;
use crate::plan::StatementContext;
use crate::statement::values::double;
use crate::statement::{Statement, TableTarget};
use crate::write::rules::{IDENTITY_HIGH_WATER, Identity, Origin};
use crate::write::{self, Rules, Source, Target};

/// The parts of the statement.
pub(super) struct Insert<'a> {
    pub target: &'a TableTarget,
    pub columns: &'a [String],
    pub source: &'a ast::Query,
    pub overwrite: bool,
}

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, insert: &Insert<'_>) -> Result<Attempt> {
    let base = Base::resolve(ctx, insert.target).await?;
    let target = Target::of(base.table.as_ref(), &base.snapshot, &ctx.env)?;
    let given = given_columns(&target, insert.columns)?;
    let (planner, pins) = base.planner(ctx, statement).await?;
    let source = with_typed_values(insert.source, &target, &given)?;
    let plan = planner.physical(&planner.logical(&source).await?).await?;
    let origins = origins(&target, &given, !insert.columns.is_empty(), &plan.schema())?;
    let rules = Rules::new(&planner, &target, &plan.schema(), &origins, &ctx.session.time_zone()).await?;
    let identities = rules.identities();
    let source = Source::new(&planner, plan, &target, rules)?;

    let removed = if insert.overwrite { base.files() } else { vec![] };
    if !removed.is_empty() {
        base.refuse_append_only("INSERT OVERWRITE")?;
    }
    let staged = write::write(target, vec![source]).await?;
    if staged.files.is_empty() && removed.is_empty() {
        return Ok(Attempt::Done(counted(0)));
    }
    let mut metrics = vec![("numFiles", count_of(&staged.files)), ("numOutputRows", staged.rows), ("numOutputBytes", staged.bytes())];
    if insert.overwrite {
        metrics.extend([("numRemovedFiles", count_of(&removed)), ("numRemovedBytes", bytes_of(&removed))]);
    }
    let mode = if insert.overwrite { "Overwrite" } else { "Append" };
    let reads_itself = insert.overwrite || pins.contains(&base.pin());
    let change = Change {
        operation: operation(ctx, "WRITE", &[("mode", Some(mode.to_owned())), ("partitionBy", Some("[]".to_owned()))], &metrics),
        metadata: numbered(&base, &identities),
        removed,
        added: staged.files.clone(),
        reads: if reads_itself { ReadSet::Table } else { ReadSet::Nothing },
        data_change: true,
        ..Change::default()
    };
    let inserted = counted(staged.rows);
    commit(base.table.as_ref(), Some(&base.snapshot), change, staged, inserted).await
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
