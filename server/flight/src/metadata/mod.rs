//! Questions about the server and its tables. Tickets of metadata are the commands themselves: any server can answer them, at any time.
//!
//! Names, types and nullability are the standard's (`FlightSql.proto`), to the letter: drivers compare. The catalog filter is exact (`""` asks
//! for what has no catalog, and all of ours have one), schema and table filters are LIKE patterns with `\` as escape.

pub mod columns;
mod keys;
mod sql_info;
mod tables;
mod types;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_flight::error::FlightError;
use asof_catalog::Session;

use crate::command::Metadata;
use crate::error::{Error, Result};
use crate::node::Node;

/// The schema of an answer, without making it.
///
/// # Errors
/// `Internal` when a constant table cannot be built.
pub fn schema(asked: &Metadata) -> Result<SchemaRef> {
    Ok(match asked {
        Metadata::SqlInfo(_) => sql_info::all()?.schema(),
        Metadata::XdbcTypeInfo(_) => types::all()?.schema(),
        Metadata::Catalogs(c) => c.into_builder().schema(),
        Metadata::DbSchemas(c) => c.clone().into_builder().schema(),
        Metadata::Tables(c) => c.clone().into_builder().schema(),
        Metadata::TableTypes(c) => c.into_builder().schema(),
        Metadata::PrimaryKeys(_) => keys::primary(),
        Metadata::ExportedKeys(_) | Metadata::ImportedKeys(_) | Metadata::CrossReference(_) => keys::foreign(),
    })
}

/// The answer.
///
/// # Errors
/// When the warehouse cannot be listed.
pub async fn answer(node: &Node, session: &Arc<Session>, asked: Metadata) -> Result<RecordBatch> {
    let empty = schema(&asked)?;
    match asked {
        Metadata::SqlInfo(c) => sql_info::all()?.record_batch(c.info).map_err(built),
        Metadata::XdbcTypeInfo(c) => types::all()?.record_batch(c.data_type).map_err(built),
        Metadata::Catalogs(c) => tables::catalogs(node, c),
        Metadata::DbSchemas(c) => tables::schemas(node, c).await,
        Metadata::Tables(c) => tables::tables(node, session, c).await,
        Metadata::TableTypes(c) => tables::table_types(c),
        Metadata::PrimaryKeys(_) | Metadata::ExportedKeys(_) | Metadata::ImportedKeys(_) | Metadata::CrossReference(_) => {
            Ok(RecordBatch::new_empty(empty))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn built(error: FlightError) -> Error {
    Error::Internal(format!("a metadata table could not be built: {error}"))
}
