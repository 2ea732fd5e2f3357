//! ALTER TABLE: a commit of new metadata, and no file is touched.
//!
//! What the rows must satisfy from now on (NOT NULL, CHECK) is asked of those that are there first; the commit then conflicts with rows
//! that come meanwhile. Columns are dropped and renamed only with column mapping, for files keep the names they were written with.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use asof_storage::delta::{field_text, widened};
use asof_storage::snapshot::FormatSnapshot;
use asof_storage::transaction::NewMetadata;
use asof_storage::{Change, ReadSet};
use datafusion::sql::sqlparser::ast;

use super::columns::{check_names, declared, mapped, required};
use super::select::{column as column_of, not_true, select};
use super::{Attempt, Base, commit, fields, invalid, operation, properties};
use crate::engine::Outcome;
use crate::error::{Error, Result};
use crate::plan::{Planner, StatementContext};
use crate::statement::types::{COMMENT, arrow_type};
use crate::statement::{self, Alteration, ColumnChange, ColumnPlace, Kind, NewColumn, Statement, TableTarget};
use crate::write::assign::sql_type;
use crate::write::rules::{CONSTRAINTS, CURRENT_DEFAULT, GENERATION, IDENTITY_START, Origin};
use crate::write::{Rules, Staged, Target};

/// Property: may types be widened?
const WIDENING: &str = "delta.enableTypeWidening";

/// What the history says: the operation's name and its parameters.
type Told = (&'static str, Vec<(&'static str, Option<String>)>);

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, target: &TableTarget, change: &Alteration) -> Result<Attempt> {
    let base = Base::resolve(ctx, target).await?;
    let mut draft = Draft::of(&base);
    let Some((name, parameters)) = draft.alter(change)? else {
        return Ok(Attempt::Done(Outcome::done()));
    };
    let asked = match change {
        Alteration::AddConstraint { check, .. } => Some(not_true(check)),
        Alteration::AlterColumn { column, change: ColumnChange::Required(true) } => {
            let [name] = column.as_slice() else {
                return Err(Error::Unsupported {
                    message: "ALTER COLUMN … SET NOT NULL of a field inside a column".to_owned(),
                    location: None,
                });
            };
            let column = required(&base.snapshot.schema, name, base.table.name())?;
            Some(ast::Expr::IsNull(Box::new(column_of(base.snapshot.schema.field(column).name()))))
        }
        _ => None,
    };
    let (planner, _) = base.planner(ctx, statement).await?;
    draft.check(ctx, &planner, &base).await?;
    if let Some(broken) = &asked {
        refuse_broken(ctx, &planner, &base, change, broken).await?;
    }
    let change = Change {
        operation: operation(ctx, name, &parameters, &[]),
        metadata: Some(draft.metadata()),
        reads: if asked.is_some() { ReadSet::Table } else { ReadSet::Nothing },
        data_change: true,
        ..Change::default()
    };
    commit(base.table.as_ref(), Some(&base.snapshot), change, Staged::none(), Outcome::done()).await
}

/// Refuse what rows that are there would break.
async fn refuse_broken(ctx: &StatementContext, planner: &Planner, base: &Base, change: &Alteration, broken: &ast::Expr) -> Result<()> {
    let Kind::Query(counting) = statement::parse("SELECT count(*)")?.kind else { return Err(odd()) };
    let ast::SetExpr::Select(counting) = *counting.body else { return Err(odd()) };
    let number = planner.bind(base.relation(ctx, base.pinned())?);
    let counted = planner.collect(&select(counting.projection, number, None, Some(broken.clone()))?).await?;
    let rows: i64 = counted.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>()).sum();
    if rows == 0 {
        return Ok(());
    }
    let what = match change {
        Alteration::AddConstraint { name, check } => format!("break CHECK constraint {name} ({check})"),
        _ => "are NULL there".to_owned(),
    };
    Err(Error::Constraint(format!("{rows} rows of table {} {what}: nothing was changed", base.table.name())))
}

fn odd() -> Error {
    Error::Internal("SELECT count(*) is no select".to_owned())
}

/// A table's metadata as it will be.
struct Draft {
    table: String,
    fields: Vec<Field>,
    partition_columns: Vec<String>,
    properties: std::collections::BTreeMap<String, String>,
    description: Option<String>,
}

impl Draft {
    fn of(base: &Base) -> Self {
        let FormatSnapshot::Delta(delta) = &base.snapshot.format;
        Self {
            table: base.table.name().to_owned(),
            fields: base.snapshot.schema.fields().iter().map(|f| f.as_ref().clone()).collect(),
            partition_columns: base.snapshot.partition_columns.clone(),
            properties: base.snapshot.properties.clone(),
            description: delta.metadata.description.clone(),
        }
    }

    fn metadata(self) -> NewMetadata {
        NewMetadata {
            schema: Arc::new(Schema::new(self.fields)),
            partition_columns: self.partition_columns,
            properties: self.properties,
            description: self.description,
        }
    }

    /// The defaults and constraints must be something that rows can be held against.
    async fn check(&self, ctx: &StatementContext, planner: &Planner, base: &Base) -> Result<()> {
        let fields = self.fields.iter().map(|f| f.clone().with_nullable(true)).collect::<Vec<_>>();
        let target = Target { schema: Arc::new(Schema::new(fields)), properties: self.properties.clone(), ..base.target(ctx) };
        let origins = vec![Origin::Default; self.fields.len()];
        Rules::new(planner, &target, &Schema::empty(), &origins, &ctx.session.time_zone()).await.map(drop)
    }

    /// `None`: there is nothing to do.
    fn alter(&mut self, change: &Alteration) -> Result<Option<Told>> {
        match change {
            Alteration::SetProperties(pairs) => self.set_properties(pairs),
            Alteration::UnsetProperties { keys, if_exists } => self.unset_properties(keys, *if_exists),
            Alteration::AddColumns { columns, if_not_exists } => self.add_columns(columns, *if_not_exists),
            Alteration::DropColumns { columns, if_exists } => self.drop_columns(columns, *if_exists),
            Alteration::RenameColumn { from, to } => self.rename_column(from, to),
            Alteration::AlterColumn { column, change } => self.alter_column(column, change),
            Alteration::AddConstraint { name, check } => self.add_constraint(name, check),
            Alteration::DropConstraint { name, if_exists } => self.drop_constraint(name, *if_exists),
        }
    }

    fn set_properties(&mut self, pairs: &[(String, String)]) -> Result<Option<Told>> {
        for (key, value) in pairs {
            properties::check_change(&self.properties, key, value)?;
            if key == "comment" {
                self.description = Some(value.clone());
            } else {
                self.properties.insert(key.clone(), value.clone());
            }
        }
        let told = serde_json::Value::from_iter(pairs.iter().cloned());
        Ok(Some(("SET TBLPROPERTIES", vec![("properties", Some(told.to_string()))])))
    }

    fn unset_properties(&mut self, keys: &[String], if_exists: bool) -> Result<Option<Told>> {
        for key in keys {
            properties::check_removal(key)?;
            let was_there = if key == "comment" { self.description.take() } else { self.properties.remove(key) };
            if was_there.is_none() && !if_exists {
                let there: Vec<_> = self.properties.keys().map(String::as_str).collect();
                return Err(invalid(format!(
                    "table {} has no property {key} (it has {}): write UNSET TBLPROPERTIES IF EXISTS where that does not matter",
                    self.table,
                    there.join(", ")
                )));
            }
        }
        Ok(Some(("UNSET TBLPROPERTIES", vec![("properties", Some(super::json_list(keys))), ("ifExists", Some(if_exists.to_string()))])))
    }

    fn add_columns(&mut self, columns: &[NewColumn], if_not_exists: bool) -> Result<Option<Told>> {
        let mut told = Vec::new();
        for new in columns {
            let [field] = declared(std::slice::from_ref(&new.column), &[], &mut self.properties)?.try_into().map_err(|_| odd())?;
            let path = [new.inside.as_slice(), &[field.name().clone()]].concat();
            refuse_needing_rows(&field, &path)?;
            told.push(format!(r#"{{"column":{}}}"#, described(&field, &path)?));
            let mut is_there = false;
            let what = self.what();
            fields::edit(&mut self.fields, &path, &what, &mut |beside, name| {
                is_there = fields::position(beside, name).is_some();
                if is_there && !if_not_exists {
                    return Err(invalid(format!("column {} is there already: names differ in more than case", fields::shown(&path))));
                }
                if !is_there {
                    let at = placed(beside, new.place.as_ref(), &what)?.unwrap_or(beside.len());
                    beside.insert(at, field.clone());
                }
                Ok(())
            })?;
            if is_there {
                return Ok(None);
            }
        }
        check_names(&self.fields, mapped(&self.properties))?;
        Ok(Some(("ADD COLUMNS", vec![("columns", Some(format!("[{}]", told.join(","))))])))
    }

    /// What has the columns, for messages.
    fn what(&self) -> String {
        format!("table {}", self.table)
    }

    fn drop_columns(&mut self, columns: &[Vec<String>], if_exists: bool) -> Result<Option<Told>> {
        self.need_mapping("dropped")?;
        let mut dropped = Vec::new();
        for path in columns {
            let name = path.last().map_or("", String::as_str);
            self.refuse_needed(name, "dropped")?;
            if path.len() == 1 && self.partition_columns.iter().any(|p| p.eq_ignore_ascii_case(name)) {
                return Err(invalid(format!("table {} is partitioned by column {name}, which cannot be dropped", self.table)));
            }
            let what = self.what();
            fields::edit(&mut self.fields, path, &what, &mut |beside, name| {
                if if_exists && fields::position(beside, name).is_none() {
                    return Ok(());
                }
                let at = fields::required(beside, name, &what)?;
                if beside.len() == 1 && path.len() > 1 {
                    return Err(invalid(format!("{} would leave a struct without a field", fields::shown(path))));
                }
                beside.remove(at);
                dropped.push(fields::shown(path));
                Ok(())
            })?;
        }
        if self.fields.len() == self.partition_columns.len() {
            return Err(invalid(format!("table {} would be left without a column in its files", self.table)));
        }
        Ok((!dropped.is_empty()).then(|| ("DROP COLUMNS", vec![("columns", Some(super::json_list(&dropped)))])))
    }

    fn rename_column(&mut self, from: &[String], to: &str) -> Result<Option<Told>> {
        self.need_mapping("renamed")?;
        self.refuse_needed(from.last().map_or("", String::as_str), "renamed")?;
        let what = self.what();
        let mut old = String::new();
        fields::edit(&mut self.fields, from, &what, &mut |beside, name| {
            let at = fields::required(beside, name, &what)?;
            if fields::position(beside, to).is_some_and(|there| there != at) {
                return Err(invalid(format!("column {to} is there already: names differ in more than case")));
            }
            beside[at].name().clone_into(&mut old);
            beside[at] = beside[at].clone().with_name(to);
            Ok(())
        })?;
        if from.len() == 1 {
            self.partition_columns.iter_mut().filter(|name| **name == old).for_each(|name| to.clone_into(name));
        }
        check_names(&self.fields, true)?;
        let path = |last: &str| Some(fields::shown(&[&from[..from.len() - 1], &[last.to_owned()]].concat()));
        Ok(Some(("RENAME COLUMN", vec![("oldColumnPath", path(&old)), ("newColumnPath", path(to))])))
    }

    fn need_mapping(&self, what: &str) -> Result<()> {
        if mapped(&self.properties) {
            return Ok(());
        }
        Err(invalid(format!(
            "columns are {what} only with column mapping, for the files keep their names: ALTER TABLE {} SET TBLPROPERTIES \
             ('delta.columnMapping.mode' = 'name') turns it on",
            self.table
        )))
    }

    /// Refuse what a constraint or a generated column needs.
    fn refuse_needed(&self, column: &str, what: &str) -> Result<()> {
        let constraint =
            |(key, sql): (&String, &String)| Some((format!("CHECK constraint {}", key.strip_prefix(CONSTRAINTS)?), sql.clone()));
        let generated = |f: &Field| Some((format!("generated column {}", f.name()), f.metadata().get(GENERATION)?.clone()));
        let needing = self.properties.iter().filter_map(constraint).chain(self.fields.iter().filter_map(generated));
        for (needing, sql) in needing {
            if names(&sql, column)? {
                return Err(invalid(format!("{needing} ({sql}) of table {} needs column {column}, which cannot be {what}", self.table)));
            }
        }
        Ok(())
    }

    fn alter_column(&mut self, column: &[String], change: &ColumnChange) -> Result<Option<Told>> {
        let (path, below) = fields::named(&self.fields, column);
        let (path, below) = (path.to_vec(), below.to_vec());
        if !below.is_empty() && !matches!(change, ColumnChange::Type(_)) {
            return Err(invalid(format!("{} has no name of its own: it can be given a wider type, nothing else", fields::shown(column))));
        }
        if path.len() > 1 && matches!(change, ColumnChange::Required(_) | ColumnChange::Default(_)) {
            let message = "ALTER COLUMN … NOT NULL and DEFAULT of a field inside a column".to_owned();
            return Err(Error::Unsupported { message, location: None });
        }
        if let ColumnChange::Type(_) = change {
            self.check_widening(&path)?;
        }
        let what = self.what();
        let mut told = String::new();
        fields::edit(&mut self.fields, &path, &what, &mut |beside, name| {
            let at = fields::required(beside, name, &what)?;
            let field = changed(&beside[at], &below, change, column, &what)?;
            told = described(&field, column)?;
            beside[at] = field;
            if let ColumnChange::Place(place) = change {
                let field = beside.remove(at);
                let to = placed(beside, Some(place), &what)?.unwrap_or(at);
                beside.insert(to, field);
            }
            Ok(())
        })?;
        Ok(Some(("CHANGE COLUMN", vec![("column", Some(told))])))
    }

    /// Whether the table lets a column have another type.
    fn check_widening(&self, path: &[String]) -> Result<()> {
        if !self.properties.get(WIDENING).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(invalid(format!(
                "types are widened only where the table allows it: ALTER TABLE {} SET TBLPROPERTIES ('{WIDENING}' = 'true')",
                self.table
            )));
        }
        let name = path.last().map_or("", String::as_str);
        if path.len() == 1 && self.partition_columns.iter().any(|p| p.eq_ignore_ascii_case(name)) {
            return Err(invalid(format!("table {} is partitioned by column {name}, whose type cannot change", self.table)));
        }
        self.refuse_needed(name, "given another type")
    }

    fn add_constraint(&mut self, name: &str, check: &ast::Expr) -> Result<Option<Told>> {
        if let Some(there) = self.properties.insert(format!("{CONSTRAINTS}{name}"), check.to_string()) {
            return Err(invalid(format!("table {} has a constraint {name} already ({there}): drop it first", self.table)));
        }
        Ok(Some(("ADD CONSTRAINT", vec![("name", Some(name.to_owned())), ("expr", Some(check.to_string()))])))
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool) -> Result<Option<Told>> {
        let Some(sql) = self.properties.remove(&format!("{CONSTRAINTS}{name}")) else {
            if if_exists {
                return Ok(None);
            }
            let there: Vec<_> = self.properties.keys().filter_map(|key| key.strip_prefix(CONSTRAINTS)).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(invalid(format!("table {} has no constraint {name}: it has {there}", self.table)));
        };
        let parameters = vec![("name", Some(name.to_owned())), ("expr", Some(sql)), ("existed", Some("true".to_owned()))];
        Ok(Some(("DROP CONSTRAINT", parameters)))
    }
}

/// Refuse a new column that the rows which are there would need a value of.
fn refuse_needing_rows(field: &Field, path: &[String]) -> Result<()> {
    let needs_rows = [GENERATION, IDENTITY_START, CURRENT_DEFAULT].iter().any(|key| field.metadata().contains_key(*key));
    if field.is_nullable() && !needs_rows {
        return Ok(());
    }
    let name = fields::shown(path);
    Err(invalid(format!(
        "column {name} would be NULL in the rows that are there: add it without NOT NULL, DEFAULT and GENERATED, fill it by UPDATE, then ALTER \
         COLUMN {name} SET NOT NULL or SET DEFAULT"
    )))
}

/// Where a column goes among those beside it.
fn placed(beside: &[Field], place: Option<&ColumnPlace>, what: &str) -> Result<Option<usize>> {
    Ok(match place {
        None => None,
        Some(ColumnPlace::First) => Some(0),
        Some(ColumnPlace::After(name)) => Some(fields::required(beside, name, what)? + 1),
    })
}

/// A field for the history, under its whole path.
fn described(field: &Field, path: &[String]) -> Result<String> {
    field_text(&field.clone().with_name(fields::shown(path))).map_err(invalid)
}

/// The field, itself or the type of what is below it, as it will be.
fn changed(field: &Field, below: &[String], change: &ColumnChange, column: &[String], what: &str) -> Result<Field> {
    let mut metadata = field.metadata().clone();
    match change {
        ColumnChange::Comment(text) => _ = metadata.insert(COMMENT.to_owned(), text.clone()),
        ColumnChange::Default(None) => _ = metadata.remove(CURRENT_DEFAULT),
        ColumnChange::Default(Some(value)) => {
            if metadata.contains_key(GENERATION) || metadata.contains_key(IDENTITY_START) {
                return Err(invalid(format!("column {} makes its own values and takes no default", field.name())));
            }
            metadata.insert(CURRENT_DEFAULT.to_owned(), value.to_string());
        }
        ColumnChange::Required(is_required) => return Ok(field.clone().with_nullable(!is_required)),
        ColumnChange::Type(to) => return wider(field, below, &arrow_type(to)?, column, what),
        ColumnChange::Place(_) => {}
    }
    Ok(field.clone().with_metadata(metadata))
}

fn wider(field: &Field, below: &[String], to: &DataType, column: &[String], what: &str) -> Result<Field> {
    if below.is_empty() && field.data_type() == to {
        return Ok(field.clone());
    }
    widened(field, below, to).ok_or_else(|| {
        let (from, to) = (sql_type(field.data_type()), sql_type(to));
        invalid(format!(
            "column {} of {what} ({from}) cannot become {to}: only a wider type (such as INT to BIGINT); else add a column, fill it by UPDATE \
             and drop the old one",
            fields::shown(column)
        ))
    })
}

/// Whether an expression names a column.
fn names(sql: &str, column: &str) -> Result<bool> {
    let statement = statement::parse(&format!("SELECT {sql}"))?;
    let Kind::Query(query) = statement.kind else { return Ok(true) };
    let named = ast::visit_expressions(&query, |expr| {
        let named = match expr {
            ast::Expr::Identifier(name) => name.value.eq_ignore_ascii_case(column),
            ast::Expr::CompoundIdentifier(parts) => parts.iter().any(|name| name.value.eq_ignore_ascii_case(column)),
            _ => false,
        };
        if named { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    Ok(named.is_break())
}
