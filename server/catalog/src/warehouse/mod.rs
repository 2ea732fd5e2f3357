//! Tables of a folder or bucket prefix: `<warehouse>/<schema>/<table>/`.
//!
//! A folder that holds `_delta_log/` is a table, at once and without registration; schemas are folders. So the file system is the only
//! truth, every question is asked of it, and only *handles* are kept, because they hold the caches of a table. Invariants: one folder has
//! one handle, whatever it is called; a folder that was replaced by another gets a new one; nothing below the root is reached through a
//! symbolic link or `..`. `_asof/` is the server's own. Dropping a table moves its folder to `_asof/dropped/` in one rename, so that it is
//! gone at once and can come back.

mod folder;
mod path;
mod secret;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use asof_storage::delta::DeltaTable;
use asof_storage::error::Access;
use asof_storage::object::TableStore;
use asof_storage::{Env, Error as StorageError, TableFormat, TableId};
use parking_lot::Mutex;
use url::Url;

use crate::error::{Error, Result};
use crate::name::{self, TableName};
use crate::nearest;
use folder::{Found, Identity};

pub use secret::{KEY_BYTES, Secret};

/// The server's own folder in a warehouse.
const OWN_FOLDER: &str = "_asof";
/// The schema that is always there.
const DEFAULT_SCHEMA: &str = "main";
/// Handles kept; the least recently asked for go first.
const HANDLES: usize = 10_000;

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
    env: Env,
    catalog: String,
    /// The root, links on the way to it followed.
    folder: PathBuf,
    /// The root as it was given, absolute.
    given: PathBuf,
    store: TableStore,
    handles: Mutex<Handles>,
}

/// Handles by folder.
#[derive(Debug, Default)]
struct Handles {
    by_folder: HashMap<PathBuf, Handle>,
    asked: u64,
}

#[derive(Debug)]
struct Handle {
    table: Arc<dyn TableFormat>,
    /// Which log it was opened over; none when the table was yet to be created.
    log: Option<Identity>,
    last_asked: u64,
}

impl Warehouse {
    /// Over a local folder (made when absent) or a `file://` URL. `catalog` is its name in SQL (`lake`).
    ///
    /// # Errors
    /// `InvalidName` for another kind of URL; from the file system.
    pub fn open(location: &str, catalog: &str, env: Env) -> Result<Self> {
        name::check("catalog", catalog)?;
        let (given, folder) = folder::open_root(&local_path(location)?)?;
        let store = TableStore::local(folder_url(&folder)?)?;
        Ok(Self { env, catalog: catalog.to_owned(), folder, given, store, handles: Mutex::default() })
    }

    /// The catalog's name.
    pub fn catalog(&self) -> &str {
        &self.catalog
    }

    /// The root's store, for DataFusion's registry.
    pub fn store(&self) -> &TableStore {
        &self.store
    }

    /// Schemas, sorted; `main` is always one.
    ///
    /// # Errors
    /// From the file system.
    pub async fn schemas(&self) -> Result<Vec<String>> {
        let mut schemas = Vec::new();
        for name in folder::folders(&self.folder).await? {
            // A table right below the root has no schema; it is read by its path.
            if name::check("schema", &name).is_ok() && folder::table(&self.folder.join(&name)).await?.is_none() {
                schemas.push(name);
            }
        }
        if let Err(place) = schemas.binary_search_by(|s| s.as_str().cmp(DEFAULT_SCHEMA)) {
            schemas.insert(place, DEFAULT_SCHEMA.to_owned());
        }
        Ok(schemas)
    }

    /// Tables of a schema, sorted.
    ///
    /// # Errors
    /// `UnknownSchema`; from the file system.
    pub async fn tables(&self, schema: &str) -> Result<Vec<TableEntry>> {
        let schema = self.schema(schema).await?;
        let path = self.folder.join(&schema);
        let mut tables = Vec::new();
        for table in folder::folders(&path).await? {
            if folder::table(&path.join(&table)).await?.is_some() {
                tables.push(TableEntry { name: TableName::new(&self.catalog, &schema, table), format: "delta" });
            }
        }
        Ok(tables)
    }

    /// A table by name; `UnknownTable` with similar names. A name that no folder has exactly is looked for in any case. Handles are cached by
    /// location, so that caches are shared; a table that was dropped and made again at its path is seen as the new one.
    ///
    /// # Errors
    /// `UnknownCatalog`, `UnknownSchema`, `UnknownTable`, `InvalidName`; from the file system.
    pub async fn table(&self, name: &TableName) -> Result<Arc<dyn TableFormat>> {
        let (found, path, log) = self.find(name).await?;
        self.handle(&path, Some(log), &found.to_string())
    }

    /// A path identifier: ``delta.`Tables/x` ``, relative to the root or an absolute path or URL inside it; `InvalidName` outside it.
    ///
    /// # Errors
    /// `InvalidName`; `NotATable` when no table lies there; `Unsupported` for a format other than `delta`.
    pub async fn table_at(&self, format: &str, path: &str) -> Result<Arc<dyn TableFormat>> {
        let segments = path::segments(path, &[&self.given, &self.folder])?;
        let shown = if segments.is_empty() { ".".to_owned() } else { segments.join("/") };
        if !format.eq_ignore_ascii_case("delta") {
            let detail = format!("tables of format {format:?} are not supported; delta is");
            return Err(Error::Storage(StorageError::Unsupported { table: format!("{format}.`{shown}`"), access: Access::Read, detail }));
        }
        let mut folder = self.folder.clone();
        for segment in &segments {
            folder.push(segment);
            match folder::look(&folder).await? {
                Found::Folder(_) => {}
                Found::Nothing => return Err(not_a_table(&shown, format!("there is no folder {segment:?}"))),
                Found::Other => return Err(not_a_table(&shown, format!("{segment:?} is not a folder"))),
                Found::Link => return Err(link(&shown)),
            }
        }
        let Some(log) = folder::table(&folder).await? else {
            return Err(not_a_table(&shown, "the folder holds no `_delta_log`".to_owned()));
        };
        let name = match segments.as_slice() {
            [schema, table] => TableName::new(&self.catalog, schema, table).to_string(),
            _ => format!("delta.`{shown}`"),
        };
        self.handle(&folder, Some(log), &name)
    }

    /// A handle to where a table will be created (its folder has no log yet, or it has: then the caller decides).
    ///
    /// # Errors
    /// `UnknownCatalog`, `UnknownSchema`, `InvalidName`; from the file system.
    pub async fn create(&self, name: &TableName) -> Result<Arc<dyn TableFormat>> {
        self.check_catalog(&name.catalog)?;
        name::check("table", &name.table)?;
        let schema = self.schema(&name.schema).await?;
        let path = self.folder.join(&schema).join(&name.table);
        let log = match folder::look(&path).await? {
            Found::Nothing => None,
            Found::Folder(_) => folder::table(&path).await?,
            Found::Link => return Err(link(&format!("{schema}/{}", name.table))),
            Found::Other => return Err(not_a_table(&format!("{schema}/{}", name.table), "a file lies there".to_owned())),
        };
        self.handle(&path, log, &TableName::new(&self.catalog, schema, &name.table).to_string())
    }

    /// Make a schema; `false` when it was there already and that is fine.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidName`; from the file system.
    pub async fn create_schema(&self, schema: &str, if_not_exists: bool) -> Result<bool> {
        name::check("schema", schema)?;
        let made = match self.schema(schema).await {
            Ok(_) => false,
            Err(Error::UnknownSchema { .. }) => folder::make(&self.folder.join(schema)).await?,
            Err(e) => return Err(e),
        };
        if made || if_not_exists { Ok(made) } else { Err(Error::AlreadyExists { what: "schema", name: schema.to_owned() }) }
    }

    /// Drop a schema. With `cascade` its tables go too, each as by [`Warehouse::drop_table`]. Folders that are no tables are not touched, and
    /// keep the schema from being dropped.
    ///
    /// # Errors
    /// `UnknownSchema`, `NotEmpty`; `InvalidName` for `main`, which is always there.
    pub async fn drop_schema(&self, schema: &str, cascade: bool) -> Result<()> {
        let schema = self.schema(schema).await?;
        if schema == DEFAULT_SCHEMA {
            return Err(Error::InvalidName(format!(
                "schema {DEFAULT_SCHEMA:?} is always there and cannot be dropped; drop its tables instead"
            )));
        }
        let tables = self.tables(&schema).await?;
        if !cascade && !tables.is_empty() {
            let tables = tables.into_iter().take(10).map(|t| t.name.table).collect();
            return Err(Error::NotEmpty { name: schema, tables });
        }
        for table in &tables {
            self.drop_table(&table.name).await?;
        }
        match folder::remove_empty(&self.folder.join(&schema)).await {
            Ok(_) => Ok(()),
            Err(Error::Storage(StorageError::Store { .. })) if folder::look(&self.folder.join(&schema)).await? != Found::Nothing => {
                Err(Error::NotEmpty { name: schema, tables: vec!["files that are no tables".to_owned()] })
            }
            Err(e) => Err(e),
        }
    }

    /// Drop a table: its folder moves to `_asof/dropped/<schema>/<table>/<milliseconds>-<id>` in one rename.
    ///
    /// # Errors
    /// As [`Warehouse::table`].
    pub async fn drop_table(&self, name: &TableName) -> Result<()> {
        let (found, path, _) = self.find(name).await?;
        let unique = format!("{}-{}", self.env.clock.now().millis(), self.env.entropy.uuid().simple());
        let to = self.folder.join(OWN_FOLDER).join("dropped").join(&found.schema).join(&found.table).join(unique);
        self.handles.lock().by_folder.remove(&path);
        if folder::rename(&path, &to).await? {
            return Ok(());
        }
        Err(Error::UnknownTable { asked: found.to_string(), hint: "it was dropped a moment ago".to_owned() })
    }

    /// The table's true name, its folder, and which log lies there.
    async fn find(&self, asked: &TableName) -> Result<(TableName, PathBuf, Identity)> {
        self.check_catalog(&asked.catalog)?;
        let schema = self.schema(&asked.schema).await?;
        let folder = self.folder.join(&schema);
        if name::check("table", &asked.table).is_ok() {
            let path = folder.join(&asked.table);
            match folder::look(&path).await? {
                Found::Folder(_) => {
                    if let Some(log) = folder::table(&path).await? {
                        return Ok((TableName::new(&self.catalog, schema, &asked.table), path, log));
                    }
                }
                Found::Link => return Err(link(&format!("{schema}/{}", asked.table))),
                Found::Nothing | Found::Other => {}
            }
        }
        let tables: Vec<String> = self.tables(&schema).await?.into_iter().map(|t| t.name.table).collect();
        if let Some(table) = only_one_in_any_case(&asked.table, &tables) {
            let path = folder.join(table);
            if let Some(log) = folder::table(&path).await? {
                return Ok((TableName::new(&self.catalog, schema, table), path, log));
            }
        }
        Err(Error::UnknownTable { asked: asked.to_string(), hint: self.hint(asked, &schema, &tables).await? })
    }

    /// What to say of a table that is not there.
    async fn hint(&self, asked: &TableName, schema: &str, tables: &[String]) -> Result<String> {
        if let Some(meant) = nearest::did_you_mean(&asked.table, tables.iter().map(String::as_str)) {
            return Ok(meant);
        }
        for other in self.schemas().await? {
            if other != schema && folder::table(&self.folder.join(&other).join(&asked.table)).await?.is_some() {
                return Ok(format!("there is one in schema {other:?}: {}", TableName::new(&self.catalog, other.as_str(), &asked.table)));
            }
        }
        if name::check("table", &asked.table).is_ok() && folder::table(&self.folder.join(&asked.table)).await?.is_some() {
            return Ok(format!("a table lies right below the warehouse, outside any schema: read it as delta.`{}`", asked.table));
        }
        Ok(match tables.len() {
            0 => format!("schema {schema:?} holds no tables; SHOW SCHEMAS lists the others"),
            _ => format!("schema {schema:?} holds {}", nearest::a_few(tables)),
        })
    }

    /// The schema's true name.
    async fn schema(&self, asked: &str) -> Result<String> {
        let valid = name::check("schema", asked).is_ok();
        if valid && asked == DEFAULT_SCHEMA {
            return Ok(asked.to_owned());
        }
        let path = self.folder.join(asked);
        if valid && matches!(folder::look(&path).await?, Found::Folder(_)) && folder::table(&path).await?.is_none() {
            return Ok(asked.to_owned());
        }
        let schemas = self.schemas().await?;
        if let Some(schema) = only_one_in_any_case(asked, &schemas) {
            return Ok(schema.to_owned());
        }
        let hint = nearest::did_you_mean(asked, schemas.iter().map(String::as_str))
            .unwrap_or_else(|| format!("there is {}; CREATE SCHEMA makes another", nearest::a_few(&schemas)));
        Err(Error::UnknownSchema { catalog: self.catalog.clone(), asked: asked.to_owned(), hint })
    }

    fn check_catalog(&self, asked: &str) -> Result<()> {
        if asked.eq_ignore_ascii_case(&self.catalog) {
            return Ok(());
        }
        Err(Error::UnknownCatalog { asked: asked.to_owned(), existing: vec![self.catalog.clone()] })
    }

    /// The one handle of a folder. A cached one stands while the log it was opened over (or then created) is still the one that lies there.
    fn handle(&self, path: &Path, log: Option<Identity>, name: &str) -> Result<Arc<dyn TableFormat>> {
        let mut handles = self.handles.lock();
        handles.asked += 1;
        let asked = handles.asked;
        if let Some(handle) = handles.by_folder.get_mut(path)
            && (handle.log == log || handle.log.is_none())
        {
            handle.log = log;
            handle.last_asked = asked;
            return Ok(Arc::clone(&handle.table));
        }
        let store = TableStore::over(Arc::clone(&self.store.objects), folder_url(path)?)?;
        let id = TableId::new(store.url.clone());
        let table: Arc<dyn TableFormat> = Arc::new(DeltaTable::open(id, name.to_owned(), store, self.env.clone()));
        handles.by_folder.insert(path.to_path_buf(), Handle { table: Arc::clone(&table), log, last_asked: asked });
        handles.forget_some();
        Ok(table)
    }
}

impl Handles {
    /// Drops the least recently asked for, a tenth at a time.
    fn forget_some(&mut self) {
        if self.by_folder.len() <= HANDLES {
            return;
        }
        let mut ages: Vec<u64> = self.by_folder.values().map(|h| h.last_asked).collect();
        ages.sort_unstable();
        let oldest = ages.get(HANDLES / 10).copied().unwrap_or_default();
        self.by_folder.retain(|_, handle| handle.last_asked >= oldest);
    }
}

fn only_one_in_any_case<'a>(asked: &str, names: &'a [String]) -> Option<&'a str> {
    let asked = asked.to_lowercase();
    let mut same = names.iter().filter(|name| name.to_lowercase() == asked);
    match (same.next(), same.next()) {
        (Some(name), None) => Some(name),
        _ => None,
    }
}

fn local_path(location: &str) -> Result<PathBuf> {
    let Some((scheme, _)) = location.split_once("://") else { return Ok(PathBuf::from(location)) };
    let refuse = |why: &str| Error::InvalidName(format!("warehouse {location:?} {why}; give a local folder, or a file:// URL"));
    if scheme != "file" {
        return Err(refuse(&format!("has the scheme {scheme:?}, which is not supported")));
    }
    Url::parse(location).ok().and_then(|url| url.to_file_path().ok()).ok_or_else(|| refuse("is no file URL"))
}

fn folder_url(folder: &Path) -> Result<Url> {
    Url::from_directory_path(folder).map_err(|()| Error::InvalidName(format!("{} is not an absolute path", folder.display())))
}

fn not_a_table(location: &str, detail: String) -> Error {
    Error::Storage(StorageError::NotATable { location: location.to_owned(), detail })
}

fn link(shown: &str) -> Error {
    Error::InvalidName(format!(
        "{shown:?} is, or leads through, a symbolic link; links inside a warehouse are not followed: move the folder itself there"
    ))
}
