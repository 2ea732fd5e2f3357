//! Which table features asof reads, which it writes, and which a new table needs.
//!
//! A feature that a reader must know and we do not: the read is refused, by name. A feature that only a writer must know:
//! reads go on, writes are refused by name. A feature we know but do not maintain is refused for those writes that would break it.

use std::collections::BTreeSet;

use arrow::datatypes::{DataType, Schema};

use super::actions::{Metadata, Protocol};
use super::schema::{ASOF_TYPE, DEFAULT, GENERATION, INVARIANTS, VARIANT, any_field};
use crate::transaction::Change;

/// Features that readers and writers must know, and we do.
const READ: [&str; 9] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
];

/// Features that only writers must know, and we maintain (some by refusing what would break them: see [`unwritable`]).
const WRITE: [&str; 9] = [
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "identityColumns",
    "inCommitTimestamp",
    "allowColumnDefaults",
    "domainMetadata",
];

/// In-commit timestamps: on?
pub const ICT: &str = "delta.enableInCommitTimestamps";
/// In-commit timestamps: since which version.
pub const ICT_VERSION: &str = "delta.inCommitTimestampEnablementVersion";
/// In-commit timestamps: since when, ms.
pub const ICT_TIME: &str = "delta.inCommitTimestampEnablementTimestamp";
/// Deletion vectors: may writers make new ones?
pub const VECTORS: &str = "delta.enableDeletionVectors";
/// How columns are found in files.
pub const MAPPING_MODE: &str = "delta.columnMapping.mode";
/// The highest column id given.
pub const MAPPING_MAX: &str = "delta.columnMapping.maxColumnId";
/// No rows may go.
pub const APPEND_ONLY: &str = "delta.appendOnly";
/// Change data feed on?
pub const FEED: &str = "delta.enableChangeDataFeed";
const ROW_TRACKING: &str = "delta.enableRowTracking";
const FEATURE_PREFIX: &str = "delta.feature.";

/// Whether a property is on.
pub fn is_on(metadata: &Metadata, property: &str) -> bool {
    metadata.configuration.get(property).is_some_and(|v| v.eq_ignore_ascii_case("true"))
}

/// Why the table cannot be read, if it cannot.
pub fn unreadable(protocol: &Protocol) -> Option<String> {
    if !(1..=3).contains(&protocol.min_reader_version) {
        return Some(format!("it needs reader version {}, asof knows 1 to 3", protocol.min_reader_version));
    }
    let unknown: Vec<&str> = protocol.reader_features.iter().flatten().map(String::as_str).filter(|f| !READ.contains(f)).collect();
    named("reader", &unknown)
}

fn named(kind: &str, unknown: &[&str]) -> Option<String> {
    let s = if unknown.len() == 1 { "" } else { "s" };
    (!unknown.is_empty()).then(|| format!("it uses the {kind} feature{s} {}, which asof does not support", unknown.join(", ")))
}

/// Why a change cannot be written to the table, if it cannot.
pub fn unwritable(protocol: &Protocol, metadata: &Metadata, change: &Change) -> Option<String> {
    if !(1..=7).contains(&protocol.min_writer_version) {
        return Some(format!("it needs writer version {}, asof knows 1 to 7", protocol.min_writer_version));
    }
    let features = protocol.writer_features.iter().flatten().map(String::as_str);
    let unknown: Vec<&str> = features.filter(|f| !READ.contains(f) && !WRITE.contains(f)).collect();
    named("writer", &unknown).or_else(|| unmaintained(metadata, change))
}

/// What the table demands of this very change and we do not do. Constraints, generated and identity columns are the business of whoever
/// makes the rows: they come here as they must be.
fn unmaintained(metadata: &Metadata, change: &Change) -> Option<String> {
    if is_on(metadata, ROW_TRACKING) {
        return named("writer", &["rowTracking"]);
    }
    let loses = change.data_change && (!change.removed.is_empty() || !change.deletes.is_empty());
    if loses && is_on(metadata, APPEND_ONLY) {
        return Some(format!("it is append-only (property {APPEND_ONLY}): rows may be added, not removed or changed"));
    }
    if is_on(metadata, FEED) && needs_feed(change) {
        return Some(format!("it keeps a change data feed (property {FEED}), which asof does not write yet for {}", change.operation.name));
    }
    None
}

/// Whether readers of the change feed cannot tell this change from its added and removed files.
fn needs_feed(change: &Change) -> bool {
    let rewrites = matches!(change.operation.name.as_str(), "DELETE" | "UPDATE" | "MERGE") && !change.added.is_empty();
    let written = change.raw.iter().any(|a| a.get("cdc").is_some());
    change.data_change && !written && (rewrites || !change.deletes.is_empty())
}

/// The protocol that a table with this metadata needs; `base` is what it has already (protocols only grow).
pub fn needed(metadata: &Metadata, schema: &Schema, base: Option<&Protocol>) -> Protocol {
    let (mut readers, mut writers) = features_of(metadata, schema);
    let Some(base) = base else {
        writers.extend(["appendOnly", "invariants"].map(str::to_owned));
        return protocol(&readers, &writers);
    };
    let (has_readers, has_writers) = features(base);
    if readers.is_subset(&has_readers) && writers.is_subset(&has_writers) {
        return base.clone();
    }
    readers.extend(has_readers);
    writers.extend(has_writers);
    protocol(&readers, &writers)
}

fn protocol(readers: &BTreeSet<String>, writers: &BTreeSet<String>) -> Protocol {
    let legacy = BTreeSet::from(["appendOnly", "invariants"].map(str::to_owned));
    if readers.is_empty() && writers.is_subset(&legacy) {
        return Protocol { min_reader_version: 1, min_writer_version: 2, reader_features: None, writer_features: None };
    }
    let mapping_only = readers.iter().all(|f| f == "columnMapping");
    let (min_reader_version, reader_features) = match (readers.is_empty(), mapping_only) {
        (true, _) => (1, None),
        (false, true) => (2, None),
        (false, false) => (3, Some(readers.iter().cloned().collect())),
    };
    let writer_features = Some(writers.union(readers).cloned().collect());
    Protocol { min_reader_version, min_writer_version: 7, reader_features, writer_features }
}

/// The features a protocol has, those of the old numbered versions spelled out.
fn features(protocol: &Protocol) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut readers: BTreeSet<String> = protocol.reader_features.iter().flatten().cloned().collect();
    let mut writers: BTreeSet<String> = protocol.writer_features.iter().flatten().cloned().collect();
    if protocol.min_reader_version == 2 {
        readers.insert("columnMapping".to_owned());
    }
    if protocol.min_writer_version < 7 {
        let by_version = [
            (2, "appendOnly"),
            (2, "invariants"),
            (3, "checkConstraints"),
            (4, "changeDataFeed"),
            (4, "generatedColumns"),
            (5, "columnMapping"),
            (6, "identityColumns"),
        ];
        writers.extend(by_version.iter().filter(|(v, _)| *v <= protocol.min_writer_version).map(|(_, f)| (*f).to_owned()));
    }
    (readers, writers)
}

/// All features of a protocol by name, readers' and writers'.
pub fn all(protocol: &Protocol) -> BTreeSet<String> {
    let (mut readers, writers) = features(protocol);
    readers.extend(writers);
    readers
}

/// What the metadata and the schema make necessary.
fn features_of(metadata: &Metadata, schema: &Schema) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut both: BTreeSet<&str> = BTreeSet::new();
    let mut writers: BTreeSet<&str> = BTreeSet::new();
    let fields = schema.fields();
    let property = |key: &str| metadata.configuration.get(key).map(String::as_str);
    both.extend(is_on(metadata, VECTORS).then_some("deletionVectors"));
    both.extend(property(MAPPING_MODE).is_some_and(|m| m != "none").then_some("columnMapping"));
    both.extend((property("delta.checkpointPolicy") == Some("v2")).then_some("v2Checkpoint"));
    both.extend(is_on(metadata, "delta.enableTypeWidening").then_some("typeWidening"));
    let ntz = |f: &arrow::datatypes::Field| matches!(f.data_type(), DataType::Timestamp(_, None));
    both.extend(any_field(fields, &ntz).then_some("timestampNtz"));
    let variant = |f: &arrow::datatypes::Field| f.metadata().get(ASOF_TYPE).is_some_and(|t| t == VARIANT);
    both.extend(any_field(fields, &variant).then_some("variantType"));
    writers.extend(is_on(metadata, APPEND_ONLY).then_some("appendOnly"));
    writers.extend(is_on(metadata, FEED).then_some("changeDataFeed"));
    writers.extend(is_on(metadata, ICT).then_some("inCommitTimestamp"));
    writers.extend(is_on(metadata, ROW_TRACKING).then_some("rowTracking"));
    writers.extend(metadata.configuration.keys().any(|k| k.starts_with("delta.constraints.")).then_some("checkConstraints"));
    let has = |key: &str| any_field(fields, &|f| f.metadata().contains_key(key));
    writers.extend(has(DEFAULT).then_some("allowColumnDefaults"));
    writers.extend(has(GENERATION).then_some("generatedColumns"));
    writers.extend(has(INVARIANTS).then_some("invariants"));
    writers.extend(has("delta.identity.start").then_some("identityColumns"));
    for (key, _) in metadata.configuration.iter().filter(|(_, v)| *v == "supported" || *v == "enabled") {
        if let Some(feature) = key.strip_prefix(FEATURE_PREFIX) {
            if READ.contains(&feature) {
                both.insert(feature)
            } else {
                writers.insert(feature)
            };
        }
    }
    let owned = |set: BTreeSet<&str>| set.into_iter().map(str::to_owned).collect();
    (owned(both.clone()), owned(writers.union(&both).copied().collect()))
}

/// Takes out the properties that speak of the protocol; they are not stored.
pub fn strip(metadata: &mut Metadata) {
    let protocol_only = |k: &str| k.starts_with(FEATURE_PREFIX) || k == "delta.minReaderVersion" || k == "delta.minWriterVersion";
    metadata.configuration.retain(|k, _| !protocol_only(k));
}
