//! CREATE [OR REPLACE] TABLE [IF NOT EXISTS] [AS query].
//!
//! One commit: metadata, and for AS the rows too. Replacing keeps the table and its history; its files go and its schema,
//! partitioning and properties are the new ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::Schema;
use asof_storage::delta::with_column_mapping;
use asof_storage::snapshot::{ColumnMapping, SnapshotSelector};
use asof_storage::transaction::{Conflict, NewMetadata};
use asof_storage::{Change, DataFile, ReadSet, Snapshot, TableFormat};
use datafusion::physical_plan::ExecutionPlan;

use super::columns::{check_names, declared, mapped, of_query, required};
use super::{Attempt, bytes_of, commit, count_of, invalid, json_list, operation};
use crate::engine::Outcome;
use crate::error::{Error, Result};
use crate::plan::{Planner, StatementContext};
use crate::resolve;
use crate::statement::{CreateTable, Statement, TableTarget};
use crate::write::rules::Origin;
use crate::write::{self, Rules, Source, Staged, Target};

/// Property: the highest id given to a column.
const MAX_COLUMN_ID: &str = "delta.columnMapping.maxColumnId";

/// What is there already.
struct Existing {
    snapshot: Arc<Snapshot>,
    files: Vec<DataFile>,
}

pub(super) async fn attempt(ctx: &StatementContext, statement: &Statement, create: &CreateTable) -> Result<Attempt> {
    if let Some(format) = create.using.as_deref().filter(|format| !format.eq_ignore_ascii_case("delta")) {
        return Err(Error::Unsupported { message: format!("USING {format}: asof creates Delta tables; use USING delta"), location: None });
    }
    let table = place(ctx, create).await?;
    let existing = existing(table.as_ref()).await?;
    if existing.is_some() && create.if_not_exists {
        return Ok(Attempt::Done(Outcome { count: None, rows: None }));
    }
    if existing.is_some() && !create.or_replace {
        return Err(asof_catalog::Error::AlreadyExists { what: "table", name: create.target.to_string() }.into());
    }
    let (planner, pins) = Planner::resolve(ctx, statement).await?;
    let plan = match &create.query {
        Some(query) => Some(planner.physical(&planner.logical(query).await?).await?),
        None => None,
    };
    let metadata = metadata(ctx, create, plan.as_ref(), existing.as_ref())?;
    let staged = match plan {
        Some(plan) => rows(ctx, &planner, table.as_ref(), &metadata, plan).await?,
        None => Staged::none(),
    };
    let reads_itself = pins.iter().any(|pin| pin.table == table.id().location().as_str());
    let removed = existing.as_ref().map(|e| e.files.clone()).unwrap_or_default();
    let outcome = Outcome { count: create.query.is_some().then_some(staged.rows), rows: None };
    let change = Change {
        operation: described(ctx, create, &metadata, &staged, &removed),
        metadata: Some(metadata),
        reads: if existing.is_some() || reads_itself { ReadSet::Table } else { ReadSet::Nothing },
        removed,
        added: staged.files.clone(),
        data_change: true,
        ..Change::default()
    };
    match commit(table.as_ref(), existing.as_ref().map(|e| &e.snapshot), change, staged, outcome).await {
        // Someone created it meanwhile: then there is nothing to do, or something to replace.
        Err(Error::Storage(asof_storage::Error::AlreadyExists { .. })) if create.if_not_exists || create.or_replace => {
            let detail = format!("table {} was created meanwhile", create.target);
            Ok(Attempt::Lost(Conflict { with: 0, operation: "CREATE TABLE".to_owned(), detail }))
        }
        outcome => outcome,
    }
}

/// Where the table is, or will be.
async fn place(ctx: &StatementContext, create: &CreateTable) -> Result<Arc<dyn TableFormat>> {
    match &create.target {
        TableTarget::Name(parts) => Ok(ctx.warehouse.create(&ctx.session.qualify(parts)?).await?),
        TableTarget::Path { .. } if create.or_replace => resolve::table(ctx, &create.target).await,
        TableTarget::Path { .. } => {
            Err(Error::Unsupported { message: format!("CREATE TABLE {} by path; give the table a name", create.target), location: None })
        }
    }
}

async fn existing(table: &dyn TableFormat) -> Result<Option<Existing>> {
    match table.resolve(&SnapshotSelector::Latest).await {
        Ok(snapshot) => {
            let files = table.logged_index(&snapshot).await?.files().collect();
            Ok(Some(Existing { snapshot, files }))
        }
        Err(asof_storage::Error::NotATable { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn metadata(
    ctx: &StatementContext,
    create: &CreateTable,
    plan: Option<&Arc<dyn ExecutionPlan>>,
    existing: Option<&Existing>,
) -> Result<NewMetadata> {
    let mut properties: BTreeMap<String, String> = create.properties.iter().cloned().collect();
    let fields = match plan {
        Some(_) if !create.columns.is_empty() => {
            let message = "CREATE TABLE with both columns and AS: name and cast them in the query".to_owned();
            return Err(Error::Unsupported { message, location: None });
        }
        Some(plan) => of_query(&plan.schema())?,
        None => declared(&create.columns, &create.constraints, &mut properties)?,
    };
    if fields.is_empty() {
        return Err(invalid(format!("table {} has no columns: name them, or add AS SELECT …", create.target)));
    }
    check_names(&fields, mapped(&properties))?;
    let schema = Schema::new(fields);
    let partition_columns = partition_columns(&schema, create)?;
    // A replaced table's ids go on, so that no id ever means two columns.
    if let (true, Some(highest)) = (mapped(&properties), existing.and_then(|e| e.snapshot.properties.get(MAX_COLUMN_ID))) {
        properties.entry(MAX_COLUMN_ID.to_owned()).or_insert_with(|| highest.clone());
    }
    let (schema, properties) = with_column_mapping(&Arc::new(schema), properties, false, &ctx.env)?;
    Ok(NewMetadata { schema, partition_columns, properties, description: create.comment.clone() })
}

fn partition_columns(schema: &Schema, create: &CreateTable) -> Result<Vec<String>> {
    let mut columns: Vec<String> = Vec::with_capacity(create.partitioned_by.len());
    for name in &create.partitioned_by {
        let field = schema.field(required(schema, name, &create.target.to_string())?);
        if field.data_type().is_nested() {
            return Err(invalid(format!("column {name} is nested: a table cannot be partitioned by it")));
        }
        if columns.contains(field.name()) {
            return Err(invalid(format!("PARTITIONED BY names column {name} twice")));
        }
        columns.push(field.name().clone());
    }
    if columns.len() == schema.fields().len() {
        return Err(invalid("a table needs a column that it is not partitioned by".to_owned()));
    }
    Ok(columns)
}

async fn rows(
    ctx: &StatementContext,
    planner: &Planner,
    table: &dyn TableFormat,
    metadata: &NewMetadata,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Staged> {
    let target = Target {
        name: table.name().to_owned(),
        store: table.store().clone(),
        schema: Arc::clone(&metadata.schema),
        partition_columns: metadata.partition_columns.clone(),
        mapping: match metadata.properties.get("delta.columnMapping.mode").map(String::as_str) {
            Some("name") => ColumnMapping::Name,
            Some("id") => ColumnMapping::Id,
            _ => ColumnMapping::None,
        },
        properties: metadata.properties.clone(),
        env: ctx.env.clone(),
        folder: "",
    };
    let origins: Vec<_> = (0..target.schema.fields().len()).map(Origin::Source).collect();
    let rules = Rules::new(planner, &target, &plan.schema(), &origins, &ctx.session.time_zone()).await?;
    let source = Source::new(planner, plan, &target, rules)?;
    write::write(target, vec![source]).await
}

fn described(
    ctx: &StatementContext,
    create: &CreateTable,
    metadata: &NewMetadata,
    staged: &Staged,
    removed: &[DataFile],
) -> asof_storage::Operation {
    let name = match (create.or_replace, create.query.is_some()) {
        (false, false) => "CREATE TABLE",
        (false, true) => "CREATE TABLE AS SELECT",
        (true, false) => "CREATE OR REPLACE TABLE",
        (true, true) => "CREATE OR REPLACE TABLE AS SELECT",
    };
    let properties = serde_json::json!(metadata.properties).to_string();
    let parameters = [
        ("partitionBy", Some(json_list(&metadata.partition_columns))),
        ("clusterBy", Some("[]".to_owned())),
        ("description", metadata.description.clone()),
        ("isManaged", Some("true".to_owned())),
        ("properties", Some(properties)),
    ];
    let metrics = match create.query {
        None => vec![],
        Some(_) => vec![
            ("numFiles", count_of(&staged.files)),
            ("numOutputRows", staged.rows),
            ("numOutputBytes", staged.bytes()),
            ("numRemovedFiles", count_of(removed)),
            ("numRemovedBytes", bytes_of(removed)),
        ],
    };
    operation(ctx, name, &parameters, &metrics)
}
