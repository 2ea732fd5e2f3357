//! Which files under a table's folder nobody needs any more.
//!
//! A file that left the table has a tombstone in the log, and its time decides: it is kept for as long as versions that hold it are to be
//! readable. A file that the log does not name may belong to a commit under way: for those the time they were written decides. Never
//! garbage: files of the latest version and of versions that are in use, with their deletion vectors; the log; hidden files and folders
//! (`_…`, `.…`, but not partitions of such a name, nor the change data feed).

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use object_store::ObjectMeta;
use object_store::path::Path;

use super::DeltaSnapshot;
use super::parts;
use super::table::Inner;
use crate::clock::Micros;
use crate::deletes::{DeletionVector, Place};
use crate::error::{Error, Result};
use crate::index::FileIndex;
use crate::snapshot::{FormatSnapshot, Snapshot};

/// Folder of the change data feed's files.
const FEED: &str = "_change_data";
/// Objects deleted at once.
const DELETES: usize = 32;

/// A file that left the table.
#[derive(Clone, Debug)]
pub struct Tombstone {
    /// Path as the log wrote it.
    pub path: String,
    /// When, ms since the epoch; unknown where its writer did not say.
    pub at: Option<i64>,
    /// The deletion vector it had.
    pub deletion_vector: Option<DeletionVector>,
}

impl Inner {
    /// The files that nobody needs after `horizon`; see [`crate::TableFormat::garbage`].
    pub(super) async fn garbage(&self, base: &Arc<Snapshot>, horizon: Micros, in_use: &[Arc<Snapshot>]) -> Result<Vec<ObjectMeta>> {
        let FormatSnapshot::Delta(delta) = &base.format;
        let mut needed = HashSet::new();
        for snapshot in in_use.iter().chain([base]) {
            let index = self.known_index(snapshot).await?.index;
            self.note_files(snapshot, &index, &mut needed)?;
        }
        let mut expired = HashSet::new();
        for tombstone in self.tombstones(delta, base).await? {
            let path = self.store.data_path(base, &tombstone.path)?;
            let is_young = tombstone.at.is_none_or(|at| at.saturating_mul(1000) >= horizon.0);
            if is_young {
                needed.insert(path);
                self.note_vector(base, tombstone.deletion_vector.as_ref(), &mut needed)?;
            } else {
                expired.insert(path);
            }
        }
        let is_old = |object: &ObjectMeta| object.last_modified.timestamp_micros() < horizon.0;
        let is_garbage = |object: &ObjectMeta| {
            !needed.contains(&object.location)
                && !is_hidden(&self.store.shown(&object.location))
                && (expired.contains(&object.location) || is_old(object))
        };
        let listed: Vec<ObjectMeta> =
            self.store.objects.list(Some(&self.store.root)).try_collect().await.map_err(|source| self.listing(source))?;
        Ok(listed.into_iter().filter(is_garbage).collect())
    }

    /// Deletes files; how many were still there.
    pub(super) async fn delete(&self, files: Vec<Path>) -> Result<usize> {
        let deletes = futures::stream::iter(files).map(|path| async move {
            use object_store::ObjectStoreExt as _;
            match self.store.objects.delete(&path).await {
                Ok(()) => Ok(1),
                Err(object_store::Error::NotFound { .. }) => Ok(0),
                Err(source) => Err(Error::Store { action: "deleting", path: self.store.shown(&path), source }),
            }
        });
        let deleted: Vec<usize> = deletes.buffer_unordered(DELETES).try_collect().await?;
        Ok(deleted.into_iter().sum())
    }

    fn listing(&self, source: object_store::Error) -> Error {
        Error::Store { action: "listing", path: self.store.url.to_string(), source }
    }

    fn note_files(&self, snapshot: &Snapshot, index: &FileIndex, needed: &mut HashSet<Path>) -> Result<()> {
        for chunk in index.chunks() {
            for row in chunk.live_rows() {
                needed.insert(self.store.data_path(snapshot, chunk.path(row))?);
                self.note_vector(snapshot, chunk.deletion_vector(row).as_ref(), needed)?;
            }
        }
        Ok(())
    }

    fn note_vector(&self, snapshot: &Snapshot, vector: Option<&DeletionVector>, needed: &mut HashSet<Path>) -> Result<()> {
        if let Some(Ok(Place::File(file))) = vector.map(DeletionVector::place) {
            needed.insert(self.store.data_path(snapshot, &file)?);
        }
        Ok(())
    }

    /// Tombstones that the log still holds.
    async fn tombstones(&self, delta: &DeltaSnapshot, base: &Snapshot) -> Result<Vec<Tombstone>> {
        let damaged = |detail: String| Error::Corrupt {
            table: self.name.clone(),
            version: Some(base.version),
            file: "_delta_log".to_owned(),
            detail: format!("its removed files cannot be told, so nothing is known to be garbage: {detail}"),
        };
        let bad = self.bad_checkpoints.lock().clone();
        let checkpoint = delta.log.base(base.version, &bad).ok_or_else(|| damaged("the log has a gap".to_owned()))?;
        let mut found = match checkpoint {
            Some(checkpoint) => parts::tombstones(&self.store, &checkpoint.parts).await.map_err(damaged)?,
            None => Vec::new(),
        };
        let from = checkpoint.map_or(0, |c| c.version + 1);
        for commit in self.commit_files(&delta.log, from, base.version).await? {
            found.extend(commit.removes.iter().map(|remove| Tombstone {
                path: remove.path.clone(),
                at: remove.deletion_timestamp,
                deletion_vector: remove.deletion_vector.clone().map(DeletionVector::from),
            }));
        }
        Ok(found)
    }
}

/// Whether an object (relative to the table) is none of the table's data.
fn is_hidden(relative: &str) -> bool {
    let hidden = |name: &str| name.starts_with(['_', '.']);
    let mut names = relative.split('/').peekable();
    let mut first = true;
    while let Some(name) = names.next() {
        let is_folder = names.peek().is_some();
        let is_data = is_folder && (name.contains('=') || (first && name == FEED));
        if hidden(name) && !is_data {
            return true;
        }
        first = false;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_hidden;

    #[test]
    fn what_is_data() {
        let check = |path: &str, hidden: bool| assert_eq!(is_hidden(path), hidden, "{path}");
        check("part-0.parquet", false);
        check("p=1/part-0.parquet", false);
        check("_p=1/part-0.parquet", false);
        check("_change_data/cdc-0.parquet", false);
        check("_change_data/p=1/cdc-0.parquet", false);
        check("deletion_vector_1.bin", false);
        check("_delta_log/00000000000000000000.json", true);
        check("_delta_log/_sidecars/x.parquet", true);
        check("_spark_metadata/0", true);
        check(".part-0.parquet.crc", true);
        check("p=1/.hidden", true);
        check("p=1/_temporary/x.parquet", true);
        check("a/_change_data/x.parquet", true);
    }
}
