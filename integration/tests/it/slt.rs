//! The corpus of `.slt` files over the wire, through the bundled client's library.

use asof_client::{Connection, Error, Outcome};
use asof_integration::corpus;
use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};

use crate::server::Server;

struct Wire {
    connection: Connection,
}

#[async_trait]
impl AsyncDB for Wire {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        match self.connection.run(sql).await? {
            Outcome::Rows(rows) => {
                let schema = rows.schema();
                let batches = rows.collect().await?;
                corpus::rows(&schema, &batches).map_err(Error::Arrow)
            }
            Outcome::Count(count) => Ok(DBOutput::StatementComplete(count.unwrap_or(0))),
        }
    }

    async fn shutdown(&mut self) {}
}

#[tokio::test]
async fn the_corpus_over_the_wire() {
    let warehouse = tempfile::tempdir().unwrap();
    corpus::fill(warehouse.path()).unwrap();
    let server = Server::start(warehouse.path());
    let files = corpus::files().unwrap();
    assert!(!files.is_empty());
    let connect = || async { Ok(Wire { connection: Connection::connect(&server.address).await? }) };
    let differences = corpus::run(&files, || connect).await;
    assert!(differences.is_empty(), "{} of {} files differ\n{}", differences.len(), files.len(), differences.join("\n\n"));
}
