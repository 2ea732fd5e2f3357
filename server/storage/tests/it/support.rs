//! Tables to test with: copies of the golden ones, and a clock that stands still.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use asof_storage::delta::DeltaTable;
use asof_storage::object::TableStore;
use asof_storage::transaction::{NewFile, NewMetadata};
use asof_storage::{
    Change, Clock, CommitOutcome, DataFile, Entropy, Env, Micros, Operation, Snapshot, SnapshotSelector, TableFormat, TableId,
};
use object_store::ObjectStoreExt;
use serde_json::Value;
use tempfile::TempDir;
use url::Url;
use uuid::Uuid;

/// 2026-12-31T00:00:00Z: later than any golden commit.
pub const NOW: Micros = Micros::from_millis(1_798_675_200_000);

#[derive(Debug)]
pub struct Fixed {
    now: Micros,
    ids: AtomicU64,
}

impl Clock for Fixed {
    fn now(&self) -> Micros {
        self.now
    }
}

impl Entropy for Fixed {
    fn uuid(&self) -> Uuid {
        Uuid::from_u64_pair(0x1234_5678_9abc_4def, 0x8000_0000_0000_0000 | self.ids.fetch_add(1, Ordering::SeqCst))
    }

    fn number(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::SeqCst)
    }
}

pub fn env() -> Env {
    static SEED: AtomicU64 = AtomicU64::new(0);
    let fixed = Arc::new(Fixed { now: NOW, ids: AtomicU64::new(SEED.fetch_add(1 << 32, Ordering::SeqCst)) });
    Env { clock: fixed.clone(), entropy: fixed }
}

pub fn golden_root() -> PathBuf {
    PathBuf::from("../../integration/golden/delta")
}

/// A golden case, copied to its own folder, with its commit files' times set.
pub struct Case {
    pub name: String,
    pub json: Value,
    pub folder: TempDir,
}

impl Case {
    pub fn copy(name: &str) -> Self {
        let from = golden_root().join(name);
        let json: Value = serde_json::from_slice(&fs::read(from.join("case.json")).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        copy_folder(&from.join("table"), &folder.path().join("table"));
        for (path, millis) in json["mtimes"].as_object().unwrap() {
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(millis.as_u64().unwrap());
            let file = File::options().write(true).open(folder.path().join("table").join(path)).unwrap();
            file.set_times(FileTimes::new().set_modified(at)).unwrap();
        }
        Self { name: name.to_owned(), json, folder }
    }

    pub fn table(&self) -> DeltaTable {
        open(&self.folder.path().join("table"))
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join("table").join(inside)
    }

    pub fn expect(&self, file: &str) -> Option<Value> {
        let text = fs::read(golden_root().join(&self.name).join("expect").join(file)).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }
}

/// All golden cases, by name.
pub fn cases() -> Vec<String> {
    let folders = |under: &Path, prefix: &str| -> Vec<String> {
        let entries = fs::read_dir(under).unwrap().map(|e| e.unwrap().path());
        let with_case = entries.filter(|p| p.join("case.json").is_file());
        with_case.map(|p| format!("{prefix}{}", p.file_name().unwrap().to_str().unwrap())).collect()
    };
    let mut names = folders(&golden_root(), "");
    names.extend(folders(&golden_root().join("malformed"), "malformed/"));
    names.sort();
    assert!(names.len() > 50, "golden tables are missing");
    names
}

pub fn open(folder: &Path) -> DeltaTable {
    let store = TableStore::local(Url::from_directory_path(folder).unwrap()).unwrap();
    open_store(store)
}

pub fn open_store(store: TableStore) -> DeltaTable {
    DeltaTable::open(TableId::new(store.url.clone()), "lake.main.t".to_owned(), store, env())
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// A schema of `id` and `s`, as most tests want it.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::Int32, true), Field::new("s", DataType::Utf8, true)]))
}

pub fn operation(name: &str) -> Operation {
    Operation { name: name.to_owned(), ..Operation::default() }
}

pub fn create(properties: &[(&str, &str)]) -> Change {
    let properties = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Change {
        operation: operation("CREATE TABLE"),
        metadata: Some(NewMetadata { schema: schema(), partition_columns: Vec::new(), properties, description: None }),
        data_change: true,
        ..Change::default()
    }
}

/// A staged file of `rows` rows in the table's folder; its content does not matter to storage.
pub async fn stage(table: &DeltaTable, name: &str, rows: i64) -> NewFile {
    let store = table.store();
    let path = store.child(name).unwrap();
    store.objects.put(&path, "data".into()).await.unwrap();
    NewFile {
        path: name.to_owned(),
        size: 4,
        modification_time: 1,
        partition_values: BTreeMap::new(),
        stats: Some(format!(
            "{{\"numRecords\":{rows},\"minValues\":{{\"id\":0}},\"maxValues\":{{\"id\":{rows}}},\"nullCount\":{{\"id\":0}}}}"
        )),
    }
}

pub fn append(file: NewFile) -> Change {
    Change { operation: operation("WRITE"), added: vec![file], data_change: true, ..Change::default() }
}

pub fn committed(outcome: CommitOutcome) -> i64 {
    match outcome {
        CommitOutcome::Committed { version } => version,
        CommitOutcome::Conflict(conflict) => panic!("{conflict:?}"),
    }
}

pub async fn latest(table: &DeltaTable) -> Arc<Snapshot> {
    table.resolve(&SnapshotSelector::Latest).await.unwrap()
}

pub async fn files(table: &DeltaTable) -> Vec<DataFile> {
    let snapshot = latest(table).await;
    let mut files: Vec<DataFile> = table.index(&snapshot).await.unwrap().files().collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// A new table with one append of a file `a` of 10 rows; the folder lives as long as the first part.
pub async fn table_with_a(properties: &[(&str, &str)]) -> (TempDir, DeltaTable) {
    let folder = tempfile::tempdir().unwrap();
    let table = open(&folder.path().join("t"));
    committed(table.commit(None, create(properties)).await.unwrap());
    let file = stage(&table, "a", 10).await;
    committed(table.commit(Some(&latest(&table).await), append(file)).await.unwrap());
    (folder, table)
}

/// A commit file's lines.
pub fn lines(folder: &Path, version: i64) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(format!("_delta_log/{version:020}.json"))).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The first action of a kind in a commit file.
pub fn action(folder: &Path, version: i64, kind: &str) -> Value {
    let found = lines(folder, version).into_iter().find_map(|l| l.get(kind).cloned());
    found.unwrap_or_else(|| panic!("version {version} has no {kind}"))
}
