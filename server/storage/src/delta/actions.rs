//! The log's actions, with the protocol's own names.
//!
//! A commit file is one JSON object a line, each with one action. Actions and fields that nobody knows are ignored; a line that is
//! not JSON is damage, told with its number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::deletes::DeletionVector;
use crate::index::{DataFile, FileKey};

/// A file that is part of the table from this commit on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Add {
    /// Path as the log writes it.
    pub path: String,
    /// Serialised values by physical name.
    #[serde(default)]
    pub partition_values: BTreeMap<String, Option<String>>,
    /// Bytes.
    pub size: i64,
    /// Milliseconds since the epoch.
    #[serde(default)]
    pub modification_time: i64,
    /// Whether rows change.
    #[serde(default = "yes")]
    pub data_change: bool,
    /// Statistics as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<String>,
    /// Free tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// Which rows are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<Vector>,
}

/// A file that is part of the table no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remove {
    /// Path as the log wrote it.
    pub path: String,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<i64>,
    /// Whether rows change.
    #[serde(default = "yes")]
    pub data_change: bool,
    /// Whether the three fields below are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_file_metadata: Option<bool>,
    /// Serialised values by physical name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_values: Option<BTreeMap<String, Option<String>>>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// The deletion vector it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_vector: Option<Vector>,
}

fn yes() -> bool {
    true
}

/// A deletion vector's descriptor in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vector {
    /// `u`, `i` or `p`.
    pub storage_type: char,
    /// What the storage type says.
    pub path_or_inline_dv: String,
    /// Where in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<i32>,
    /// Bytes of the bitmap.
    pub size_in_bytes: i32,
    /// Deleted rows.
    pub cardinality: i64,
}

impl From<Vector> for DeletionVector {
    fn from(v: Vector) -> Self {
        Self {
            storage_type: v.storage_type,
            path_or_inline: v.path_or_inline_dv,
            offset: v.offset,
            size_in_bytes: v.size_in_bytes,
            cardinality: v.cardinality,
        }
    }
}

impl From<DeletionVector> for Vector {
    fn from(v: DeletionVector) -> Self {
        Self {
            storage_type: v.storage_type,
            path_or_inline_dv: v.path_or_inline,
            offset: v.offset,
            size_in_bytes: v.size_in_bytes,
            cardinality: v.cardinality,
        }
    }
}

fn key(path: &str, vector: Option<&Vector>) -> FileKey {
    FileKey { path: path.to_owned(), deletion_vector: vector.map(|v| DeletionVector::from(v.clone()).unique_id()) }
}

impl Add {
    /// What identifies it.
    pub fn key(&self) -> FileKey {
        key(&self.path, self.deletion_vector.as_ref())
    }
}

impl Remove {
    /// What identifies the file that goes.
    pub fn key(&self) -> FileKey {
        key(&self.path, self.deletion_vector.as_ref())
    }

    /// The tombstone of a live file.
    pub fn of(file: &DataFile, data_change: bool, at_millis: i64) -> Self {
        Self {
            path: file.path.clone(),
            deletion_timestamp: Some(at_millis),
            data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(file.partition_values.clone()),
            size: Some(file.size),
            deletion_vector: file.deletion_vector.clone().map(Vector::from),
        }
    }
}

/// The table's metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The table's id.
    pub id: String,
    /// Its name in the log; engines leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How files are encoded: Parquet.
    #[serde(default)]
    pub format: Format,
    /// The columns, as JSON text.
    pub schema_string: String,
    /// Logical names.
    #[serde(default)]
    pub partition_columns: Vec<String>,
    /// Properties.
    #[serde(default)]
    pub configuration: BTreeMap<String, String>,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<i64>,
}

/// See [`Metadata::format`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Format {
    /// `parquet`.
    pub provider: String,
    /// None.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

impl Default for Format {
    fn default() -> Self {
        Self { provider: "parquet".to_owned(), options: BTreeMap::new() }
    }
}

/// What a reader and a writer must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Protocol {
    /// 1 to 3; from 3 on, `reader_features` says all.
    pub min_reader_version: i32,
    /// 1 to 7; from 7 on, `writer_features` says all.
    pub min_writer_version: i32,
    /// Features a reader must know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader_features: Option<Vec<String>>,
    /// Features a writer must know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_features: Option<Vec<String>>,
}

/// How far an application has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Txn {
    /// The application.
    pub app_id: String,
    /// Its own version.
    pub version: i64,
    /// Milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<i64>,
}

/// A named piece of metadata.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DomainMetadata {
    /// Its name.
    pub domain: String,
}

/// One line of a commit file: one of these.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Line {
    add: Option<Add>,
    remove: Option<Remove>,
    meta_data: Option<Metadata>,
    protocol: Option<Protocol>,
    txn: Option<Txn>,
    domain_metadata: Option<DomainMetadata>,
    commit_info: Option<Map<String, Value>>,
}

/// A commit file, parsed.
#[derive(Clone, Debug, Default)]
pub struct CommitFile {
    /// Files that come.
    pub adds: Vec<Add>,
    /// Files that go.
    pub removes: Vec<Remove>,
    /// New metadata.
    pub metadata: Option<Metadata>,
    /// New protocol.
    pub protocol: Option<Protocol>,
    /// Applications' progress.
    pub txns: Vec<Txn>,
    /// Domains that change.
    pub domains: Vec<String>,
    /// Who, what, how.
    pub info: Map<String, Value>,
    /// Size of its text in bytes.
    pub bytes: usize,
}

impl CommitFile {
    /// Parses a commit file; what is wrong with it, with the line's number, otherwise.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut commit = Self { bytes: text.len(), ..Self::default() };
        for (number, line) in text.split(|b| *b == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line: Line = serde_json::from_slice(line).map_err(|e| damage(number + 1, line, &e))?;
            commit.take(line);
        }
        Ok(commit)
    }

    /// Who, what, how, from a commit file that is damaged elsewhere.
    pub fn info_of_damaged(text: &[u8]) -> Map<String, Value> {
        let lines = text.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice::<Line>(l).ok());
        lines.filter_map(|l| l.commit_info).next_back().unwrap_or_default()
    }

    fn take(&mut self, line: Line) {
        self.adds.extend(line.add);
        self.removes.extend(line.remove);
        self.metadata = line.meta_data.or(self.metadata.take());
        self.protocol = line.protocol.or(self.protocol.take());
        self.txns.extend(line.txn);
        self.domains.extend(line.domain_metadata.map(|d| d.domain));
        if let Some(info) = line.commit_info {
            self.info = info;
        }
    }

    /// The transaction's id.
    pub fn transaction(&self) -> Option<&str> {
        self.info.get("txnId").and_then(Value::as_str)
    }

    /// The in-commit timestamp, milliseconds since the epoch.
    pub fn in_commit_timestamp(&self) -> Option<i64> {
        self.info.get("inCommitTimestamp").and_then(Value::as_i64)
    }

    /// The operation, `unknown operation` where the commit does not say.
    pub fn operation(&self) -> String {
        self.info.get("operation").and_then(Value::as_str).unwrap_or("unknown operation").to_owned()
    }
}

fn damage(number: usize, line: &[u8], error: &serde_json::Error) -> String {
    let start: String = String::from_utf8_lossy(line).chars().take(60).collect();
    let kind = if error.is_eof() { "is cut off" } else { "is broken JSON" };
    format!("line {number} {kind} ({error}); it begins with {start:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_actions_and_fields_are_ignored() {
        let commit = CommitFile::parse(
            b"{\"commitInfo\":{\"txnId\":\"a\",\"operation\":\"WRITE\"}}\n{\"novelty\":{\"x\":1}}\n\n\
              {\"add\":{\"path\":\"p\",\"partitionValues\":{\"a\":null},\"size\":1,\"modificationTime\":2,\"dataChange\":false,\"odd\":[1]}}",
        )
        .unwrap();
        assert_eq!(commit.transaction(), Some("a"));
        assert_eq!(commit.adds.len(), 1);
        assert!(!commit.adds[0].data_change);
    }

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let error = CommitFile::parse(text.as_bytes()).unwrap_err();
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn damage_is_told_with_its_line() {
        check("{}\n{\"add\":{\"path\":\"p", "line 2 is cut off");
        check("{}\nnonsense\n{}", "line 2 is broken JSON");
        check("{\"add\":{\"size\":1}}", "line 1 is broken JSON (missing field `path`");
    }
}
