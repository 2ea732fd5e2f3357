//! What a scan considered, for EXPLAIN: which version it reads, and why it does not open all of its files.

use std::fmt;

use asof_storage::Snapshot;

/// Files of a version, by why they are not opened, and deleted rows of those that are.
#[derive(Clone, Debug, Default)]
pub(super) struct Considered {
    table: String,
    version: i64,
    /// Files of the version, or of those that a change reads.
    pub files: usize,
    /// No row passes, by the partition's values.
    pub by_partition: usize,
    /// No row passes, by the least and greatest values and the counts of NULL.
    pub by_statistics: usize,
    /// The others have rows enough.
    pub by_limit: usize,
    /// All rows are deleted.
    pub emptied: usize,
    /// Rows that deletion vectors take out of the files that are opened.
    pub deleted_rows: u64,
}

impl Considered {
    /// Nothing yet.
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        Self { table: snapshot.name.clone(), version: snapshot.version, ..Self::default() }
    }
}

impl fmt::Display for Considered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ruled_out = [self.by_partition, self.by_statistics, self.by_limit, self.emptied];
        let read = self.files - ruled_out.iter().sum::<usize>().min(self.files);
        write!(f, "table={}@v{}, files={read} of {}", self.table, self.version, self.files)?;
        let why = ["skipped_by_partition", "skipped_by_statistics", "skipped_by_limit", "skipped_as_deleted"];
        for (why, files) in why.iter().zip(ruled_out).filter(|(_, files)| *files > 0) {
            write!(f, ", {why}={files}")?;
        }
        if self.deleted_rows > 0 {
            write!(f, ", deleted_rows={}", self.deleted_rows)?;
        }
        Ok(())
    }
}
