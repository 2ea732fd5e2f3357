//! Loading a version: its snapshot, by steps from a version known already or from scratch. (Its files: [`super::index`].)

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectMeta;
use object_store::path::Path;

use super::DeltaSnapshot;
use super::actions::{CommitFile, Metadata, Protocol};
use super::cache::{COMMITS, new_incarnation};
use super::features::{MAPPING_MODE, unreadable};
use super::kernel::{Failure, Replay, replay};
use super::log::{Listing, commit_path, head};
use super::parts;
use super::schema::to_arrow;
use super::shape::IndexShape;
use super::table::Inner;
use crate::error::{Access, Error, Result};
use crate::snapshot::{ColumnMapping, FormatSnapshot, Snapshot, Version};

/// A version so near to a known one is reached by reading the commits in between.
const STEPS: Version = 32;
/// New commits are looked for one by one, so many at most before the log is listed anew, so that checkpoints are seen too.
const PROBES: Version = 10;
/// Reads in flight at once.
const READS: usize = 16;

impl Inner {
    /// The log as it is now: one look at the newest known commit file and the one after it, and a listing only when they say so. Statements that
    /// find nothing new do not wait for each other.
    pub(super) async fn observe(&self) -> Result<Arc<Listing>> {
        let seen = self.log.lock().await.clone();
        if let Some(log) = seen
            && let Ends::Same = self.look(&log).await?
        {
            return Ok(log);
        }
        let mut known = self.log.lock().await;
        let Some(log) = known.clone() else {
            return self.list(&mut known, new_incarnation()).await;
        };
        match self.look(&log).await? {
            Ends::Same => Ok(log),
            Ends::Gone => self.list(&mut known, new_incarnation()).await,
            Ends::Grown(meta) => self.follow(&mut known, &log, meta).await,
        }
    }

    async fn look(&self, log: &Listing) -> Result<Ends> {
        let next = commit_path(&self.store, log.latest() + 1)?;
        let (last, next) = futures::try_join!(head(&self.store, &log.last().meta.location), head(&self.store, &next))?;
        Ok(match next {
            _ if last.as_ref() != Some(&log.last().meta) => Ends::Gone,
            Some(meta) => Ends::Grown(meta),
            None => Ends::Same,
        })
    }

    /// Takes up new commits one by one, the first of which is given.
    async fn follow(&self, known: &mut Option<Arc<Listing>>, log: &Listing, mut meta: ObjectMeta) -> Result<Arc<Listing>> {
        let mut grown = log.clone();
        while grown.latest() - grown.listed_at < PROBES {
            grown.push(grown.latest() + 1, meta);
            match head(&self.store, &commit_path(&self.store, grown.latest() + 1)?).await? {
                Some(next) => meta = next,
                None => return Ok(Arc::clone(known.insert(Arc::new(grown)))),
            }
        }
        self.list(known, log.incarnation).await
    }

    async fn list(&self, known: &mut Option<Arc<Listing>>, incarnation: u64) -> Result<Arc<Listing>> {
        let Some(log) = Listing::read(&self.store, incarnation).await? else {
            *known = None;
            let detail = "there is no _delta_log folder with commits in it".to_owned();
            return Err(Error::NotATable { location: self.name.clone(), detail });
        };
        Ok(Arc::clone(known.insert(Arc::new(log))))
    }

    /// A version's commit file, parsed.
    pub(super) async fn commit_file(&self, log: &Listing, version: Version) -> Result<Arc<CommitFile>> {
        if let Some(commit) = COMMITS.get(&(log.incarnation, version)) {
            return Ok(commit);
        }
        let path = commit_path(&self.store, version)?;
        let Some(text) = self.store.read(&path).await? else {
            return Err(self.gap(version, version));
        };
        let commit = CommitFile::parse(&text).map_err(|detail| self.corrupt(Some(version), self.store.shown(&path), detail))?;
        let commit = Arc::new(commit);
        COMMITS.insert((log.incarnation, version), Arc::clone(&commit));
        Ok(commit)
    }

    /// The commit files of `from..=to`, in order.
    pub(super) async fn commit_files(&self, log: &Listing, from: Version, to: Version) -> Result<Vec<Arc<CommitFile>>> {
        stream::iter(from..=to).map(|v| self.commit_file(log, v)).buffered(READS).try_collect().await
    }

    pub(super) fn corrupt(&self, version: Option<Version>, file: String, detail: String) -> Error {
        Error::Corrupt { table: self.name.clone(), version, file, detail }
    }

    fn gap(&self, missing: Version, asked: Version) -> Error {
        let detail = if missing == asked {
            format!("version {missing} is missing: the log has a gap")
        } else {
            format!("version {missing} is missing: the log has a gap, and version {asked} cannot be rebuilt without it")
        };
        self.corrupt(Some(asked), format!("_delta_log/{missing:020}.json"), detail)
    }

    /// The snapshot of a version.
    pub(super) async fn snapshot(&self, log: &Arc<Listing>, version: Version) -> Result<Arc<Snapshot>> {
        if let Some(snapshot) = self.snapshots.lock().get(log.incarnation, version) {
            return Ok(snapshot);
        }
        let (protocol, metadata) = match self.heads_by_steps(log, version).await {
            Some(heads) => heads,
            None => match self.heads_from_log(log, version).await {
                Ok(heads) => heads,
                Err(words) => {
                    tracing::debug!(table = %self.name, version, words, "the kernel is asked for the protocol and the metadata");
                    self.replayed(log, version, |replay| replay.heads()).await?
                }
            },
        };
        let snapshot = Arc::new(self.build_snapshot(log, version, protocol, metadata).await?);
        self.snapshots.lock().put(log.incarnation, Arc::clone(&snapshot));
        Ok(snapshot)
    }

    async fn heads_by_steps(&self, log: &Listing, version: Version) -> Option<(Protocol, Metadata)> {
        let below = self.snapshots.lock().below(log.incarnation, version, STEPS)?;
        let FormatSnapshot::Delta(delta) = &below.format;
        let mut heads = (delta.protocol.clone(), delta.metadata.clone());
        log.range(below.version + 1, version)?;
        // What is damaged is told by the way from scratch.
        for commit in self.commit_files(log, below.version + 1, version).await.ok()? {
            heads.0 = commit.protocol.clone().unwrap_or(heads.0);
            heads.1 = commit.metadata.clone().unwrap_or(heads.1);
        }
        Some(heads)
    }

    /// From the commits since the nearest checkpoint, and the checkpoint where they do not say; why not otherwise.
    pub(super) async fn heads_from_log(&self, log: &Listing, version: Version) -> Result<(Protocol, Metadata), String> {
        let bad = self.bad_checkpoints.lock().clone();
        let checkpoint = log.base(version, &bad).ok_or("the log has a gap")?;
        let first = checkpoint.map_or(0, |c| c.version + 1);
        let commits = self.commit_files(log, first, version).await.map_err(|e| e.to_string())?;
        let protocol = commits.iter().rev().find_map(|c| c.protocol.clone());
        let metadata = commits.iter().rev().find_map(|c| c.metadata.clone());
        match (protocol, metadata, checkpoint) {
            (Some(protocol), Some(metadata), _) => Ok((protocol, metadata)),
            (protocol, metadata, Some(checkpoint)) => {
                let (older_protocol, older_metadata) = parts::heads(&self.store, &checkpoint.parts).await?;
                Ok((protocol.unwrap_or(older_protocol), metadata.unwrap_or(older_metadata)))
            }
            _ => Err("protocol or metaData is missing".to_owned()),
        }
    }

    async fn build_snapshot(&self, log: &Arc<Listing>, version: Version, protocol: Protocol, metadata: Metadata) -> Result<Snapshot> {
        if let Some(detail) = unreadable(&protocol) {
            return Err(self.unsupported(Access::Read, detail));
        }
        let mapping = match metadata.configuration.get(MAPPING_MODE).map(String::as_str) {
            None | Some("none") => ColumnMapping::None,
            Some("name") => ColumnMapping::Name,
            Some("id") => ColumnMapping::Id,
            Some(other) => return Err(self.unsupported(Access::Read, format!("its column mapping mode {other:?} is unknown"))),
        };
        let schema = to_arrow(&metadata.schema_string).map_err(|detail| self.unsupported(Access::Read, detail))?;
        if let Some(stray) = metadata.partition_columns.iter().find(|c| schema.field_with_name(c).is_err()) {
            let detail = format!("the metadata's partition column {stray} is not in its schema");
            return Err(self.corrupt(Some(version), "_delta_log".to_owned(), detail));
        }
        let committed_at = match log.commit(version) {
            Some(commit) => self.time_of(log, commit).await,
            None => return Err(self.gap(version, version)),
        };
        Ok(Snapshot {
            table: self.id.clone(),
            name: self.name.clone(),
            version,
            committed_at,
            partition_columns: metadata.partition_columns.clone(),
            properties: metadata.configuration.clone(),
            column_mapping: mapping,
            format: FormatSnapshot::Delta(Arc::new(DeltaSnapshot {
                shape: Arc::new(IndexShape::new(&schema, &metadata.partition_columns, mapping)),
                protocol,
                metadata,
                log: Arc::clone(log),
            })),
            schema,
        })
    }

    pub(super) fn unsupported(&self, access: Access, detail: String) -> Error {
        Error::Unsupported { table: self.name.clone(), access, detail }
    }

    /// Asks the kernel's replay of a version. Falls back behind checkpoints that cannot be read.
    pub(super) async fn replayed<T, F>(&self, log: &Arc<Listing>, version: Version, ask: F) -> Result<T>
    where
        T: Send + 'static,
        F: Fn(&Replay) -> Result<T, Failure> + Send + Sync + 'static,
    {
        let ask = Arc::new(ask);
        let bad = self.bad_checkpoints.lock().clone();
        let first = self.ask_kernel(log, version, bad.clone(), Arc::clone(&ask)).await?;
        let failure = match first {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        let mut bad = bad;
        while let (Failure::Damaged(words), Some(Some(checkpoint))) = (&failure, log.base(version, &bad)) {
            bad.extend(checkpoint.parts.iter().map(|p| p.location.clone()));
            if log.base(version, &bad).is_none() {
                break;
            }
            if let Ok(answer) = self.ask_kernel(log, version, bad.clone(), Arc::clone(&ask)).await? {
                tracing::warn!(table = %self.name, checkpoint = checkpoint.version, error = %words, "checkpoint cannot be read, used the commits before it");
                *self.bad_checkpoints.lock() = bad;
                return Ok(answer);
            }
        }
        Err(self.diagnose(log, version, failure).await)
    }

    async fn ask_kernel<T, F>(&self, log: &Arc<Listing>, version: Version, bad: Vec<Path>, ask: Arc<F>) -> Result<Result<T, Failure>>
    where
        T: Send + 'static,
        F: Fn(&Replay) -> Result<T, Failure> + Send + Sync + 'static,
    {
        let (store, log) = (self.store.clone(), Arc::clone(log));
        let work = move || replay(&store, &log, version, &bad).and_then(|replay| ask(&replay));
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|e| Error::Internal(format!("replaying the log of {} was cut short: {e}", self.name)))
    }

    /// What is wrong with the log, in terms of its files.
    async fn diagnose(&self, log: &Listing, version: Version, failure: Failure) -> Error {
        let words = match failure {
            Failure::Missing(missing) => return self.gap(missing, version),
            Failure::Store(source) => return Error::Store { action: "reading the log below", path: self.name.clone(), source },
            Failure::Damaged(words) => words,
        };
        let checkpoint = log.base(version, &[]).flatten();
        let from = checkpoint.map_or(0, |c| c.version + 1);
        let (mut protocol, mut metadata) = (None, None);
        for commit in from..=version {
            match self.commit_file(log, commit).await {
                Ok(commit) => {
                    protocol = commit.protocol.clone().or(protocol);
                    metadata = commit.metadata.clone().or(metadata);
                }
                Err(error) => return error,
            }
        }
        if let Some(detail) = protocol.as_ref().and_then(unreadable) {
            return self.unsupported(Access::Read, detail);
        }
        let lacks = match (&protocol, &metadata) {
            _ if checkpoint.is_some() => None,
            (None, None) => Some("protocol and metaData are missing"),
            (None, _) => Some("protocol is missing"),
            (_, None) => Some("metaData is missing"),
            _ => None,
        };
        if let Some(lacks) = lacks {
            return self.corrupt(Some(version), format!("_delta_log/{from:020}.json"), format!("{lacks} in the whole log"));
        }
        let file = checkpoint.map_or_else(|| "_delta_log".to_owned(), |c| self.store.shown(&c.parts[0].location));
        self.corrupt(Some(version), file, words)
    }
}

/// What the end of a log looks like, compared with what is known.
enum Ends {
    Same,
    /// There is one commit more, at least.
    Grown(ObjectMeta),
    /// The newest known commit is gone or another: the table was made again, or its log cleaned.
    Gone,
}
