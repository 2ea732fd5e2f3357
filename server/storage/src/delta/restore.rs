//! The change that brings a table back to what an older version held.
//!
//! A file is the same only with the same deletion vector, so (path, vector) pairs are compared; a file whose vector differs goes *and* comes.
//! Schema, properties and constraints come back with the metadata. Three things do not go back: an identity column's high-water mark (numbers
//! would be given twice), in-commit timestamps once on (times would not grow), and the highest column id given.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use super::DeltaSnapshot;
use super::actions::{Add, Metadata, Vector};
use super::features::{ICT, ICT_TIME, ICT_VERSION, MAPPING_MAX, is_on};
use super::schema::IDENTITY_HIGH_WATER;
use super::table::Inner;
use crate::error::{Error, Result};
use crate::index::{Chunk, FileIndex, FileKey};
use crate::snapshot::{FormatSnapshot, Snapshot};
use crate::transaction::{Change, Operation, ReadSet};

type Place<'i> = (&'i Chunk, usize);

impl Inner {
    /// See [`crate::TableFormat::restore`].
    pub(super) async fn restore(&self, base: &Arc<Snapshot>, target: &Arc<Snapshot>) -> Result<Change> {
        if base.table != target.table {
            return Err(Error::Invalid(format!("{} cannot be restored to a version of {}", base.name, target.name)));
        }
        let now = self.known_index(base).await?.index;
        let then = self.known_index(target).await?.index;
        let (current, wanted) = (by_key(&now), by_key(&then));
        let gone = current.iter().filter(|(k, _)| !wanted.contains_key(*k)).map(|(_, (c, r))| c.file(*r));
        let mut removed: Vec<_> = gone.collect();
        removed.sort_by(|a, b| a.path.cmp(&b.path));
        let coming: HashMap<&FileKey, Place<'_>> = wanted.iter().filter(|(k, _)| !current.contains_key(*k)).map(|(k, p)| (k, *p)).collect();
        // Looked for now: a version that was read before may have been vacuumed since.
        self.look_for(target, coming.values().map(|(chunk, row)| chunk.file(*row))).await?;
        let mut statistics = match coming.is_empty() {
            true => HashMap::new(),
            false => self.logged_statistics(target, coming.keys().map(|k| (*k).clone()).collect()).await?,
        };
        let mut restored: Vec<Add> = coming.into_iter().map(|(key, place)| again(place, statistics.remove(key))).collect();
        restored.sort_by(|a, b| a.path.cmp(&b.path));
        let (FormatSnapshot::Delta(from), FormatSnapshot::Delta(to)) = (&base.format, &target.format);
        let metadata = metadata(from, to)?;
        let sum = |sizes: &mut dyn Iterator<Item = i64>| sizes.sum::<i64>().to_string();
        let metrics = [
            ("tableSizeAfterRestore", sum(&mut then.files().map(|f| f.size))),
            ("numOfFilesAfterRestore", then.len().to_string()),
            ("numRemovedFiles", removed.len().to_string()),
            ("numRestoredFiles", restored.len().to_string()),
            ("removedFilesSize", sum(&mut removed.iter().map(|f| f.size))),
            ("restoredFilesSize", sum(&mut restored.iter().map(|f| f.size))),
        ];
        let raw = restored.into_iter().map(|a| json!({ "add": a })).chain(metadata.map(|m| json!({ "metaData": m })));
        Ok(Change {
            operation: Operation {
                name: "RESTORE".to_owned(),
                parameters: BTreeMap::from([("version".to_owned(), Some(target.version.to_string())), ("timestamp".to_owned(), None)]),
                metrics: metrics.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
                ..Operation::default()
            },
            removed,
            raw: raw.collect(),
            reads: ReadSet::Table,
            data_change: true,
            ..Change::default()
        })
    }
}

fn by_key(index: &FileIndex) -> HashMap<FileKey, Place<'_>> {
    index.chunks().iter().flat_map(|c| c.live_rows().map(move |r| (c.key(r), (c, r)))).collect()
}

/// The file's entry, as it was.
fn again((chunk, row): Place<'_>, stats: Option<String>) -> Add {
    let file = chunk.file(row);
    Add {
        stats,
        path: file.path,
        partition_values: file.partition_values,
        size: file.size,
        modification_time: file.modification_time,
        data_change: true,
        tags: None,
        deletion_vector: file.deletion_vector.map(Vector::from),
    }
}

/// The target's metadata with what does not go back; `None` where nothing changes.
fn metadata(base: &DeltaSnapshot, target: &DeltaSnapshot) -> Result<Option<Metadata>> {
    let mut metadata = target.metadata.clone();
    if is_on(&base.metadata, ICT) {
        for key in [ICT, ICT_VERSION, ICT_TIME] {
            match base.metadata.configuration.get(key) {
                Some(value) => metadata.configuration.insert(key.to_owned(), value.clone()),
                None => metadata.configuration.remove(key),
            };
        }
    }
    let highest = |m: &Metadata| m.configuration.get(MAPPING_MAX).and_then(|v| v.parse::<i64>().ok());
    if let Some(most) = highest(&base.metadata).max(highest(&metadata)) {
        metadata.configuration.insert(MAPPING_MAX.to_owned(), most.to_string());
    }
    metadata.schema_string = keep_identity(&base.metadata.schema_string, &metadata.schema_string)?;
    Ok((metadata != base.metadata).then_some(metadata))
}

/// The target's schema with the base's high-water marks of identity columns.
fn keep_identity(base: &str, target: &str) -> Result<String> {
    if !base.contains(IDENTITY_HIGH_WATER) {
        return Ok(target.to_owned());
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).map_err(|e| Error::Internal(format!("a schema is no JSON: {e}")));
    let (base, mut target) = (parse(base)?, parse(target)?);
    let fields = |schema: &Value| schema["fields"].as_array().cloned().unwrap_or_default();
    let marks: HashMap<String, Value> = fields(&base)
        .iter()
        .filter_map(|f| Some((f["name"].as_str()?.to_owned(), f["metadata"].get(IDENTITY_HIGH_WATER)?.clone())))
        .collect();
    for field in target["fields"].as_array_mut().into_iter().flatten() {
        let mark = field["name"].as_str().and_then(|n| marks.get(n)).cloned();
        if let (Some(mark), Some(metadata)) = (mark, field["metadata"].as_object_mut()) {
            metadata.insert(IDENTITY_HIGH_WATER.to_owned(), mark);
        }
    }
    Ok(target.to_string())
}
