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
use super::properties;
use super::select::{column as column_of, not_true, select};
use super::{Attempt, Base, commit, invalid, operation};
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
            let column = required(&base.snapshot.schema, column, base.table.name())?;
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

    fn schema(&self) -> Schema {
        Schema::new(self.fields.clone())
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
            if if_not_exists && super::columns::position(&self.schema(), field.name()).is_some() {
                return Ok(None);
            }
            let name = field.name();
            let needs_rows = [GENERATION, IDENTITY_START, CURRENT_DEFAULT].iter().any(|key| field.metadata().contains_key(*key));
            if !field.is_nullable() || needs_rows {
                return Err(invalid(format!(
                    "column {name} would be NULL in the rows that are there: add it without NOT NULL, DEFAULT and GENERATED, fill it by UPDATE, \
                     then ALTER COLUMN {name} SET NOT NULL or SET DEFAULT"
                )));
            }
            told.push(format!(r#"{{"column":{}}}"#, field_text(&field).map_err(invalid)?));
            let at = self.place(new.place.as_ref())?.unwrap_or(self.fields.len());
            self.fields.insert(at, field);
        }
        check_names(&self.fields, mapped(&self.properties))?;
        Ok(Some(("ADD COLUMNS", vec![("columns", Some(format!("[{}]", told.join(","))))])))
    }

    /// Where a column goes.
    fn place(&self, place: Option<&ColumnPlace>) -> Result<Option<usize>> {
        Ok(match place {
            None => None,
            Some(ColumnPlace::First) => Some(0),
            Some(ColumnPlace::After(name)) => Some(self.position(name)? + 1),
        })
    }

    fn position(&self, name: &str) -> Result<usize> {
        required(&self.schema(), name, &self.table)
    }

    fn drop_columns(&mut self, columns: &[String], if_exists: bool) -> Result<Option<Told>> {
        self.need_mapping("dropped")?;
        let mut dropped = Vec::new();
        for name in columns {
            if if_exists && super::columns::position(&self.schema(), name).is_none() {
                continue;
            }
            let at = self.position(name)?;
            let name = self.fields[at].name().clone();
            if self.partition_columns.contains(&name) {
                return Err(invalid(format!("table {} is partitioned by column {name}, which cannot be dropped", self.table)));
            }
            self.refuse_needed(&name, "dropped")?;
            self.fields.remove(at);
            dropped.push(name);
        }
        if self.fields.len() == self.partition_columns.len() {
            return Err(invalid(format!("table {} would be left without a column in its files", self.table)));
        }
        Ok((!dropped.is_empty()).then(|| ("DROP COLUMNS", vec![("columns", Some(super::json_list(&dropped)))])))
    }

    fn rename_column(&mut self, from: &str, to: &str) -> Result<Option<Told>> {
        self.need_mapping("renamed")?;
        let at = self.position(from)?;
        let from = self.fields[at].name().clone();
        self.refuse_needed(&from, "renamed")?;
        self.fields[at] = self.fields[at].clone().with_name(to);
        self.partition_columns.iter_mut().filter(|name| **name == from).for_each(|name| to.clone_into(name));
        check_names(&self.fields, true)?;
        Ok(Some(("RENAME COLUMN", vec![("oldColumnPath", Some(from)), ("newColumnPath", Some(to.to_owned()))])))
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

    fn alter_column(&mut self, column: &str, change: &ColumnChange) -> Result<Option<Told>> {
        let at = self.position(column)?;
        let field = self.fields[at].clone();
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
            ColumnChange::Required(_) | ColumnChange::Type(_) | ColumnChange::Place(_) => {}
        }
        let field = field.with_metadata(metadata);
        self.fields[at] = match change {
            ColumnChange::Required(is_required) => field.with_nullable(!is_required),
            ColumnChange::Type(to) => self.wider(&field, &arrow_type(to)?)?,
            _ => field,
        };
        let field = self.fields[at].clone();
        if let ColumnChange::Place(place) = change {
            self.fields.remove(at);
            let to = self.place(Some(place))?.unwrap_or(at);
            self.fields.insert(to, field.clone());
        }
        Ok(Some(("CHANGE COLUMN", vec![("column", Some(field_text(&field).map_err(invalid)?))])))
    }

    fn wider(&self, field: &Field, to: &DataType) -> Result<Field> {
        let name = field.name();
        if field.data_type() == to {
            return Ok(field.clone());
        }
        let Some(wider) = widened(field, to) else {
            let (from, to) = (sql_type(field.data_type()), sql_type(to));
            return Err(invalid(format!(
                "column {name} of table {} cannot go from {from} to {to}: only to a wider type (such as INT to BIGINT); else add a column, \
                 fill it by UPDATE and drop the old one",
                self.table
            )));
        };
        if !self.properties.get(WIDENING).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(invalid(format!(
                "types are widened only where the table allows it: ALTER TABLE {} SET TBLPROPERTIES ('{WIDENING}' = 'true')",
                self.table
            )));
        }
        if self.partition_columns.contains(name) {
            return Err(invalid(format!("table {} is partitioned by column {name}, whose type cannot change", self.table)));
        }
        self.refuse_needed(name, "given another type")?;
        Ok(wider)
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
