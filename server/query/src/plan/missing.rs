//! A column that is not there at the moment read.
//!
//! A version is read with its own schema, never today's. So a column that came later is an error, and the helpful answer is not only which
//! columns there were, but when the missing one came.

use arrow::datatypes::DataType;
use asof_storage::{Snapshot, SnapshotSelector, TableFormat};
use datafusion::common::{DataFusionError, SchemaError};

use super::Relation;
use crate::error::{Error, Location};

/// Make a planning error tell what exists; for a missing column, also with which version it came.
pub async fn explain(error: DataFusionError, relations: &[Relation]) -> Error {
    let location = error.diagnostic().and_then(|d| d.span).map(|span| Location { line: span.start.line, column: span.start.column });
    let DataFusionError::SchemaError(schema_error, _) = error.find_root() else {
        return located(with_fields(error.into(), relations), location);
    };
    let SchemaError::FieldNotFound { field, valid_fields } = schema_error.as_ref() else {
        return located(error.into(), location);
    };
    let mut existing: Vec<_> = valid_fields.iter().map(|f| f.name.clone()).collect();
    existing.dedup();
    let mut message = format!("no column {:?}: there are {}", field.name, existing.join(", "));
    for relation in relations {
        if let Relation::Table { table, .. } = relation
            && let Some(came) = came_with(table.table.as_ref(), &table.snapshot, &field.name).await
        {
            message.push_str("; ");
            message.push_str(&came);
        }
    }
    Error::Invalid { message, location }
}

/// DataFusion says which field a struct lacks, and not which it has.
fn with_fields(error: Error, relations: &[Relation]) -> Error {
    let Error::Invalid { mut message, location } = error else { return error };
    if message.starts_with("Field ") && message.contains(" not found in struct") {
        for field in relations.iter().flat_map(|r| r.schema().fields().to_vec()) {
            if let DataType::Struct(fields) = field.data_type() {
                let names: Vec<_> = fields.iter().map(|f| f.name().as_str()).collect();
                message.push_str(&format!("; {} has {}", field.name(), names.join(", ")));
            }
        }
    }
    Error::Invalid { message, location }
}

fn located(error: Error, location: Option<Location>) -> Error {
    match (error, location) {
        (Error::Invalid { message, location: None }, location) => Error::Invalid { message, location },
        (Error::Unsupported { message, location: None }, location) => Error::Unsupported { message, location },
        (error, _) => error,
    }
}

fn has(snapshot: &Snapshot, column: &str) -> bool {
    snapshot.schema.fields().iter().any(|f| f.name().eq_ignore_ascii_case(column))
}

/// The version after `read` with which a column came, found by halving: right when it came once and stayed.
async fn came_with(table: &dyn TableFormat, read: &Snapshot, column: &str) -> Option<String> {
    if has(read, column) {
        return None;
    }
    let latest = table.resolve(&SnapshotSelector::Latest).await.ok()?;
    if latest.version == read.version || !has(&latest, column) {
        return None;
    }
    let (mut without, mut with) = (read.version, latest);
    while with.version - without > 1 {
        let middle = table.resolve(&SnapshotSelector::Version(without + (with.version - without) / 2)).await.ok()?;
        if has(&middle, column) { with = middle } else { without = middle.version }
    }
    let name = &read.name;
    let (version, at) = (with.version, with.committed_at);
    Some(format!("column {column:?} of {name} came with version {version} ({at}), and version {} was read", read.version))
}
