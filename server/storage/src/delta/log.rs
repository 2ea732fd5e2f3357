//! What lies in a table's log: commit files with their times, and checkpoints.
//!
//! A listing tells which versions there are; which can be *rebuilt* depends on checkpoints and gaps. Version `v` can be rebuilt when
//! its commit file is there, and every one since a checkpoint (or since version 0).
//!
//! **Time.** A commit file's time is when it was written; copies, clock skew and coarse clocks make it go back or stand still.
//! So times are made to grow: a commit not later than the one before counts as that one + 1 ms.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};

use crate::clock::Micros;
use crate::error::{Error, Result};
use crate::object::TableStore;
use crate::snapshot::Version;

/// The log's folder in the table's.
pub const LOG: &str = "_delta_log";

/// A commit file.
#[derive(Clone, Debug)]
pub struct CommitMeta {
    /// Its version.
    pub version: Version,
    /// Its object.
    pub meta: ObjectMeta,
    /// Its time by the file, made to grow.
    pub at: Micros,
}

/// A checkpoint of which all parts are there.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The version it holds.
    pub version: Version,
    /// Its objects.
    pub parts: Vec<ObjectMeta>,
}

/// A log as listed; at least one commit.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Tells one life of the folder from another (a table dropped and made again).
    pub incarnation: u64,
    /// By version.
    pub commits: Vec<CommitMeta>,
    /// By version.
    pub checkpoints: Vec<Checkpoint>,
    /// The latest version when the whole folder was listed last.
    pub listed_at: Version,
}

/// What a checkpoint's file name says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Commit(Version),
    /// One file: the classic form, or V2 with an id.
    Whole(Version),
    /// Part `.1` of `.2`.
    Part(Version, usize, usize),
}

fn parse_name(name: &str) -> Option<Name> {
    let (number, rest) = name.split_at_checked(20)?;
    if !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let version = number.parse().ok()?;
    if rest == ".json" {
        return Some(Name::Commit(version));
    }
    let parts: Vec<&str> = rest.strip_prefix(".checkpoint.")?.split('.').collect();
    match parts.as_slice() {
        ["parquet"] => Some(Name::Whole(version)),
        [id, "parquet" | "json"] if id.len() == 36 => Some(Name::Whole(version)),
        [part, of, "parquet"] => Some(Name::Part(version, part.parse().ok()?, of.parse().ok()?)),
        _ => None,
    }
}

/// The path of a commit file.
pub fn commit_path(store: &TableStore, version: Version) -> Result<Path> {
    store.child(&format!("{LOG}/{version:020}.json"))
}

impl Listing {
    /// Lists the log; `None` where there is no commit file.
    pub async fn read(store: &TableStore, incarnation: u64) -> Result<Option<Self>> {
        let folder = store.child(LOG)?;
        let objects: Vec<ObjectMeta> = match store.objects.list_with_delimiter(Some(&folder)).await {
            Ok(listed) => listed.objects,
            Err(object_store::Error::NotFound { .. }) => Vec::new(),
            Err(source) => return Err(Error::Store { action: "listing", path: LOG.to_owned(), source }),
        };
        Ok(Self::of(objects, incarnation))
    }

    fn of(objects: Vec<ObjectMeta>, incarnation: u64) -> Option<Self> {
        let mut commits = Vec::new();
        let mut checkpoints: Vec<Checkpoint> = Vec::new();
        let mut parts: Vec<(Version, usize, usize, ObjectMeta)> = Vec::new();
        for meta in objects {
            match meta.location.filename().and_then(parse_name) {
                Some(Name::Commit(version)) => commits.push(CommitMeta { version, at: Micros(0), meta }),
                // A checkpoint of no bytes is a crashed writer's.
                Some(Name::Whole(version)) if meta.size > 0 => checkpoints.push(Checkpoint { version, parts: vec![meta] }),
                Some(Name::Part(version, part, of)) if meta.size > 0 => parts.push((version, of, part, meta)),
                _ => {}
            }
        }
        parts.sort_by_key(|(version, of, part, _)| (*version, *of, *part));
        for group in parts.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            if group.iter().enumerate().all(|(i, p)| p.2 == i + 1) && group.len() == group[0].1 {
                checkpoints.push(Checkpoint { version: group[0].0, parts: group.iter().map(|p| p.3.clone()).collect() });
            }
        }
        commits.sort_by_key(|c| c.version);
        checkpoints.sort_by(|a, b| (a.version, &a.parts[0].location).cmp(&(b.version, &b.parts[0].location)));
        let listed_at = commits.last()?.version;
        let mut listing = Self { incarnation, commits: Vec::with_capacity(commits.len()), checkpoints, listed_at };
        for commit in commits {
            listing.push(commit.version, commit.meta);
        }
        Some(listing)
    }

    /// Appends a commit file, making its time grow.
    pub fn push(&mut self, version: Version, meta: ObjectMeta) {
        let written = Micros::from_millis(meta.last_modified.timestamp_millis());
        let at = self.commits.last().map_or(written, |last| written.max(Micros(last.at.0 + 1000)));
        self.commits.push(CommitMeta { version, meta, at });
    }

    /// The newest commit file.
    pub fn last(&self) -> &CommitMeta {
        // A listing has at least one commit, by construction.
        &self.commits[self.commits.len() - 1]
    }

    /// The newest version.
    pub fn latest(&self) -> Version {
        self.last().version
    }

    /// A version's commit file.
    pub fn commit(&self, version: Version) -> Option<&CommitMeta> {
        self.commits.binary_search_by_key(&version, |c| c.version).ok().map(|i| &self.commits[i])
    }

    /// The commit files of `from..=to`, if none is missing.
    pub fn range(&self, from: Version, to: Version) -> Option<&[CommitMeta]> {
        let count = usize::try_from(to - from + 1).unwrap_or(0);
        if count == 0 {
            return Some(&[]);
        }
        let start = self.commits.binary_search_by_key(&from, |c| c.version).ok()?;
        let found = self.commits.get(start..start + count)?;
        (found[count - 1].version == to).then_some(found)
    }

    /// The smallest version in `from..=to` without a commit file.
    pub fn first_missing(&self, from: Version, to: Version) -> Option<Version> {
        (from..=to).find(|v| self.commit(*v).is_none())
    }

    /// How a version can be rebuilt: a checkpoint (none: from version 0) and the commits after it. `bad` are checkpoints found unreadable.
    pub fn base(&self, version: Version, bad: &[Path]) -> Option<Option<&Checkpoint>> {
        let usable = |c: &&Checkpoint| {
            c.version <= version && !c.parts.iter().any(|p| bad.contains(&p.location)) && self.range(c.version + 1, version).is_some()
        };
        if let Some(checkpoint) = self.checkpoints.iter().rev().find(usable) {
            return Some(Some(checkpoint));
        }
        self.range(0, version).is_some().then_some(None)
    }

    /// The earliest version that can be rebuilt; the latest where none can.
    pub fn earliest(&self) -> &CommitMeta {
        if self.commits[0].version == 0 {
            return &self.commits[0];
        }
        let by_checkpoint = self.checkpoints.iter().find_map(|c| self.commit(c.version).or_else(|| self.commit(c.version + 1)));
        by_checkpoint.unwrap_or_else(|| self.last())
    }
}

/// The objects below the table's folder that are not of the log: path and size.
pub async fn data_objects(store: &TableStore) -> Result<Vec<ObjectMeta>> {
    let log = store.child(LOG)?;
    let failed = |source| Error::Store { action: "listing", path: ".".to_owned(), source };
    let objects = store.objects.list(Some(&store.root)).try_filter(|m| futures::future::ready(!m.location.prefix_matches(&log)));
    objects.try_collect().await.map_err(failed)
}

/// An object's metadata; `None` when it is not there.
pub async fn head(store: &TableStore, path: &Path) -> Result<Option<ObjectMeta>> {
    match store.objects.head(path).await {
        Ok(meta) => Ok(Some(meta)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(source) => Err(Error::Store { action: "looking for", path: store.shown(path), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a table of cases reads better with values")]
    fn check(name: &str, expect: Option<Name>) {
        assert_eq!(parse_name(name), expect, "{name}");
    }

    #[test]
    fn names() {
        check("00000000000000000007.json", Some(Name::Commit(7)));
        check("00000000000000000007.checkpoint.parquet", Some(Name::Whole(7)));
        check("00000000000000000007.checkpoint.8d084539-d8c0-4db9-b80f-29916a276edc.json", Some(Name::Whole(7)));
        check("00000000000000000007.checkpoint.0000000002.0000000003.parquet", Some(Name::Part(7, 2, 3)));
        for other in
            ["00000000000000000007.crc", "_last_checkpoint", "7.json", "0000000000000000000x.json", "99999999999999999999.json", "ü"]
        {
            check(other, None);
        }
    }

    fn listing(names: &[(&str, i64)]) -> Listing {
        let object = |(name, millis): &(&str, i64)| ObjectMeta {
            location: Path::parse(format!("t/_delta_log/{name}")).unwrap(),
            last_modified: chrono::DateTime::from_timestamp_millis(*millis).unwrap(),
            size: 1,
            e_tag: None,
            version: None,
        };
        Listing::of(names.iter().map(object).collect(), 0).unwrap()
    }

    #[test]
    fn times_grow() {
        let names: Vec<(String, i64)> = [10, 5, 5, 40, 40].iter().enumerate().map(|(i, t)| (format!("{i:020}.json"), *t)).collect();
        let names: Vec<(&str, i64)> = names.iter().map(|(n, t)| (n.as_str(), *t)).collect();
        let times: Vec<i64> = listing(&names).commits.iter().map(|c| c.at.millis()).collect();
        assert_eq!(times, [10, 11, 12, 40, 41]);
    }

    #[test]
    fn bases() {
        let commit = |v: i64| format!("{v:020}.json");
        let names: Vec<String> = [3, 4, 6].into_iter().map(commit).chain(["00000000000000000003.checkpoint.parquet".to_owned()]).collect();
        let log = listing(&names.iter().map(|n| (n.as_str(), 0)).collect::<Vec<_>>());
        assert_eq!(log.base(4, &[]).unwrap().unwrap().version, 3);
        assert!(log.base(6, &[]).is_none());
        assert_eq!(log.first_missing(4, 6), Some(5));
        assert_eq!(log.earliest().version, 3);
        let bad = [Path::parse("t/_delta_log/00000000000000000003.checkpoint.parquet").unwrap()];
        assert!(log.base(4, &bad).is_none());
    }
}
