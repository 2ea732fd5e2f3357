//! The index of a version's files, built from whatever is nearer: a version known already, or a checkpoint (or the log's beginning).
//!
//! Our own reading of checkpoints and commit files comes first; where it meets anything that it does not expect, the kernel replays the log, and
//! what the kernel cannot read is told in terms of the log's files.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use object_store::path::Path;

use super::DeltaSnapshot;
use super::advance::advance;
use super::cache::{self, INDEXES, KnownIndex, Source};
use super::parts;
use super::table::Inner;
use crate::deletes::{DeletionVector, Place};
use crate::error::{Error, Result};
use crate::index::{Chunk, DataFile, FileIndex, FileKey};
use crate::snapshot::{FormatSnapshot, Snapshot, Version};

/// A version so near to a known one is reached from there, even when a checkpoint is nearer.
const STEPS: Version = 32;
/// Known versions are looked for so far back at most.
const FARTHEST: Version = 1000;
/// Files of the latest version that are looked for on a local disk: a look takes microseconds.
const MOST_LOOKED_FOR: usize = 1000;
/// Gone files named in one error.
const MOST_NAMED: usize = 100;

impl Inner {
    /// The files of a snapshot, found to be there and inside the table.
    pub(super) async fn checked_index(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<FileIndex>> {
        let FormatSnapshot::Delta(delta) = &snapshot.format;
        let key = (delta.log.incarnation, snapshot.version);
        let known = self.known_index(snapshot).await?;
        if !known.checked {
            let trusted = nearest(key.0, key.1, STEPS).filter(|k| k.checked);
            self.check_files(snapshot, &known.index, trusted.as_ref().map(|k| k.index.as_ref())).await?;
            INDEXES.insert(key, KnownIndex { index: Arc::clone(&known.index), checked: true });
        }
        Ok(known.index)
    }

    /// The files of a snapshot as the log says.
    pub(super) async fn known_index(&self, snapshot: &Arc<Snapshot>) -> Result<KnownIndex> {
        let FormatSnapshot::Delta(delta) = &snapshot.format;
        let key = (delta.log.incarnation, snapshot.version);
        let kept = || INDEXES.get(&key).inspect(|_| cache::count(Source::Kept));
        if let Some(known) = kept() {
            return Ok(known);
        }
        let _one_at_a_time = self.building.lock().await;
        if let Some(known) = kept() {
            return Ok(known);
        }
        let (index, source) = self.build_index(delta, snapshot.version).await?;
        cache::count(source);
        tracing::debug!(table = %self.name, version = snapshot.version, files = index.len(), bytes = index.bytes(), ?source, "indexed");
        let known = KnownIndex { index: Arc::new(index), checked: false };
        INDEXES.insert(key, known.clone());
        Ok(known)
    }

    async fn build_index(&self, delta: &DeltaSnapshot, version: Version) -> Result<(FileIndex, Source)> {
        if let Some(index) = self.index_by_steps(delta, version).await {
            return Ok((index, Source::Steps));
        }
        match self.index_from_log(delta, version).await {
            Ok(index) => Ok((index, Source::Log)),
            Err(words) => {
                tracing::debug!(table = %self.name, version, words, "the kernel is asked for the files");
                let shape = Arc::clone(&delta.shape);
                let index = self.replayed(&delta.log, version, move |replay| replay.files(&shape)).await?;
                Ok((index, Source::Kernel))
            }
        }
    }

    /// From a version known already.
    async fn index_by_steps(&self, delta: &DeltaSnapshot, version: Version) -> Option<FileIndex> {
        let checkpoint = delta.log.base(version, &self.bad_checkpoints.lock()).flatten().map_or(-1, |c| c.version);
        let base = nearest(delta.log.incarnation, version, (version - checkpoint).clamp(STEPS, FARTHEST))?.index;
        delta.log.range(base.version() + 1, version)?;
        let commits = self.commit_files(&delta.log, base.version() + 1, version).await.ok()?;
        if commits.iter().any(|c| c.metadata.is_some()) {
            return None; // the known one's columns may have other types
        }
        advance(&base, &delta.shape, version, &commits).ok()
    }

    /// From the nearest checkpoint below, or from nothing; why not otherwise.
    async fn index_from_log(&self, delta: &DeltaSnapshot, version: Version) -> Result<FileIndex, String> {
        let bad = self.bad_checkpoints.lock().clone();
        let checkpoint = delta.log.base(version, &bad).ok_or("the log has a gap")?;
        let chunks = match checkpoint {
            Some(checkpoint) => parts::read(&self.store, &checkpoint.parts, &delta.shape).await?,
            None => Vec::new(),
        };
        let base = checkpoint.map_or(-1, |c| c.version);
        let commits = self.commit_files(&delta.log, base + 1, version).await.map_err(|e| e.to_string())?;
        advance(&FileIndex::new(base, chunks), &delta.shape, version, &commits)
    }

    /// The log's statistics of files, as JSON text. The index does not keep the text: it is most of a log's bytes, and only commits that carry
    /// a file on need it.
    pub(super) async fn logged_statistics(&self, snapshot: &Snapshot, mut wanted: HashSet<FileKey>) -> Result<HashMap<FileKey, String>> {
        let FormatSnapshot::Delta(delta) = &snapshot.format;
        let checkpoint = delta.log.base(snapshot.version, &self.bad_checkpoints.lock()).flatten().map_or(-1, |c| c.version);
        let mut found = HashMap::new();
        for commit in self.commit_files(&delta.log, checkpoint + 1, snapshot.version).await?.iter().rev() {
            for add in &commit.adds {
                let key = add.key();
                if wanted.remove(&key)
                    && let Some(stats) = &add.stats
                {
                    found.insert(key, stats.clone());
                }
            }
        }
        if !wanted.is_empty() {
            let wanted = Arc::new(wanted);
            found.extend(self.replayed(&delta.log, snapshot.version, move |replay| replay.statistics(&wanted)).await?);
        }
        Ok(found)
    }

    /// Refuses paths that leave the table, and files that are gone. Chunks of `trusted` were checked before.
    ///
    /// Nobody lawfully removes files of the latest version: where a look at each would cost more than the query (far away, or many), the scan
    /// tells what is gone.
    async fn check_files(&self, snapshot: &Snapshot, index: &FileIndex, trusted: Option<&FileIndex>) -> Result<()> {
        let FormatSnapshot::Delta(delta) = &snapshot.format;
        let trusted_to_be_there =
            snapshot.version == delta.log.latest() && (self.store.url.scheme() != "file" || index.len() > MOST_LOOKED_FOR);
        let known = |c: &&Chunk| trusted.is_some_and(|t| t.chunks().iter().any(|k| Arc::ptr_eq(&k.rows, &c.rows)));
        let mut paths = Vec::new();
        for chunk in index.chunks().iter().filter(|c| !known(c)) {
            for row in chunk.live_rows() {
                let logged = chunk.path(row);
                if !trusted_to_be_there {
                    paths.push((logged.to_owned(), self.store.data_path(snapshot, logged)?));
                } else if !is_name(logged) {
                    self.store.data_path(snapshot, logged)?;
                }
                if let Some(Ok(Place::File(file))) = chunk.deletion_vector(row).map(|v| v.place()) {
                    let path = self.store.data_path(snapshot, &file)?;
                    paths.push((file, path));
                }
            }
        }
        if trusted_to_be_there { Ok(()) } else { self.refuse_gone(snapshot, paths).await }
    }

    /// Refuses some files that are gone or lead out of the table, as they lie now: whatever was found before.
    pub(super) async fn look_for(&self, snapshot: &Snapshot, files: impl Iterator<Item = DataFile>) -> Result<()> {
        let mut paths = Vec::new();
        for file in files {
            if let Some(Ok(Place::File(vector))) = file.deletion_vector.as_ref().map(DeletionVector::place) {
                let path = self.store.data_path(snapshot, &vector)?;
                paths.push((vector, path));
            }
            let path = self.store.data_path(snapshot, &file.path)?;
            paths.push((file.path, path));
        }
        self.refuse_gone(snapshot, paths).await
    }

    async fn refuse_gone(&self, snapshot: &Snapshot, paths: Vec<(String, Path)>) -> Result<()> {
        let gone = self.store.missing(paths).await?;
        if gone.is_empty() {
            return Ok(());
        }
        let mut path = gone.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        if gone.len() > MOST_NAMED {
            path = format!("{path} and {} more", gone.len() - MOST_NAMED);
        }
        Err(Error::FileGone { table: self.name.clone(), version: snapshot.version, path })
    }
}

/// The nearest version below `version` whose index is known, not more than `within` away.
fn nearest(incarnation: u64, version: Version, within: Version) -> Option<KnownIndex> {
    (1..=within.min(version)).find_map(|n| INDEXES.get(&(incarnation, version - n)))
}

/// A plain file name in the table's folder: it cannot lead anywhere else.
fn is_name(logged: &str) -> bool {
    logged.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) && !logged.starts_with('.')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use arrow::array::ArrayRef;
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    use url::Url;

    use super::*;
    use crate::delta::DeltaTable;
    use crate::object::TableStore;
    use crate::{Env, TableId};

    fn golden() -> Vec<PathBuf> {
        let root = std::path::Path::new("../../integration/golden/delta");
        let tables = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path().join("table"));
        tables.filter(|t| t.join("_delta_log").is_dir()).map(|t| t.canonicalize().unwrap()).collect()
    }

    fn lines(index: &FileIndex) -> BTreeSet<String> {
        let options = FormatOptions::new().with_null("NULL");
        let text = |c: &ArrayRef, row| ArrayFormatter::try_new(c.as_ref(), &options).unwrap().value(row).to_string();
        let line = |c: &Chunk, row| c.rows.columns().iter().map(|column| text(column, row)).collect::<Vec<_>>().join(" ");
        index.chunks().iter().flat_map(|c| c.live_rows().map(|r| line(c, r)).collect::<Vec<_>>()).collect()
    }

    /// Our own reading of checkpoints and commits has the kernel as its referee, on all golden tables.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_kernel_agrees() {
        let mut compared = 0;
        let mut with_checkpoint = 0;
        for folder in golden() {
            let id = TableId::new(Url::from_directory_path(&folder).unwrap());
            let store = TableStore::local(id.location().clone()).unwrap();
            let inner = DeltaTable::open(id, "t".to_owned(), store, Env::system()).inner;
            let Ok(log) = inner.observe().await else { continue };
            // Sampled on long logs.
            for version in (0..=log.latest()).filter(|v| log.latest() < 60 || v % 100 == 0 || v % 97 == 0) {
                let Ok(snapshot) = inner.snapshot(&log, version).await else { continue };
                let FormatSnapshot::Delta(delta) = &snapshot.format;
                let theirs = inner.replayed(&log, version, |replay| replay.heads()).await;
                match (inner.heads_from_log(&log, version).await, theirs) {
                    (Ok(ours), Ok(theirs)) => assert_eq!(ours, theirs, "{} version {version}", folder.display()),
                    (Err(words), Ok(_)) => assert!(words.contains("is no Parquet file"), "{} version {version}: {words}", folder.display()),
                    (_, Err(_)) => continue,
                }
                let shape = Arc::clone(&delta.shape);
                let Ok(theirs) = inner.replayed(&log, version, move |replay| replay.files(&shape)).await else { continue };
                match inner.index_from_log(delta, version).await {
                    Ok(ours) => assert_eq!(lines(&ours), lines(&theirs), "{} version {version}", folder.display()),
                    // A manifest in JSON is left to the kernel.
                    Err(words) => assert!(words.contains("is no Parquet file"), "{} version {version}: {words}", folder.display()),
                }
                compared += 1;
                with_checkpoint += i32::from(log.base(version, &[]).flatten().is_some());
            }
        }
        assert!(compared > 200 && with_checkpoint > 30, "only {compared} compared, {with_checkpoint} with a checkpoint");
    }

    /// One commit's change of a file.
    #[derive(Clone, Copy, Debug)]
    enum Turn {
        /// Added where it is not there, else removed.
        Flip,
        /// Gets another deletion vector.
        Delete,
        /// Added once more as it is, with other statistics.
        Again,
    }

    /// A log of random commits in a folder: each line of `commits` is one commit's turns of files; after those of `widened` there is a column more.
    fn write_log(folder: &std::path::Path, commits: &[Vec<(u8, Turn)>], widened: usize) {
        let log = folder.join("_delta_log");
        std::fs::create_dir_all(&log).unwrap();
        let mut live: HashMap<u8, Option<usize>> = HashMap::new();
        for (version, turns) in commits.iter().enumerate() {
            let mut lines = Vec::new();
            if version == 0 {
                lines.push(serde_json::json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
                    "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}}));
            }
            if version == 0 || version == widened {
                let names: &[&str] = if version < widened { &["id"] } else { &["id", "n"] };
                let fields: Vec<_> =
                    names.iter().map(|n| serde_json::json!({"name": n, "type": "long", "nullable": true, "metadata": {}})).collect();
                let schema = serde_json::json!({"type": "struct", "fields": fields}).to_string();
                lines.push(serde_json::json!({"metaData": {"id": "00000000-0000-4000-8000-000000000000", "schemaString": schema,
                    "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {}}}));
            }
            let mut touched = HashSet::new();
            for (file, turn) in turns.iter().filter(|(file, _)| touched.insert(*file)) {
                let vector = |n: Option<usize>| {
                    n.map(|n| serde_json::json!({"storageType": "p", "pathOrInlineDv": format!("{n}.bin"), "offset": 1, "sizeInBytes": 9, "cardinality": 1}))
                };
                let path = format!("f{file}.parquet");
                let remove = |n| serde_json::json!({"remove": {"path": path, "deletionVector": vector(n), "dataChange": true, "deletionTimestamp": 1}});
                let stats = format!(
                    r#"{{"numRecords":{},"minValues":{{"id":{version}}},"maxValues":{{"id":9,"n":7}},"nullCount":{{"id":0}}}}"#,
                    version + 2
                );
                let add = |n| {
                    serde_json::json!({"add": {"path": path, "deletionVector": vector(n), "partitionValues": {}, "size": 1,
                    "modificationTime": version, "dataChange": true, "stats": stats}})
                };
                match (live.get(file).copied(), turn) {
                    (None, Turn::Flip) => {
                        live.insert(*file, None);
                        lines.push(add(None));
                    }
                    (Some(old), Turn::Flip) => {
                        live.remove(file);
                        lines.push(remove(old));
                    }
                    (Some(old), Turn::Delete) => {
                        live.insert(*file, Some(version));
                        lines.extend([remove(old), add(Some(version))]);
                    }
                    (Some(old), Turn::Again) => lines.push(add(old)),
                    (None, _) => {}
                }
            }
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(log.join(format!("{version:020}.json")), text).unwrap();
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

        /// S6: in whatever order versions are opened, and whatever checkpoints there are, each has the files that a replay of its whole log gives.
        #[test]
        fn an_index_by_steps_is_the_one_from_scratch(
            commits in proptest::collection::vec(proptest::collection::vec((0_u8..6, 0_u8..3), 0..5), 2..24),
            order in proptest::collection::vec(proptest::prelude::any::<proptest::sample::Index>(), 1..40),
            checkpoints in proptest::collection::vec(proptest::prelude::any::<proptest::sample::Index>(), 0..3),
            widened in 0_usize..30,
        ) {
            let turn = |n| [Turn::Flip, Turn::Delete, Turn::Again][usize::from(n)];
            let commits: Vec<Vec<_>> = commits.iter().map(|c| c.iter().map(|(file, n)| (*file, turn(*n))).collect()).collect();
            let folder = tempfile::tempdir().unwrap();
            write_log(folder.path(), &commits, widened);
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
            runtime.block_on(async {
                let open = || {
                    let id = TableId::new(Url::from_directory_path(folder.path()).unwrap());
                    let store = TableStore::local(id.location().clone()).unwrap();
                    DeltaTable::open(id, "t".to_owned(), store, Env::system())
                };
                let plain = open();
                let whole = plain.inner.observe().await.unwrap();
                let writer = open();
                for checkpoint in &checkpoints {
                    writer.inner.observe().await.unwrap();
                    writer.inner.start_checkpoint(checkpoint.index(commits.len()) as Version);
                    writer.settle().await;
                }
                let table = open();
                let log = table.inner.observe().await.unwrap();
                assert!(log.checkpoints.len() >= usize::from(!checkpoints.is_empty()), "no checkpoint was written");
                for index in &order {
                    let version = index.index(commits.len()) as Version;
                    let snapshot = table.inner.snapshot(&log, version).await.unwrap();
                    let found = table.inner.known_index(&snapshot).await.unwrap().index;
                    let FormatSnapshot::Delta(delta) = &snapshot.format;
                    let shape = Arc::clone(&delta.shape);
                    let expected = plain.inner.replayed(&whole, version, move |replay| replay.files(&shape)).await.unwrap();
                    assert_eq!(lines(&found), lines(&expected), "version {version}");
                    assert_eq!(found.len(), expected.len(), "version {version}");
                }
            });
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_version_opened_by_many_at_once_is_loaded_once() {
        let folder = tempfile::tempdir().unwrap();
        write_log(folder.path(), &[vec![(0, Turn::Flip)], vec![(1, Turn::Flip)]], 9);
        let id = TableId::new(Url::from_directory_path(folder.path()).unwrap());
        let store = TableStore::local(id.location().clone()).unwrap();
        let inner = DeltaTable::open(id, "t".to_owned(), store, Env::system()).inner;
        let log = inner.observe().await.unwrap();
        let snapshot = inner.snapshot(&log, 1).await.unwrap();
        let open = || {
            let (inner, snapshot) = (Arc::clone(&inner), Arc::clone(&snapshot));
            tokio::spawn(async move { inner.known_index(&snapshot).await.unwrap().index })
        };
        let opened: Vec<_> = (0..16).map(|_| open()).collect();
        let indexes: Vec<_> = futures::future::join_all(opened).await.into_iter().map(|i| i.unwrap()).collect();
        assert!(indexes.iter().all(|i| Arc::ptr_eq(i, &indexes[0])));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_the_cache_lost_is_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let commits: Vec<_> = (0..12).map(|v| vec![(v, Turn::Flip)]).collect();
        write_log(folder.path(), &commits, 99);
        let id = TableId::new(Url::from_directory_path(folder.path()).unwrap());
        let store = TableStore::local(id.location().clone()).unwrap();
        let inner = DeltaTable::open(id, "t".to_owned(), store, Env::system()).inner;
        let log = inner.observe().await.unwrap();
        let before = cache::index_metrics();
        for version in [5, 11, 3, 11, 5, 0, 11] {
            let snapshot = inner.snapshot(&log, version).await.unwrap();
            let index = inner.known_index(&snapshot).await.unwrap().index;
            assert_eq!(index.len(), usize::try_from(version).unwrap() + 1);
            INDEXES.invalidate(&(log.incarnation, version));
            cache::COMMITS.invalidate(&(log.incarnation, version));
        }
        // Other tests count too.
        let after = cache::index_metrics();
        assert!(after.from_log + after.from_steps >= before.from_log + before.from_steps + 7, "{before:?} {after:?}");
    }
}
