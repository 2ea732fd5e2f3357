//! The corpus of `.slt` files in process: the answers that the wire's runner expects, without the wire.

use std::sync::Arc;
use std::time::Duration;

use asof_catalog::{Session, Sessions, Warehouse};
use asof_integration::corpus;
use asof_query::{Engine, EngineConfig, Error, Interrupt, Outcome};
use asof_storage::Env;
use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};

struct InProcess {
    engine: Arc<Engine>,
    session: Arc<Session>,
}

#[async_trait]
impl AsyncDB for InProcess {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        match self.engine.run(&self.session, sql, None, &Interrupt::new()).await? {
            Outcome { rows: Some((schema, batches)), .. } => {
                corpus::rows(&schema, &batches).map_err(|error| Error::Internal(error.to_string()))
            }
            Outcome { count, rows: None } => Ok(DBOutput::StatementComplete(count.map_or(0, |count| u64::try_from(count).unwrap()))),
        }
    }

    async fn shutdown(&mut self) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_corpus_in_process() {
    let folder = tempfile::tempdir().unwrap();
    corpus::fill(folder.path()).unwrap();
    let warehouse = Arc::new(Warehouse::open(folder.path().to_str().unwrap(), "lake", Env::system()).unwrap());
    let config = EngineConfig { memory_limit: 256 << 20, statement_memory_limit: None, parallelism: 2, spill_dir: None };
    let engine = Arc::new(Engine::new(warehouse, Env::system(), &config).unwrap());
    let sessions = Sessions::new(Env::system(), Duration::from_secs(600), "lake", "main");
    let files = corpus::files().unwrap();
    assert!(!files.is_empty());
    let connect = || {
        let (engine, session) = (Arc::clone(&engine), sessions.open("anonymous"));
        async move { Ok(InProcess { engine, session }) }
    };
    let differences = corpus::run(&files, || connect).await;
    assert!(differences.is_empty(), "{} of {} files differ\n{}", differences.len(), files.len(), differences.join("\n\n"));
}
