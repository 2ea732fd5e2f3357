//! Tables of a folder or bucket prefix: `<warehouse>/<schema>/<table>/`.
//!
//! A folder that holds `_delta_log/` is a table, at once and without registration. Schemas are folders. `_asof/` is the
//! server's own. Dropping a table moves its folder to `_asof/dropped/` in one rename, so that it is gone at once and can come back.

use std::sync::Arc;

use asof_storage::object::TableStore;
use asof_storage::{Env, TableFormat};

use crate::error::Result;
use crate::name::TableName;

/// One table as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Its name.
    pub name: TableName,
    /// Its format: `delta`.
    pub format: &'static str,
}

/// The tables below one root.
#[derive(Debug)]
pub struct Warehouse {
    _env: Env,
}

#[allow(unused_variables, missing_docs, clippy::unused_async, clippy::todo)]
impl Warehouse {
    /// Over a local folder (made when absent) or a `file://` URL. `catalog` is its name in SQL (`lake`).
    pub fn open(location: &str, catalog: &str, env: Env) -> Result<Self> {
        todo!()
    }
    /// The catalog's name.
    pub fn catalog(&self) -> &str {
        todo!()
    }
    /// Schemas, sorted; `main` is always one.
    pub async fn schemas(&self) -> Result<Vec<String>> {
        todo!()
    }
    /// Tables of a schema, sorted.
    pub async fn tables(&self, schema: &str) -> Result<Vec<TableEntry>> {
        todo!()
    }
    /// A table by name; `UnknownTable` with similar names. Handles are cached by location, so that caches are shared; a table that was
    /// dropped and made again at its path is seen as the new one.
    pub async fn table(&self, name: &TableName) -> Result<Arc<dyn TableFormat>> {
        todo!()
    }
    /// A path identifier: ``delta.`Tables/x` ``, relative to the root or an absolute path or URL inside it; `InvalidName` outside it.
    pub async fn table_at(&self, format: &str, path: &str) -> Result<Arc<dyn TableFormat>> {
        todo!()
    }
    /// A handle to where a table will be created (its folder has no log yet, or it has: then the caller decides).
    pub async fn create(&self, name: &TableName) -> Result<Arc<dyn TableFormat>> {
        todo!()
    }
    /// Make a schema.
    pub async fn create_schema(&self, schema: &str, if_not_exists: bool) -> Result<bool> {
        todo!()
    }
    /// Drop a schema.
    pub async fn drop_schema(&self, schema: &str, cascade: bool) -> Result<()> {
        todo!()
    }
    /// Drop a table.
    pub async fn drop_table(&self, name: &TableName) -> Result<()> {
        todo!()
    }
    /// The root's store, for DataFusion's registry.
    pub fn store(&self) -> &TableStore {
        todo!()
    }
}
