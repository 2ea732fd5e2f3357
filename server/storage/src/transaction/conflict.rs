//! The conflict check: a pure function of what we read and change, and of what was committed in between (S4).
//!
//! Two transactions conflict when no serial order gives both results. Under `WriteSerializable`, the default, a blind append may be put after
//! us in that order even where our predicate would have seen its rows; under `Serializable` it may not.

use std::collections::{BTreeMap, BTreeSet};

use super::{Conflict, ReadSet};
use crate::index::FileKey;
use crate::snapshot::Version;

/// How strictly concurrent commits are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Blind appends of others never conflict.
    #[default]
    WriteSerializable,
    /// The order of the log is a serial order.
    Serializable,
}

impl Isolation {
    /// As the log's `isolationLevel` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteSerializable => "WriteSerializable",
            Self::Serializable => "Serializable",
        }
    }
}

/// What we read and change.
#[derive(Debug)]
pub struct Ours<'a> {
    /// What was read.
    pub reads: &'a ReadSet,
    /// Files that we remove, or give another deletion vector.
    pub takes: BTreeSet<&'a str>,
    /// Applications whose progress we set.
    pub applications: BTreeSet<String>,
    /// Domains of metadata that we set.
    pub domains: BTreeSet<String>,
    /// How strict.
    pub isolation: Isolation,
}

/// A file that a winner added.
#[derive(Clone, Debug, Default)]
pub struct AddedFile {
    /// What identifies it.
    pub key: FileKey,
    /// Serialised values by physical name.
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Statistics as the log's JSON text.
    pub stats: Option<String>,
    /// Its rows are new.
    pub data_change: bool,
}

/// A file that a winner removed.
#[derive(Clone, Debug)]
pub struct RemovedFile {
    /// What identifies it.
    pub key: FileKey,
    /// Its rows are gone (false: they lie elsewhere now).
    pub data_change: bool,
}

/// What a commit between our base and our target did.
#[derive(Clone, Debug, Default)]
pub struct Winner {
    /// Its version.
    pub version: Version,
    /// Its operation.
    pub operation: String,
    /// It read nothing.
    pub blind_append: bool,
    /// It changed the metadata.
    pub metadata: bool,
    /// It changed the protocol.
    pub protocol: bool,
    /// Files it added.
    pub added: Vec<AddedFile>,
    /// Files it removed.
    pub removed: Vec<RemovedFile>,
    /// Applications whose progress it set.
    pub applications: Vec<String>,
    /// Domains of metadata it set.
    pub domains: Vec<String>,
}

/// The first conflict with any of the winners, in their order.
#[must_use]
pub fn check(ours: &Ours<'_>, winners: &[Winner]) -> Option<Conflict> {
    winners.iter().find_map(|winner| {
        let detail = against(ours, winner)?;
        Some(Conflict { with: winner.version, operation: winner.operation.clone(), detail })
    })
}

fn against(ours: &Ours<'_>, winner: &Winner) -> Option<String> {
    let same = |mine: &BTreeSet<String>, theirs: &[String]| theirs.iter().find(|t| mine.contains(*t)).cloned();
    if winner.protocol {
        return Some("it changed the table's protocol".to_owned());
    }
    if winner.metadata {
        return Some("it changed the table's metadata (schema, properties or constraints)".to_owned());
    }
    if let Some(application) = same(&ours.applications, &winner.applications) {
        return Some(format!("it advanced the same application transaction, {application}"));
    }
    if let Some(domain) = same(&ours.domains, &winner.domains) {
        return Some(format!("it changed the same metadata domain, {domain}"));
    }
    touched(ours, winner).or_else(|| lost(ours, winner)).or_else(|| gained(ours, winner))
}

/// A file that we remove, or whose rows we delete, is not as we saw it.
fn touched(ours: &Ours<'_>, winner: &Winner) -> Option<String> {
    let touched = winner.removed.iter().map(|r| &r.key).chain(winner.added.iter().map(|a| &a.key));
    let path = &touched.into_iter().find(|k| ours.takes.contains(k.path.as_str()))?.path;
    Some(format!("it removed or changed file {path}, which this statement changes too"))
}

/// Rows that we read are gone.
fn lost(ours: &Ours<'_>, winner: &Winner) -> Option<String> {
    let mut gone = winner.removed.iter().filter(|r| r.data_change).map(|r| &r.key.path);
    let path = match ours.reads {
        ReadSet::Nothing => None,
        ReadSet::Table => gone.next(),
        ReadSet::Matching { files, .. } => {
            let read: BTreeSet<&str> = files.iter().map(|k| k.path.as_str()).collect();
            gone.find(|p| read.contains(p.as_str()))
        }
    };
    path.map(|p| format!("it removed rows of file {p}, which this statement read"))
}

/// There are rows that we would have read.
fn gained(ours: &Ours<'_>, winner: &Winner) -> Option<String> {
    if winner.blind_append && ours.isolation == Isolation::WriteSerializable {
        return None;
    }
    let mut new = winner.added.iter().filter(|a| a.data_change);
    let file = match ours.reads {
        ReadSet::Nothing => None,
        ReadSet::Table => new.next(),
        ReadSet::Matching { predicate, .. } => new.find(|a| predicate.may_match(&a.partition_values, a.stats.as_deref())),
    };
    file.map(|f| format!("it added file {}, which may hold rows that this statement should have read", f.key.path))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::transaction::ReadPredicate;

    /// Rows of the partition `p` = the value.
    #[derive(Debug)]
    struct Partition(&'static str);

    impl ReadPredicate for Partition {
        fn may_match(&self, partition_values: &BTreeMap<String, Option<String>>, _stats: Option<&str>) -> bool {
            partition_values.get("p").is_none_or(|v| v.as_deref() == Some(self.0))
        }
    }

    fn key(path: &str) -> FileKey {
        FileKey { path: path.to_owned(), deletion_vector: None }
    }

    fn append(path: &str, partition: &str) -> Winner {
        let values = BTreeMap::from([("p".to_owned(), Some(partition.to_owned()))]);
        let added = AddedFile { key: key(path), partition_values: values, stats: None, data_change: true };
        Winner { version: 1, operation: "WRITE".into(), blind_append: true, added: vec![added], ..Winner::default() }
    }

    fn seen(winner: Winner) -> Winner {
        Winner { blind_append: false, operation: "MERGE".into(), ..winner }
    }

    fn delete(path: &str) -> Winner {
        let removed = vec![RemovedFile { key: key(path), data_change: true }];
        Winner { version: 1, operation: "DELETE".into(), removed, ..Winner::default() }
    }

    /// A new deletion vector on a file.
    fn mark(path: &str) -> Winner {
        let with_vector = FileKey { path: path.to_owned(), deletion_vector: Some("uabc@1".into()) };
        let added = vec![AddedFile { key: with_vector, data_change: true, ..AddedFile::default() }];
        Winner { added, ..delete(path) }
    }

    fn optimize(path: &str, into: &str) -> Winner {
        let added = vec![AddedFile { key: key(into), data_change: false, ..AddedFile::default() }];
        let removed = vec![RemovedFile { key: key(path), data_change: false }];
        Winner { version: 1, operation: "OPTIMIZE".into(), added, removed, ..Winner::default() }
    }

    struct Statement {
        reads: ReadSet,
        takes: &'static [&'static str],
        isolation: Isolation,
    }

    #[track_caller]
    fn check_case(what: &str, statement: &Statement, winner: Winner, expect: Option<&str>) {
        let ours = Ours {
            reads: &statement.reads,
            takes: statement.takes.iter().copied().collect(),
            applications: ["etl".to_owned()].into(),
            domains: BTreeSet::new(),
            isolation: statement.isolation,
        };
        let conflict = check(&ours, &[Winner::default(), winner]);
        match (&conflict, expect) {
            (None, None) => {}
            (Some(found), Some(words)) if found.detail.contains(words) && found.with == 1 => {}
            _ => panic!("{what}: {conflict:?}, expected {expect:?}"),
        }
    }

    fn statement(reads: ReadSet, takes: &'static [&'static str]) -> Statement {
        Statement { reads, takes, isolation: Isolation::WriteSerializable }
    }

    fn strictly(statement: Statement) -> Statement {
        Statement { isolation: Isolation::Serializable, ..statement }
    }

    fn matching(files: &[&str]) -> ReadSet {
        ReadSet::Matching { files: files.iter().map(|f| key(f)).collect(), predicate: Arc::new(Partition("a")) }
    }

    fn metadata() -> Winner {
        Winner { version: 1, metadata: true, ..Winner::default() }
    }

    #[test]
    fn blind_appends_conflict_with_metadata_alone() {
        let blind = || statement(ReadSet::Nothing, &[]);
        check_case("append, append", &blind(), append("x", "a"), None);
        check_case("append, delete", &blind(), delete("x"), None);
        check_case("append, mark", &blind(), mark("x"), None);
        check_case("append, optimize", &blind(), optimize("x", "y"), None);
        check_case("append, alter", &blind(), metadata(), Some("metadata"));
        check_case("append, upgrade", &blind(), Winner { version: 1, protocol: true, ..Winner::default() }, Some("protocol"));
        check_case("append, append, strictly", &strictly(blind()), append("x", "a"), None);
        let replay = Winner { applications: vec!["etl".into()], ..append("x", "a") };
        check_case("append, same application", &blind(), replay, Some("etl"));
    }

    #[test]
    fn row_changes_conflict_on_their_files_and_predicates() {
        let delete_x = || statement(matching(&["x"]), &["x"]);
        check_case("delete, delete of another file", &delete_x(), delete("y"), None);
        check_case("delete, delete of the same file", &delete_x(), delete("x"), Some("file x"));
        check_case("delete, rows of the same file", &delete_x(), mark("x"), Some("file x"));
        check_case("delete, rows of another file", &delete_x(), mark("y"), Some("file y"));
        check_case("delete, the same file moved", &delete_x(), optimize("x", "z"), Some("file x"));
        check_case("delete, another file moved", &delete_x(), optimize("y", "z"), None);
        check_case("delete, append", &delete_x(), append("n", "a"), None);
        check_case("delete, append, strictly", &strictly(delete_x()), append("n", "a"), Some("file n"));
        check_case("delete, append elsewhere, strictly", &strictly(delete_x()), append("n", "b"), None);
        check_case("delete, rows that were read for", &delete_x(), seen(append("n", "a")), Some("file n"));
        check_case("delete, rows that were read for, elsewhere", &delete_x(), seen(append("n", "b")), None);
        check_case("delete, alter", &delete_x(), metadata(), Some("metadata"));
    }

    #[test]
    fn reading_without_taking() {
        let insert_missing = || statement(matching(&["x"]), &[]);
        check_case("read, removed", &insert_missing(), delete("x"), Some("read"));
        check_case("read, moved", &insert_missing(), optimize("x", "z"), None);
    }

    #[test]
    fn whole_table_changes() {
        let overwrite = || statement(ReadSet::Table, &["x"]);
        check_case("overwrite, append", &overwrite(), append("n", "a"), None);
        check_case("overwrite, append, strictly", &strictly(overwrite()), append("n", "a"), Some("file n"));
        check_case("overwrite, delete", &overwrite(), delete("y"), Some("read"));
        check_case("overwrite, its file moved", &overwrite(), optimize("x", "z"), Some("file x"));
        check_case("overwrite, merge", &overwrite(), seen(append("n", "b")), Some("file n"));
    }
}
