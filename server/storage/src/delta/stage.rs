//! From a change to the actions of its commit, as far as they do not depend on the version they get.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::DeltaSnapshot;
use super::actions::{Add, Metadata, Protocol, Remove, Vector};
use super::features::{VECTORS, is_on, needed, strip, unwritable};
use super::metadata::build;
use super::schema::to_arrow;
use super::table::Inner;
use crate::deletes::{BlockWriter, DeletionVector};
use crate::error::{Access, Error, Result};
use crate::index::{FileIndex, FileKey};
use crate::object::Put;
use crate::snapshot::{FormatSnapshot, Snapshot};
use crate::transaction::conflict::{Isolation, Ours};
use crate::transaction::{Change, NewFile, ReadSet, RowDeletes};

/// A change, ready to be committed: data files are on disk.
#[derive(Debug)]
pub struct Staged {
    /// The protocol, where it changes.
    pub protocol: Option<Protocol>,
    /// The metadata, where it changes.
    pub metadata: Option<Metadata>,
    /// The metadata after the commit.
    pub configuration: Metadata,
    /// Added and removed files, and whatever else, a JSON object each.
    pub actions: Vec<Value>,
    /// Paths removed or given another deletion vector.
    pub takes: BTreeSet<String>,
    /// How strict the conflict check is.
    pub isolation: Isolation,
    /// Nothing was read and nothing goes.
    pub blind_append: bool,
}

impl Staged {
    /// What the conflict check needs.
    pub fn ours<'a>(&'a self, reads: &'a ReadSet) -> Ours<'a> {
        let names = |action: &str, key: &str| {
            let of = |a: &Value| a.get(action)?.get(key)?.as_str().map(str::to_owned);
            self.actions.iter().filter_map(of).collect()
        };
        Ours {
            reads,
            takes: self.takes.iter().map(String::as_str).collect(),
            applications: names("txn", "appId"),
            domains: names("domainMetadata", "domain"),
            isolation: self.isolation,
        }
    }
}

/// Protocol and metadata as they will be.
struct Heads {
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
    after: Metadata,
    after_protocol: Protocol,
}

impl Inner {
    /// Makes the change durable as far as it can be before it has a version, and refuses what the table does not allow.
    pub(super) async fn stage(&self, base: Option<&Arc<Snapshot>>, change: &Change) -> Result<Staged> {
        let delta = base.map(|b| {
            let FormatSnapshot::Delta(delta) = &b.format;
            delta.as_ref()
        });
        let heads = self.heads(delta, change)?;
        if let Some(detail) = delta.and_then(|d| unwritable(&d.protocol, &d.metadata, change)) {
            return Err(self.unsupported(Access::Write, detail));
        }
        if let Some(detail) = unwritable(&heads.after_protocol, &heads.after, change) {
            return Err(self.unsupported(Access::Write, detail));
        }
        let index = match base {
            Some(base) if !change.removed.is_empty() || !change.deletes.is_empty() => Some(self.known_index(base).await?.index),
            _ => None,
        };
        self.check_removed(index.as_deref(), change)?;
        let mut actions = self.file_actions(&heads.after, base, change).await?;
        self.sync_staged(change).await?;
        let is_head = |a: &&Value| a.get("metaData").is_some() || a.get("protocol").is_some();
        actions.extend(change.raw.iter().filter(|a| !is_head(a)).cloned());
        let removes = |a: &Value| a.get("remove").is_some();
        let blind_append = matches!(change.reads, ReadSet::Nothing) && !actions.iter().any(removes);
        let strict = change.operation.name == "RESTORE"
            || heads.metadata.is_some()
            || heads.after.configuration.get("delta.isolationLevel").is_some_and(|l| l.eq_ignore_ascii_case("Serializable"));
        let taken = change.removed.iter().chain(change.deletes.iter().map(|d| &d.file)).map(|f| f.path.clone());
        Ok(Staged {
            takes: taken.collect(),
            protocol: heads.protocol,
            metadata: heads.metadata,
            configuration: heads.after,
            actions,
            isolation: if strict { Isolation::Serializable } else { Isolation::WriteSerializable },
            blind_append,
        })
    }

    fn heads(&self, delta: Option<&DeltaSnapshot>, change: &Change) -> Result<Heads> {
        let raw = |key: &str| change.raw.iter().find_map(|a| a.get(key)).cloned();
        let parse = |e: serde_json::Error| Error::Internal(format!("a ready-made action is malformed: {e}"));
        let (metadata, schema) = match (&change.metadata, raw("metaData")) {
            (Some(new), _) => {
                let replaces = delta.is_none() || change.operation.name.contains("REPLACE");
                let (mut metadata, schema) = build(new, delta, replaces, &self.env)?;
                let wanted = metadata.clone();
                strip(&mut metadata);
                (Some((metadata, wanted)), schema)
            }
            (None, Some(ready)) => {
                let metadata: Metadata = serde_json::from_value(ready).map_err(parse)?;
                let schema = to_arrow(&metadata.schema_string).map_err(|d| self.unsupported(Access::Write, d))?;
                (Some((metadata.clone(), metadata)), schema)
            }
            (None, None) => {
                let delta = delta.ok_or_else(|| Error::Invalid("a table's first commit needs its columns".to_owned()))?;
                (None, to_arrow(&delta.metadata.schema_string).map_err(|d| self.unsupported(Access::Write, d))?)
            }
        };
        let base_protocol = delta.map(|d| &d.protocol);
        let needed = match (&metadata, base_protocol) {
            (Some((_, wanted)), base) => needed(wanted, &schema, base),
            (None, Some(base)) => base.clone(),
            (None, None) => return Err(Error::Internal("neither metadata nor a base".to_owned())),
        };
        let protocol = (base_protocol != Some(&needed)).then(|| needed.clone());
        let metadata = metadata.map(|(m, _)| m);
        let after = metadata.clone().or_else(|| delta.map(|d| d.metadata.clone()));
        let after = after.ok_or_else(|| Error::Internal("neither metadata nor a base".to_owned()))?;
        Ok(Heads { protocol, metadata, after, after_protocol: needed })
    }

    /// What goes must be in the base.
    fn check_removed(&self, index: Option<&FileIndex>, change: &Change) -> Result<()> {
        let wanted: BTreeSet<FileKey> =
            change.removed.iter().chain(change.deletes.iter().map(|d| &d.file)).map(crate::index::DataFile::key).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let index = index.ok_or_else(|| Error::Invalid("a new table has no files to remove".to_owned()))?;
        let found = index.chunks().iter().flat_map(|c| c.live_rows().map(|r| c.key(r))).filter(|k| wanted.contains(k)).count();
        if found == wanted.len() {
            return Ok(());
        }
        Err(Error::Invalid(format!("of {} files to remove only {found} are in version {} of {}", wanted.len(), index.version(), self.name)))
    }

    /// Adds, removes and new deletion vectors.
    async fn file_actions(&self, after: &Metadata, base: Option<&Arc<Snapshot>>, change: &Change) -> Result<Vec<Value>> {
        let now = self.env.clock.now().millis();
        let mut actions = Vec::with_capacity(change.added.len() + change.removed.len());
        for file in &change.removed {
            actions.push(json!({ "remove": Remove::of(file, change.data_change, now) }));
        }
        let (whole, partial): (Vec<&RowDeletes>, Vec<&RowDeletes>) =
            change.deletes.iter().partition(|d| d.file.rows.and_then(|r| u64::try_from(r).ok()) == Some(d.rows.len()));
        for delete in whole {
            actions.push(json!({ "remove": Remove::of(&delete.file, change.data_change, now) }));
        }
        if !partial.is_empty() && !is_on(after, VECTORS) {
            return Err(self.unsupported(Access::Write, format!("it has deletion vectors off (property {VECTORS})")));
        }
        let mut statistics = match base {
            Some(base) if !partial.is_empty() => self.logged_statistics(base, partial.iter().map(|d| d.file.key()).collect()).await?,
            _ => HashMap::new(),
        };
        for (delete, vector) in partial.iter().zip(self.write_vectors(&partial).await?) {
            actions.push(json!({ "remove": Remove::of(&delete.file, change.data_change, now) }));
            let stats = statistics.remove(&delete.file.key());
            actions.push(json!({ "add": with_vector(delete, vector, stats.as_deref(), change.data_change) }));
        }
        for file in &change.added {
            actions.push(json!({ "add": add(file, change.data_change) }));
        }
        Ok(actions)
    }

    /// Writes the bitmaps into one file of the table's folder, on disk when this answers.
    async fn write_vectors(&self, deletes: &[&RowDeletes]) -> Result<Vec<DeletionVector>> {
        if deletes.is_empty() {
            return Ok(Vec::new());
        }
        let id = self.env.entropy.uuid();
        let mut writer = BlockWriter::new();
        let mut vectors = Vec::with_capacity(deletes.len());
        for delete in deletes {
            let (offset, size) = writer.push(&delete.rows).map_err(|e| Error::Internal(format!("encoding a deletion vector: {e}")))?;
            let cardinality = i64::try_from(delete.rows.len()).unwrap_or(i64::MAX);
            vectors.push(DeletionVector::in_file(id, offset, size, cardinality));
        }
        let path = self.store.child(&format!("deletion_vector_{id}.bin"))?;
        let bytes = writer.finish();
        match self.store.put_if_absent(&path, bytes.clone()).await? {
            Put::Done => Ok(vectors),
            // The name is ours alone: what is there with our bytes is ours.
            Put::Unknown(_) | Put::Taken if self.store.read(&path).await?.as_ref() == Some(&bytes) => Ok(vectors),
            Put::Unknown(source) => Err(Error::Store { action: "writing", path: self.store.shown(&path), source }),
            Put::Taken => Err(Error::Internal(format!("{} was there before", self.store.shown(&path)))),
        }
    }

    /// Forces new data files and change files to disk.
    async fn sync_staged(&self, change: &Change) -> Result<()> {
        let feed = change.raw.iter().filter_map(|a| a.get("cdc")?.get("path")?.as_str());
        let inside = |path: &str| {
            self.store.inside(path).map_err(|_| Error::Invalid(format!("the new file {path} lies outside the table {}", self.name)))
        };
        let paths: Vec<_> = change.added.iter().map(|f| f.path.as_str()).chain(feed).map(inside).collect::<Result<_>>()?;
        self.store.sync(&paths).await
    }
}

fn add(file: &NewFile, data_change: bool) -> Add {
    Add {
        path: file.path.clone(),
        partition_values: file.partition_values.clone(),
        size: file.size,
        modification_time: file.modification_time,
        data_change,
        stats: file.stats.clone(),
        tags: None,
        deletion_vector: None,
    }
}

/// The file again, with fewer rows: its bounds stay bounds, but are no longer tight.
fn with_vector(delete: &RowDeletes, vector: DeletionVector, stats: Option<&str>, data_change: bool) -> Add {
    let file = &delete.file;
    Add {
        path: file.path.clone(),
        partition_values: file.partition_values.clone(),
        size: file.size,
        modification_time: file.modification_time,
        data_change,
        stats: Some(loose(stats, file.rows)),
        tags: None,
        deletion_vector: Some(Vector::from(vector)),
    }
}

fn loose(stats: Option<&str>, rows: Option<i64>) -> String {
    let mut stats: Map<String, Value> = stats.and_then(|s| serde_json::from_str(s).ok()).unwrap_or_default();
    if let (None, Some(rows)) = (stats.get("numRecords"), rows) {
        stats.insert("numRecords".to_owned(), rows.into());
    }
    stats.insert("tightBounds".to_owned(), false.into());
    Value::Object(stats).to_string()
}
