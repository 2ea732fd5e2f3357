//! Tables to test with: copies of the golden ones, and a clock that stands still.

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use asof_storage::delta::DeltaTable;
use asof_storage::object::TableStore;
use asof_storage::{Clock, Entropy, Env, Micros, TableId};
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
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../integration/golden/delta"))
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
