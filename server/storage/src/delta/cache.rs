//! What is kept between statements, under a budget of bytes for the whole process.
//!
//! Commit files and indexes of versions never change (S1), so they are kept by (incarnation of the log, version). An incarnation is
//! one life of a log; a table dropped and made again at its path gets another.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::actions::CommitFile;
use crate::index::FileIndex;
use crate::snapshot::{Snapshot, Version};

const COMMIT_BYTES: u64 = 64 << 20;
const INDEX_BYTES: u64 = 1 << 30;
const SNAPSHOTS: usize = 64;

type Key = (u64, Version);

/// Parsed commit files. The weight is a guess of the memory they take: text and about as much again.
pub static COMMITS: LazyLock<Cache<Key, Arc<CommitFile>>> = LazyLock::new(|| {
    let weight = |_: &Key, c: &Arc<CommitFile>| u32::try_from(2 * c.bytes + 512).unwrap_or(u32::MAX);
    Cache::builder().max_capacity(COMMIT_BYTES).eviction_policy(EvictionPolicy::lru()).weigher(weight).build()
});

/// An index, and whether its files were found to be there and inside the table.
#[derive(Clone, Debug)]
pub struct KnownIndex {
    pub index: Arc<FileIndex>,
    pub checked: bool,
}

/// Indexes of versions. Chunks shared between versions weigh in each.
pub static INDEXES: LazyLock<Cache<Key, KnownIndex>> = LazyLock::new(|| {
    let weight = |_: &Key, k: &KnownIndex| u32::try_from(k.index.bytes() + 512).unwrap_or(u32::MAX);
    Cache::builder().max_capacity(INDEX_BYTES).eviction_policy(EvictionPolicy::lru()).weigher(weight).build()
});

/// How an index was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was kept.
    Kept,
    /// From another version's.
    Steps,
    /// From a checkpoint and commits, or commits alone.
    Log,
    /// By the kernel.
    Kernel,
}

static SOURCES: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Counts an index that was asked for.
pub fn count(source: Source) {
    SOURCES[source as usize].fetch_add(1, Ordering::Relaxed);
}

/// How indexes of versions were come by since the process started, and what is kept of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexMetrics {
    /// Asked for and kept.
    pub kept: u64,
    /// Built from another version's.
    pub from_steps: u64,
    /// Built from a checkpoint and commits, or commits alone.
    pub from_log: u64,
    /// Built by the kernel.
    pub from_kernel: u64,
    /// Indexes in memory.
    pub entries: u64,
    /// Their bytes; what versions share counts in each.
    pub bytes: u64,
}

/// Of the whole process.
#[must_use]
pub fn index_metrics() -> IndexMetrics {
    let [kept, from_steps, from_log, from_kernel] = SOURCES.each_ref().map(|n| n.load(Ordering::Relaxed));
    INDEXES.run_pending_tasks();
    IndexMetrics { kept, from_steps, from_log, from_kernel, entries: INDEXES.entry_count(), bytes: INDEXES.weighted_size() }
}

/// A new number for a log's life.
pub fn new_incarnation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// One table's latest used snapshots.
#[derive(Debug, Default)]
pub struct Snapshots {
    recent: VecDeque<(u64, Arc<Snapshot>)>,
}

impl Snapshots {
    /// That version.
    pub fn get(&mut self, incarnation: u64, version: Version) -> Option<Arc<Snapshot>> {
        let at = self.recent.iter().position(|(i, s)| *i == incarnation && s.version == version)?;
        let found = self.recent.remove(at)?;
        let snapshot = Arc::clone(&found.1);
        self.recent.push_back(found);
        Some(snapshot)
    }

    /// The nearest version below `version`, not more than `within` away.
    pub fn below(&self, incarnation: u64, version: Version, within: Version) -> Option<Arc<Snapshot>> {
        let near = |s: &Arc<Snapshot>| (version - within..version).contains(&s.version);
        let candidates = self.recent.iter().filter(|(i, s)| *i == incarnation && near(s));
        candidates.max_by_key(|(_, s)| s.version).map(|(_, s)| Arc::clone(s))
    }

    /// Keeps a snapshot, dropping the one used least recently.
    pub fn put(&mut self, incarnation: u64, snapshot: Arc<Snapshot>) {
        self.recent.retain(|(i, s)| *i == incarnation && s.version != snapshot.version);
        self.recent.push_back((incarnation, snapshot));
        while self.recent.len() > SNAPSHOTS {
            self.recent.pop_front();
        }
    }
}
