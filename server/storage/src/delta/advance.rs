//! From one version's index to a later one's, by what the commits in between come to (S6).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::UInt32Array;
use arrow::buffer::BooleanBuffer;
use arrow::record_batch::RecordBatch;

use super::actions::{Add, CommitFile, Remove};
use super::files::{ChunkBuilder, Entry};
use super::shape::IndexShape;
use crate::index::{Chunk, FileIndex, FileKey};
use crate::snapshot::Version;

/// Chunks of fewer live rows than this are merged when there are many.
const SMALL: usize = 16 << 10;
/// So many small chunks are borne.
const MOST_SMALL: usize = 32;

/// What commits in a row come to.
struct Net<'c> {
    /// Every file that one of them names.
    named: HashSet<FileKey>,
    /// Those that are live after the last, in the order added.
    added: Vec<&'c Add>,
}

impl<'c> Net<'c> {
    fn of(commits: &'c [Arc<CommitFile>]) -> Self {
        let mut named = HashSet::new();
        let mut live: HashMap<FileKey, (usize, &'c Add)> = HashMap::new();
        let mut number = 0;
        for commit in commits {
            for key in commit.removes.iter().map(Remove::key) {
                live.remove(&key);
                named.insert(key);
            }
            for add in &commit.adds {
                number += 1;
                live.insert(add.key(), (number, add));
                named.insert(add.key());
            }
        }
        let mut added: Vec<_> = live.into_values().collect();
        added.sort_unstable_by_key(|(number, _)| *number);
        Self { named, added: added.into_iter().map(|(_, add)| add).collect() }
    }
}

/// The index at `version`, some commits further: what they remove is masked, what they add is a new chunk.
pub fn advance(index: &FileIndex, shape: &IndexShape, version: Version, commits: &[Arc<CommitFile>]) -> Result<FileIndex, String> {
    let net = Net::of(commits);
    let paths: HashSet<&str> = net.named.iter().map(|k| k.path.as_str()).collect();
    let mut chunks: Vec<Chunk> = index.chunks().iter().map(|c| without(c, &paths, &net.named)).collect();
    let mut builder = ChunkBuilder::new(shape);
    for add in net.added {
        builder.push(&Entry::from(add))?;
    }
    if builder.len() > 0 {
        chunks.push(Chunk { rows: Arc::new(builder.finish()?), live: None });
    }
    chunks.retain(|c| !c.is_empty());
    Ok(FileIndex::new(version, compact(chunks, shape)?))
}

fn without(chunk: &Chunk, paths: &HashSet<&str>, named: &HashSet<FileKey>) -> Chunk {
    let dead = |row: usize| paths.contains(chunk.path(row)) && named.contains(&chunk.key(row));
    let hits: HashSet<usize> = chunk.live_rows().filter(|r| dead(*r)).collect();
    if hits.is_empty() {
        return chunk.clone();
    }
    let live = BooleanBuffer::from_iter((0..chunk.rows.num_rows()).map(|r| chunk.is_live(r) && !hits.contains(&r)));
    Chunk { rows: Arc::clone(&chunk.rows), live: Some(live) }
}

/// Merges small chunks when there are many, and frees chunks of more dead rows than live ones. Large chunks stay shared with
/// the versions before.
fn compact(chunks: Vec<Chunk>, shape: &IndexShape) -> Result<Vec<Chunk>, String> {
    let is_small = |c: &Chunk| c.len() < SMALL;
    let many = chunks.iter().filter(|c| is_small(c)).count() > MOST_SMALL;
    let mut small = Vec::new();
    let mut kept = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let mostly_dead = chunk.rows.num_rows() > 1024 + 2 * chunk.len();
        if many && is_small(&chunk) {
            small.push(live_rows(&chunk).map_err(|e| e.to_string())?);
        } else if mostly_dead {
            kept.push(Chunk { rows: Arc::new(live_rows(&chunk).map_err(|e| e.to_string())?), live: None });
        } else {
            kept.push(chunk);
        }
    }
    if !small.is_empty() {
        let merged = arrow::compute::concat_batches(shape.schema(), &small).map_err(|e| e.to_string())?;
        kept.push(Chunk { rows: Arc::new(merged), live: None });
    }
    Ok(kept)
}

fn live_rows(chunk: &Chunk) -> Result<RecordBatch, arrow::error::ArrowError> {
    match &chunk.live {
        None => Ok(chunk.rows.as_ref().clone()),
        Some(live) => {
            let rows: UInt32Array = live.set_indices_u32().collect();
            arrow::compute::take_record_batch(&chunk.rows, &rows)
        }
    }
}
