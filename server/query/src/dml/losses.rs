//! How touched files lose their selected rows: by deletion vectors where the table has them on, else by being rewritten. Files that lose all of
//! them go, by metadata alone.

use asof_storage::transaction::RowDeletes;
use asof_storage::{DataFile, deletes};
use roaring::RoaringTreemap;

use super::touched::Touched;
use super::{Base, bytes_of, count_of, vectors_of};
use crate::error::Result;

/// What goes.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Files.
    pub removed: Vec<DataFile>,
    /// Rows of files that stay.
    pub deletes: Vec<RowDeletes>,
}

impl Losses {
    /// Of files that are rewritten, or lose all rows.
    pub(super) fn of_files(files: &[Touched]) -> Self {
        Self { removed: files.iter().map(|touched| touched.file.clone()).collect(), deletes: vec![] }
    }

    /// Of rows, the files staying where they have others.
    ///
    /// # Errors
    /// A deletion vector that cannot be read.
    pub(super) async fn of_rows(base: &Base, files: &[Touched]) -> Result<Self> {
        let mut losses = Self::default();
        for touched in files {
            if touched.wholly() {
                losses.removed.push(touched.file.clone());
                continue;
            }
            let mut rows = match &touched.file.deletion_vector {
                Some(vector) => deletes::load(base.table.store(), &base.snapshot, vector).await?,
                None => RoaringTreemap::new(),
            };
            rows |= touched.rows.as_ref();
            losses.deletes.push(RowDeletes { file: touched.file.clone(), rows });
        }
        Ok(losses)
    }

    /// As Spark counts: a vector that takes another one's place is added, removed and updated.
    pub(super) fn metrics(&self) -> [(&'static str, i64); 5] {
        let updated = self.deletes.iter().filter(|delete| delete.file.deletion_vector.is_some()).count();
        let updated = i64::try_from(updated).unwrap_or(i64::MAX);
        [
            ("numRemovedFiles", count_of(&self.removed)),
            ("numRemovedBytes", bytes_of(&self.removed)),
            ("numDeletionVectorsAdded", count_of(&self.deletes)),
            ("numDeletionVectorsRemoved", vectors_of(&self.removed) + updated),
            ("numDeletionVectorsUpdated", updated),
        ]
    }
}

/// Whether the table has deletion vectors on.
pub(super) fn by_vectors(base: &Base) -> bool {
    base.snapshot.properties.get("delta.enableDeletionVectors").is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
