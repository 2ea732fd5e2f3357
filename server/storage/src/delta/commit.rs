//! The commit loop: one version more, once, or a conflict.
//!
//! The commit point is the creation of `N.json` (S2). Before each try, every commit since the base is checked (S4), so a rebase never
//! skips one. A put whose answer is lost is settled by reading `N.json` back: every commit carries its transaction's id, which is ours or not (S5).
//! While that is open the loop never gives up with "not committed": it retries the same version, which cannot be taken twice.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::actions::CommitFile;
use super::features::{ICT, ICT_TIME, ICT_VERSION, is_on};
use super::log::{Listing, commit_path};
use super::stage::Staged;
use super::table::Inner;
use crate::error::{Error, Result};
use crate::object::Put;
use crate::snapshot::{FormatSnapshot, Snapshot, Version};
use crate::transaction::conflict::{AddedFile, RemovedFile, Winner, check};
use crate::transaction::{Change, CommitOutcome, Conflict};

/// Tries for one statement; each lost one means that somebody else committed, or that the store failed.
const TRIES: u32 = 40;
/// Looks at a version whose put had no answer.
const LOOKS: u32 = 4;
/// Pause before a retry grows from this to the next.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What lies at a version.
enum Found {
    Ours,
    Theirs,
    Nothing,
    /// The store does not say.
    Unclear(String),
}

impl Inner {
    /// See [`crate::TableFormat::commit`].
    pub(super) async fn commit(self: &Arc<Self>, base: Option<&Arc<Snapshot>>, change: &Change) -> Result<CommitOutcome> {
        let staged = self.stage(base, change).await?;
        let transaction = self.env.entropy.uuid().to_string();
        let mut checked = base.map_or(-1, |b| b.version);
        // The version at which a put of ours may still appear, and the store's words.
        let mut open: Option<(Version, String)> = None;
        for attempt in 0..TRIES {
            self.pause(attempt).await;
            if let Some(base) = base {
                match self.catch_up(base, change, &staged, &transaction, checked).await? {
                    Ahead::Clear(latest) => checked = latest,
                    Ahead::Ended(outcome) => return Ok(outcome),
                }
            }
            let target = checked + 1;
            let bytes = self.serialise(base, change, &staged, &transaction, target).await?;
            let found = match self.store.put_if_absent(&commit_path(&self.store, target)?, bytes).await? {
                Put::Done => Found::Ours,
                Put::Taken => self.whose(target, &transaction).await?,
                Put::Unknown(words) => {
                    open = Some((target, words.to_string()));
                    self.whose(target, &transaction).await?
                }
            };
            match found {
                Found::Ours => {
                    self.after_commit(target, &staged);
                    return Ok(CommitOutcome::Committed { version: target });
                }
                Found::Theirs if base.is_none() => return Err(Error::AlreadyExists { location: self.name.clone() }),
                Found::Theirs => open = None,
                Found::Nothing => {}
                Found::Unclear(words) => open = Some((target, words)),
            }
        }
        match open {
            Some((version, detail)) => Err(Error::UnknownOutcome { table: self.name.clone(), version, transaction, detail }),
            None => Ok(CommitOutcome::Conflict(Conflict {
                with: checked,
                operation: "other commits".to_owned(),
                detail: format!("each of {TRIES} tries found that another commit was faster; run the statement again"),
            })),
        }
    }

    /// A pause with jitter, none before the first try and next to none before the second.
    async fn pause(&self, attempt: u32) {
        if attempt > 0 {
            let most = FIRST_PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
            let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
            tokio::time::sleep(Duration::from_micros(self.env.entropy.number() % micros.max(1))).await;
        }
    }

    /// Checks the commits since the last look.
    async fn catch_up(&self, base: &Snapshot, change: &Change, staged: &Staged, transaction: &str, checked: Version) -> Result<Ahead> {
        let FormatSnapshot::Delta(delta) = &base.format;
        let log = self.observe().await?;
        if log.incarnation != delta.log.incarnation && !self.same_table(&log, base).await {
            return Ok(Ahead::Ended(CommitOutcome::Conflict(Conflict {
                with: log.latest(),
                operation: "DROP TABLE".to_owned(),
                detail: "the table was dropped and made again".to_owned(),
            })));
        }
        let winners = self.commit_files(&log, checked + 1, log.latest()).await?;
        for (version, winner) in (checked + 1..).zip(&winners) {
            if winner.transaction() == Some(transaction) {
                return Ok(Ahead::Ended(CommitOutcome::Committed { version }));
            }
            if let Some(conflict) = check(&staged.ours(&change.reads), &[summary(version, winner)]) {
                return Ok(Ahead::Ended(CommitOutcome::Conflict(conflict)));
            }
        }
        Ok(Ahead::Clear(log.latest()))
    }

    /// Whether the log that was listed anew is still the one of the base: only then does it have the base's own commit.
    async fn same_table(&self, log: &Arc<Listing>, base: &Snapshot) -> bool {
        let FormatSnapshot::Delta(delta) = &base.format;
        let then = delta.log.commit(base.version).map(|c| &c.meta);
        let now = log.commit(base.version).map(|c| &c.meta);
        then.zip(now).is_some_and(|(a, b)| (a.size, a.last_modified, &a.e_tag) == (b.size, b.last_modified, &b.e_tag))
    }

    /// Whose commit lies at a version; a few looks where the store fails.
    async fn whose(&self, version: Version, transaction: &str) -> Result<Found> {
        let path = commit_path(&self.store, version)?;
        let mut words = String::new();
        for look in 0..LOOKS {
            self.pause(look).await;
            match self.store.read(&path).await {
                Ok(None) => return Ok(Found::Nothing),
                Ok(Some(text)) => {
                    let theirs = CommitFile::parse(&text).map_or(true, |c| c.transaction() != Some(transaction));
                    return Ok(if theirs { Found::Theirs } else { Found::Ours });
                }
                Err(error) => words = error.to_string(),
            }
        }
        Ok(Found::Unclear(words))
    }

    /// The commit file's text for a version.
    async fn serialise(
        &self,
        base: Option<&Arc<Snapshot>>,
        change: &Change,
        staged: &Staged,
        transaction: &str,
        version: Version,
    ) -> Result<Bytes> {
        let now = self.env.clock.now().millis();
        let mut metadata = staged.metadata.clone();
        let mut in_commit = None;
        if is_on(&staged.configuration, ICT) {
            let before = self.time_before(version).await?;
            let at = before.map_or(now, |b| now.max(b + 1));
            in_commit = Some(at);
            let had = base.is_some_and(|b| b.properties.get(ICT).is_some_and(|v| v.eq_ignore_ascii_case("true")));
            if let Some(metadata) = metadata.as_mut().filter(|_| base.is_some() && !had) {
                metadata.configuration.insert(ICT_VERSION.to_owned(), version.to_string());
                metadata.configuration.insert(ICT_TIME.to_owned(), at.to_string());
            }
        }
        let mut lines = vec![commit_info(base, change, staged, transaction, now, in_commit)];
        lines.extend(staged.protocol.as_ref().map(|p| json!({ "protocol": p })));
        lines.extend(metadata.map(|m| json!({ "metaData": m })));
        let mut text = String::new();
        for line in lines.iter().chain(&staged.actions) {
            text.push_str(&line.to_string());
            text.push('\n');
        }
        Ok(Bytes::from(text))
    }

    /// The time of the version before, ms.
    async fn time_before(&self, version: Version) -> Result<Option<i64>> {
        if version == 0 {
            return Ok(None);
        }
        let log = self.observe().await?;
        match log.commit(version - 1) {
            Some(commit) => Ok(Some(self.time_of(&log, commit).await.millis())),
            None => Ok(None),
        }
    }

    /// What follows a commit and can no longer make it fail.
    fn after_commit(self: &Arc<Self>, version: Version, staged: &Staged) {
        tracing::debug!(table = %self.name, version, "committed");
        let interval = staged.configuration.configuration.get("delta.checkpointInterval").and_then(|v| v.parse().ok());
        let interval: Version = interval.filter(|i| *i > 0).unwrap_or(DEFAULT_INTERVAL);
        if version > 0 && version % interval == 0 {
            self.start_checkpoint(version);
        }
    }
}

/// Commits between checkpoints, where the table does not say.
const DEFAULT_INTERVAL: Version = 10;

/// What the commits since the last look mean for us.
enum Ahead {
    /// None is in our way; the latest.
    Clear(Version),
    /// It is decided.
    Ended(CommitOutcome),
}

fn commit_info(
    base: Option<&Arc<Snapshot>>,
    change: &Change,
    staged: &Staged,
    transaction: &str,
    now: i64,
    in_commit: Option<i64>,
) -> Value {
    let operation = &change.operation;
    let mut info = serde_json::Map::new();
    if let Some(at) = in_commit {
        info.insert("inCommitTimestamp".to_owned(), at.into());
    }
    info.insert("timestamp".to_owned(), now.into());
    if let Some(user) = &operation.user_name {
        info.insert("userName".to_owned(), user.as_str().into());
    }
    info.insert("operation".to_owned(), operation.name.as_str().into());
    info.insert("operationParameters".to_owned(), json!(operation.parameters));
    if let Some(base) = base {
        info.insert("readVersion".to_owned(), base.version.into());
    }
    let level = if change.data_change || staged.metadata.is_some() { staged.isolation.name() } else { "SnapshotIsolation" };
    info.insert("isolationLevel".to_owned(), level.into());
    info.insert("isBlindAppend".to_owned(), staged.blind_append.into());
    info.insert("operationMetrics".to_owned(), json!(operation.metrics));
    if let Some(words) = &operation.user_metadata {
        info.insert("userMetadata".to_owned(), words.as_str().into());
    }
    info.insert("engineInfo".to_owned(), concat!("asof/", env!("CARGO_PKG_VERSION")).into());
    info.insert("txnId".to_owned(), transaction.into());
    json!({ "commitInfo": info })
}

/// A commit as the conflict check sees it.
fn summary(version: Version, commit: &CommitFile) -> Winner {
    let added = commit.adds.iter().map(|a| AddedFile {
        key: a.key(),
        partition_values: a.partition_values.clone(),
        stats: a.stats.clone(),
        data_change: a.data_change,
    });
    let removed = commit.removes.iter().map(|r| RemovedFile { key: r.key(), data_change: r.data_change });
    let blind = commit.info.get("isBlindAppend").and_then(Value::as_bool).unwrap_or(false);
    let marks = commit.adds.iter().any(|a| a.deletion_vector.is_some());
    Winner {
        version,
        operation: commit.operation(),
        blind_append: blind && commit.removes.is_empty() && !marks,
        metadata: commit.metadata.is_some(),
        protocol: commit.protocol.is_some(),
        added: added.collect(),
        removed: removed.collect(),
        applications: commit.txns.iter().map(|t| t.app_id.clone()).collect(),
        domains: commit.domains.clone(),
    }
}
