//! What the server says about itself and its tables.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt32Type;
use arrow_flight::sql::{CommandGetSqlInfo, CommandGetTables, SqlInfo};
use futures::TryStreamExt;
use tonic::Code;

use crate::connection::Connection;
use crate::error::{Error, Result};

/// Who answers; empty where it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Its name, such as `asof`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A table or view, by its three names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableName {
    /// Catalog; empty where there is none.
    pub catalog: String,
    /// Schema; empty where there is none.
    pub schema: String,
    /// Table.
    pub table: String,
    /// `TABLE`, `VIEW` and the like.
    pub kind: String,
}

impl Connection {
    /// All tables and views that the session may see, in order of name.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn tables(&self) -> Result<Vec<TableName>> {
        let batches = self.rows(self.flight_info(&CommandGetTables::default()).await?).await?.collect().await?;
        let mut tables = Vec::new();
        for batch in &batches {
            let [catalogs, schemas, names, kinds] =
                ["catalog_name", "db_schema_name", "table_name", "table_type"].map(|name| text(batch, name));
            for row in 0..batch.num_rows() {
                tables.push(TableName { catalog: catalogs(row), schema: schemas(row), table: names(row), kind: kinds(row) });
            }
        }
        tables.sort_unstable();
        Ok(tables)
    }

    /// The server's name and version. It is the first call of a connection, so it also opens the session.
    pub(crate) async fn identify(&self) -> Result<Server> {
        let wanted = [SqlInfo::FlightSqlServerName, SqlInfo::FlightSqlServerVersion];
        let command = CommandGetSqlInfo { info: wanted.iter().map(|info| *info as u32).collect() };
        let mut rows = match self.flight_info(&command).await {
            Ok(info) => self.rows(info).await?,
            // A server may be useful without saying who it is.
            Err(Error::Server { code: Code::Unimplemented, .. }) => return Ok(Server::default()),
            Err(error) => return Err(error),
        };
        let mut server = Server::default();
        while let Some(batch) = rows.try_next().await? {
            for (info, value) in info_texts(&batch) {
                match info {
                    0 => server.name = value,
                    1 => server.version = value,
                    _ => {}
                }
            }
        }
        Ok(server)
    }
}

/// A text column, by row; a column that is not there, or not text, is empty.
fn text<'a>(batch: &'a RecordBatch, name: &str) -> impl Fn(usize) -> String + 'a {
    let column = batch.column_by_name(name).and_then(|column| column.as_string_opt::<i32>());
    move |row| column.filter(|column| column.is_valid(row)).map(|column| column.value(row).to_owned()).unwrap_or_default()
}

/// The answers of GetSqlInfo that are texts: number and value, out of a dense union.
fn info_texts(batch: &RecordBatch) -> Vec<(u32, String)> {
    let columns = batch.column_by_name("info_name").zip(batch.column_by_name("value"));
    let Some((names, values)) = columns.and_then(|(names, values)| names.as_primitive_opt::<UInt32Type>().zip(values.as_union_opt()))
    else {
        return Vec::new();
    };
    let pairs = names.iter().enumerate().filter_map(|(row, name)| {
        let value = values.value(row);
        Some((name?, value.as_string_opt::<i32>()?.value(0).to_owned()))
    });
    pairs.collect()
}
