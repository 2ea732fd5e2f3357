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
