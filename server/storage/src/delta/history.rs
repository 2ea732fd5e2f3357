//! The history: who changed what, when, and which versions can still be read.
//!
//! A version is readable when its log can be read, its protocol is known and all its data files are there. One listing of the table's folder and
//! one pass over the commits tell that for all versions: walking from an index forward, a count of live files that are gone is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::actions::{Add, CommitFile, Remove};
use super::features::unreadable;
use super::log::{CommitMeta, Listing, data_objects};
use super::table::Inner;
use crate::clock::Micros;
use crate::deletes::{DeletionVector, Place};
use crate::error::Result;
use crate::index::FileKey;
use crate::snapshot::{Commit, FormatSnapshot, HistoryRange, Version};

/// Objects of the table's folder: path and size.
type Present = HashMap<String, u64>;

impl Inner {
    /// Commits, newest first.
    pub(super) async fn history(&self, range: HistoryRange) -> Result<Vec<Commit>> {
        let log = self.observe().await?;
        let from = log.commits.len().saturating_sub(range.limit.unwrap_or(usize::MAX));
        let wanted = &log.commits[from..];
        let Some(first) = wanted.first() else {
            return Ok(Vec::new());
        };
        let readable = self.readable(&log, first.version).await?;
        let mut commits = Vec::with_capacity(wanted.len());
        for meta in wanted.iter().rev() {
            let info = self.info(&log, meta).await;
            let in_commit = info.get("inCommitTimestamp").and_then(Value::as_i64).map(Micros::from_millis);
            commits.push(commit(meta, in_commit.unwrap_or(meta.at), &info, readable.get(&meta.version).copied().unwrap_or(false)));
        }
        Ok(commits)
    }

    /// What a commit says of itself; of a damaged one as much as is intact.
    async fn info(&self, log: &Listing, meta: &CommitMeta) -> Map<String, Value> {
        if let Ok(commit) = self.commit_file(log, meta.version).await {
            return commit.info.clone();
        }
        let text = self.store.read(&meta.meta.location).await.ok().flatten();
        text.map_or_else(Map::new, |t| CommitFile::info_of_damaged(&t))
    }

    /// For each version from `first` on, whether it can be read. What is not told is not readable.
    async fn readable(&self, log: &Arc<Listing>, first: Version) -> Result<BTreeMap<Version, bool>> {
        let objects = data_objects(&self.store).await?;
        let present: Present = objects.into_iter().map(|m| (String::from(m.location), m.size)).collect();
        let mut readable = BTreeMap::new();
        let mut walk: Option<Walk> = None;
        for meta in log.commits.iter().filter(|c| c.version >= first) {
            let next = match walk.take().filter(|w| w.version + 1 == meta.version) {
                Some(walk) => self.step(log, walk, &present).await,
                None => None,
            };
            // A version that cannot be reached from the one before may still have a checkpoint, or be the first.
            let next = match next {
                Some(next) => Some(next),
                None if log.base(meta.version, &[]).is_some() => self.start(log, meta.version, &present).await,
                None => None,
            };
            readable.insert(meta.version, next.as_ref().is_some_and(|w| w.known && w.missing == 0));
            walk = next;
        }
        Ok(readable)
    }

    async fn step(&self, log: &Listing, walk: Walk, present: &Present) -> Option<Walk> {
        let commit = self.commit_file(log, walk.version + 1).await.ok()?;
        Some(walk.step(&commit, |add| {
            self.is_there(present, &add.path, add.size, add.deletion_vector.clone().map(DeletionVector::from).as_ref())
        }))
    }

    async fn start(&self, log: &Arc<Listing>, version: Version, present: &Present) -> Option<Walk> {
        let snapshot = self.snapshot(log, version).await.ok()?;
        let FormatSnapshot::Delta(delta) = &snapshot.format;
        let index = self.known_index(&snapshot).await.ok()?.index;
        let mut walk = Walk { version, known: unreadable(&delta.protocol).is_none(), live: HashMap::new(), missing: 0 };
        for file in index.files() {
            let there = self.is_there(present, &file.path, file.size, file.deletion_vector.as_ref());
            walk.put(file.key(), there);
        }
        Some(walk)
    }

    /// Whether a file and its deletion vector are there, the file whole.
    fn is_there(&self, present: &Present, logged: &str, size: i64, vector: Option<&DeletionVector>) -> bool {
        let size_of = |path: &str| self.store.inside(path).ok().and_then(|p| present.get(p.as_ref()));
        let whole = size_of(logged).is_some_and(|found| i64::try_from(*found).is_ok_and(|f| f >= size));
        let vector_there = match vector.map(DeletionVector::place) {
            None | Some(Ok(Place::Inline)) => true,
            Some(Ok(Place::File(file))) => size_of(&file).is_some(),
            Some(Err(_)) => false,
        };
        whole && vector_there
    }
}

/// The live files at a version, and how many of them are gone.
struct Walk {
    version: Version,
    /// We know its reader features.
    known: bool,
    live: HashMap<FileKey, bool>,
    missing: usize,
}

impl Walk {
    fn step(mut self, commit: &CommitFile, is_there: impl Fn(&Add) -> bool) -> Self {
        self.version += 1;
        if let Some(protocol) = &commit.protocol {
            self.known = unreadable(protocol).is_none();
        }
        for key in commit.removes.iter().map(Remove::key) {
            self.take(&key);
        }
        for add in &commit.adds {
            self.put(add.key(), is_there(add));
        }
        self
    }

    fn take(&mut self, key: &FileKey) {
        if self.live.remove(key) == Some(false) {
            self.missing -= 1;
        }
    }

    fn put(&mut self, key: FileKey, there: bool) {
        self.take(&key);
        self.missing += usize::from(!there);
        self.live.insert(key, there);
    }
}

fn commit(meta: &CommitMeta, timestamp: Micros, info: &Map<String, Value>, readable: bool) -> Commit {
    let word = |key: &str| info.get(key).and_then(Value::as_str).map(str::to_owned);
    let notebook_id = info.get("notebook");
    Commit {
        version: meta.version,
        timestamp,
        user_id: word("userId"),
        user_name: word("userName"),
        operation: word("operation"),
        operation_parameters: Some(texts(info.get("operationParameters")).unwrap_or_default()),
        job: texts(info.get("job")),
        notebook: texts(notebook_id),
        cluster_id: word("clusterId"),
        read_version: info.get("readVersion").and_then(Value::as_i64),
        isolation_level: word("isolationLevel"),
        is_blind_append: info.get("isBlindAppend").and_then(Value::as_bool),
        operation_metrics: texts(info.get("operationMetrics")),
        user_metadata: word("userMetadata"),
        engine_info: word("engineInfo"),
        readable,
    }
}

/// An object's values as text: text as it stands, anything else as JSON.
fn texts(value: Option<&Value>) -> Option<BTreeMap<String, Option<String>>> {
    let text = |v: &Value| match v {
        Value::Null => None,
        Value::String(s) => Some(s.clone()),
        other => Some(other.to_string()),
    };
    value?.as_object().map(|o| o.iter().map(|(k, v)| (k.clone(), text(v))).collect())
}
