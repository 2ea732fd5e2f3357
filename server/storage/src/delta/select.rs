//! Which version a selector names.
//!
//! A version's time is its in-commit timestamp where its commit has one, else its file's time made to grow (see [`super::log`]). Both grow along
//! the log, and in-commit timestamps begin at some version and go on, so a moment is found by binary search.

use super::log::{CommitMeta, Listing};
use super::table::Inner;
use crate::clock::Micros;
use crate::error::{Error, Result, VersionAt};
use crate::snapshot::{SnapshotSelector, Version};

impl Inner {
    /// The version that `selector` names in `log`.
    pub(super) async fn select(&self, log: &Listing, selector: &SnapshotSelector) -> Result<Version> {
        match selector {
            SnapshotSelector::Latest => Ok(log.latest()),
            SnapshotSelector::Version(version) => self.check_version(log, *version).await,
            SnapshotSelector::Timestamp(moment) => self.at(log, *moment).await,
            SnapshotSelector::Ref(name) => Err(Error::RefNotFound {
                table: self.name.clone(),
                asked: name.clone(),
                detail: "a Delta table has no tags or branches; use VERSION AS OF n or TIMESTAMP AS OF t".to_owned(),
            }),
        }
    }

    /// A commit's time.
    pub(super) async fn time_of(&self, log: &Listing, commit: &CommitMeta) -> Micros {
        self.in_commit_time(log, commit.version).await.unwrap_or(commit.at)
    }

    async fn in_commit_time(&self, log: &Listing, version: Version) -> Option<Micros> {
        // A damaged commit has no time of its own; reading the version says what is damaged.
        let commit = self.commit_file(log, version).await.ok()?;
        commit.in_commit_timestamp().map(Micros::from_millis)
    }

    /// The earliest and the latest version that can be had, for messages.
    pub(super) async fn reach(&self, log: &Listing) -> (VersionAt, VersionAt) {
        let (earliest, latest) = (log.earliest(), log.last());
        (
            VersionAt { version: earliest.version, at: self.time_of(log, earliest).await },
            VersionAt { version: latest.version, at: self.time_of(log, latest).await },
        )
    }

    async fn check_version(&self, log: &Listing, asked: Version) -> Result<Version> {
        if (log.earliest().version..=log.latest()).contains(&asked) {
            return Ok(asked);
        }
        let (earliest, latest) = self.reach(log).await;
        Err(Error::VersionNotFound { table: self.name.clone(), asked, earliest, latest })
    }

    async fn at(&self, log: &Listing, asked: Micros) -> Result<Version> {
        let (earliest, latest) = self.reach(log).await;
        let table = self.name.clone();
        if asked < earliest.at {
            return Err(Error::TimeTooEarly { table, asked, earliest, latest });
        }
        let now = self.env.clock.now();
        if asked > now.max(latest.at) {
            return Err(Error::TimeInFuture { table, asked, now, earliest, latest });
        }
        let start = log.commits.partition_point(|c| c.version < earliest.version);
        let commits = &log.commits[start..];
        let first_in_commit = self.first_in_commit(log, commits).await;
        let (by_file, in_commit) = commits.split_at(first_in_commit);
        let mut found = earliest.version;
        if let Some(commit) = by_file[..by_file.partition_point(|c| c.at <= asked)].last() {
            found = commit.version;
        }
        let (mut low, mut high) = (0, in_commit.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.time_of(log, &in_commit[middle]).await <= asked {
                found = in_commit[middle].version;
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(found)
    }

    /// Where in-commit timestamps begin; the number of commits where the latest has none.
    async fn first_in_commit(&self, log: &Listing, commits: &[CommitMeta]) -> usize {
        let (mut low, mut high) = (0, commits.len());
        if self.in_commit_time(log, log.latest()).await.is_none() {
            return high;
        }
        while low < high {
            let middle = low.midpoint(high);
            if self.in_commit_time(log, commits[middle].version).await.is_some() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}
