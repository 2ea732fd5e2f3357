//! What commits write, what they refuse, and how they race.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use asof_storage::deletes;
use asof_storage::delta::DeltaTable;
use asof_storage::transaction::{NewMetadata, ReadPredicate, RowDeletes};
use asof_storage::{Change, CommitOutcome, Error, FileKey, HistoryRange, ReadSet, SnapshotSelector, TableFormat};
use roaring::RoaringTreemap;
use serde_json::json;

use crate::support::{Case, action, append, committed, create, files, latest, lines, open, operation, schema, stage, table_with_a};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_made_and_appended_to() {
    let (folder, table) = table_with_a(&[]).await;
    let root = folder.path().join("t");
    assert_eq!(
        action(&root, 0, "protocol"),
        json!({ "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["appendOnly", "deletionVectors", "invariants"] })
    );
    assert_eq!(action(&root, 0, "metaData")["configuration"], json!({ "delta.enableDeletionVectors": "true" }));
    let info = action(&root, 1, "commitInfo");
    assert_eq!(info["operation"], "WRITE");
    assert_eq!(info["readVersion"], 0);
    assert_eq!(info["isBlindAppend"], true);
    assert_eq!(info["isolationLevel"], "WriteSerializable");
    assert!(info["engineInfo"].as_str().unwrap().starts_with("asof/"));
    assert_ne!(info["txnId"], action(&root, 0, "commitInfo")["txnId"]);
    assert_eq!(files(&table).await.len(), 1);
    assert_eq!(files(&open(&root)).await, files(&table).await);
    let history = table.history(HistoryRange::default()).await.unwrap();
    assert_eq!(history.iter().map(|c| (c.version, c.readable)).collect::<Vec<_>>(), [(1, true), (0, true)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protocols_of_new_tables() {
    let check = async |properties: &[(&str, &str)], expect: serde_json::Value| {
        let folder = tempfile::tempdir().unwrap();
        let table = open(folder.path());
        committed(table.commit(None, create(properties)).await.unwrap());
        assert_eq!(action(folder.path(), 0, "protocol"), expect, "{properties:?}");
        let stored = action(folder.path(), 0, "metaData")["configuration"].clone();
        assert!(stored.as_object().unwrap().keys().all(|k| !k.starts_with("delta.feature.")));
        latest(&table).await;
    };
    let off = ("delta.enableDeletionVectors", "false");
    check(&[off], json!({ "minReaderVersion": 1, "minWriterVersion": 2 })).await;
    check(
        &[off, ("delta.columnMapping.mode", "name")],
        json!({ "minReaderVersion": 2, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "columnMapping", "invariants"] }),
    )
    .await;
    check(
        &[off, ("delta.enableChangeDataFeed", "true"), ("delta.enableInCommitTimestamps", "true"), ("delta.constraints.c", "id > 0")],
        json!({ "minReaderVersion": 1, "minWriterVersion": 7,
                "writerFeatures": ["appendOnly", "changeDataFeed", "checkConstraints", "inCommitTimestamp", "invariants"] }),
    )
    .await;
    check(
        &[("delta.feature.v2Checkpoint", "supported")],
        json!({ "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors", "v2Checkpoint"],
                "writerFeatures": ["appendOnly", "deletionVectors", "invariants", "v2Checkpoint"] }),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn column_mapping_is_given_once() {
    let folder = tempfile::tempdir().unwrap();
    let table = open(folder.path());
    committed(table.commit(None, create(&[("delta.columnMapping.mode", "name")])).await.unwrap());
    let first = latest(&table).await;
    let names = |s: &asof_storage::Snapshot| -> Vec<String> {
        s.schema.fields().iter().map(|f| f.metadata()["delta.columnMapping.physicalName"].clone()).collect()
    };
    assert!(names(&first).iter().all(|n| n.starts_with("col-")));
    let metadata = NewMetadata {
        schema: Arc::clone(&first.schema),
        partition_columns: Vec::new(),
        properties: first.properties.clone(),
        description: Some("told".into()),
    };
    let change = Change { operation: operation("SET TBLPROPERTIES"), metadata: Some(metadata), ..Change::default() };
    committed(table.commit(Some(&first), change).await.unwrap());
    let second = latest(&table).await;
    assert_eq!(names(&first), names(&second));
    assert_eq!(action(folder.path(), 0, "metaData")["id"], action(folder.path(), 1, "metaData")["id"]);
    assert_eq!(second.properties["delta.columnMapping.maxColumnId"], "2");
}

async fn delete_rows(table: &DeltaTable, path: &str, rows: &[u64]) -> Change {
    let file = files(table).await.into_iter().find(|f| f.path == path).unwrap();
    let mut all = match &file.deletion_vector {
        Some(vector) => deletes::load(table.store(), &*latest(table).await, vector).await.unwrap(),
        None => RoaringTreemap::new(),
    };
    all.extend(rows);
    let reads = ReadSet::Matching { files: vec![file.key()], predicate: Arc::new(Anything) };
    Change { operation: operation("DELETE"), deletes: vec![RowDeletes { file, rows: all }], reads, data_change: true, ..Change::default() }
}

#[derive(Debug)]
struct Anything;

impl ReadPredicate for Anything {
    fn may_match(&self, _: &BTreeMap<String, Option<String>>, _: Option<&str>) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_vectors_are_written_and_grow() {
    let (folder, table) = table_with_a(&[]).await;
    let root = folder.path().join("t");
    let change = delete_rows(&table, "a", &[1, 3]).await;
    committed(table.commit(Some(&latest(&table).await), change).await.unwrap());
    let change = delete_rows(&table, "a", &[4]).await;
    committed(table.commit(Some(&latest(&table).await), change).await.unwrap());
    let now = files(&table).await;
    let vector = now[0].deletion_vector.clone().unwrap();
    assert_eq!((now.len(), vector.cardinality), (1, 3));
    let rows = deletes::load(table.store(), &*latest(&table).await, &vector).await.unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), [1, 3, 4]);
    let add = action(&root, 3, "add");
    assert_eq!(
        add["stats"],
        "{\"maxValues\":{\"id\":10},\"minValues\":{\"id\":0},\"nullCount\":{\"id\":0},\"numRecords\":10,\"tightBounds\":false}"
    );
    assert!(action(&root, 3, "remove")["deletionVector"].is_object());
    let change = delete_rows(&table, "a", &[0, 2, 5, 6, 7, 8, 9]).await;
    committed(table.commit(Some(&latest(&table).await), change).await.unwrap());
    assert!(files(&table).await.is_empty());
    assert!(lines(&root, 4).iter().all(|l| l.get("add").is_none()));
    assert_eq!(files(&open(&root)).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_table_does_not_allow_is_refused() {
    let refused = async |properties: &[(&str, &str)], words: &str| {
        let (_folder, table) = table_with_a(properties).await;
        let change = delete_rows(&table, "a", &[1]).await;
        match table.commit(Some(&latest(&table).await), change).await {
            Err(error @ Error::Unsupported { .. }) => assert!(error.to_string().contains(words), "{error}"),
            other => panic!("{properties:?}: {other:?}"),
        }
        assert_eq!(latest(&table).await.version, 1);
    };
    refused(&[("delta.appendOnly", "true")], "append-only").await;
    refused(&[("delta.enableChangeDataFeed", "true")], "change data feed").await;
    refused(&[("delta.enableDeletionVectors", "false")], "deletion vectors off").await;
    for (case, words) in [("future_writer", "futureWriter"), ("optimize_cluster", "clustering")] {
        let case = Case::copy(case);
        let table = case.table();
        let file = stage(&table, "new", 1).await;
        match table.commit(Some(&latest(&table).await), append(file)).await {
            Err(error @ Error::Unsupported { .. }) => assert!(error.to_string().contains(words), "{error}"),
            other => panic!("{words}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_that_make_no_table() {
    use arrow::datatypes::{DataType, Field, Schema};
    let folder = tempfile::tempdir().unwrap();
    let table = open(folder.path());
    let refused = async |fields: Vec<Field>, partition: &[&str], words: &str| {
        let mut change = create(&[]);
        let metadata = change.metadata.as_mut().unwrap();
        metadata.schema = Arc::new(Schema::new(fields));
        metadata.partition_columns = partition.iter().map(|c| (*c).to_owned()).collect();
        let error = table.commit(None, change).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    let int = |name: &str| Field::new(name, DataType::Int32, true);
    refused(vec![], &[], "at least one column").await;
    refused(vec![int("a"), int("A")], &[], "twice").await;
    refused(vec![int("a b")], &[], "columnMapping").await;
    refused(vec![int("a")], &["b"], "not in the schema").await;
    refused(vec![int("a")], &["a"], "all columns").await;
    refused(vec![Field::new("u", DataType::UInt64, true)], &[], "UInt64").await;
    refused(vec![Field::new("n", DataType::Null, true)], &[], "no type").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_created_once() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (open(folder.path()), open(folder.path()));
    let (first, second) = tokio::join!(one.commit(None, create(&[])), two.commit(None, create(&[])));
    let outcomes = [first, second];
    assert_eq!(outcomes.iter().filter(|o| matches!(o, Ok(CommitOutcome::Committed { version: 0 }))).count(), 1);
    assert_eq!(outcomes.iter().filter(|o| matches!(o, Err(Error::AlreadyExists { .. }))).count(), 1);
}

/// Two writers, each with its own handle, append to one table: each acknowledged append is there once, versions are dense.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_appends_are_all_there() {
    let (folder, table) = table_with_a(&[("delta.checkpointInterval", "7")]).await;
    let root = folder.path().join("t");
    let writer = async |name: &str| {
        let table = open(&root);
        let mut versions = Vec::new();
        for i in 0..12 {
            let file = stage(&table, &format!("{name}{i}"), 1).await;
            let base = latest(&table).await;
            versions.push(committed(table.commit(Some(&base), append(file)).await.unwrap()));
        }
        table.settle().await;
        versions
    };
    let (one, two) = tokio::join!(writer("x"), writer("y"));
    let all: BTreeSet<i64> = one.iter().chain(&two).copied().collect();
    assert_eq!(all, (2..26).collect());
    let paths: BTreeSet<String> = files(&table).await.into_iter().map(|f| f.path).collect();
    assert_eq!(paths.len(), 25);
    assert_eq!(files(&open(&root)).await.len(), 25);
    assert!(root.join("_delta_log/00000000000000000014.checkpoint.parquet").is_file());
    assert!(root.join("_delta_log/_last_checkpoint").is_file());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_hold_the_table() {
    let (folder, table) = table_with_a(&[("delta.checkpointInterval", "3")]).await;
    let root = folder.path().join("t");
    let change = delete_rows(&table, "a", &[1]).await;
    committed(table.commit(Some(&latest(&table).await), change).await.unwrap());
    let file = stage(&table, "b", 5).await;
    committed(table.commit(Some(&latest(&table).await), append(file)).await.unwrap());
    table.settle().await;
    let before = files(&table).await;
    for version in 0..3 {
        std::fs::remove_file(root.join(format!("_delta_log/{version:020}.json"))).unwrap();
    }
    let fresh = open(&root);
    assert_eq!(files(&fresh).await, before);
    assert!(matches!(fresh.resolve(&SnapshotSelector::Version(2)).await, Err(Error::VersionNotFound { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_race_over_a_file_is_a_conflict() {
    let (_folder, table) = table_with_a(&[]).await;
    let base = latest(&table).await;
    let (first, second) = (delete_rows(&table, "a", &[1]).await, delete_rows(&table, "a", &[2]).await);
    committed(table.commit(Some(&base), first).await.unwrap());
    match table.commit(Some(&base), second).await.unwrap() {
        CommitOutcome::Conflict(conflict) => assert_eq!((conflict.with, conflict.operation.as_str()), (2, "DELETE")),
        CommitOutcome::Committed { version } => panic!("committed {version}"),
    }
    let file = stage(&table, "b", 1).await;
    assert_eq!(committed(table.commit(Some(&base), append(file)).await.unwrap()), 3);
    let alter = NewMetadata { schema: schema(), partition_columns: vec![], properties: base.properties.clone(), description: None };
    let alter = Change { operation: operation("SET TBLPROPERTIES"), metadata: Some(alter), ..Change::default() };
    committed(table.commit(Some(&latest(&table).await), alter).await.unwrap());
    let file = stage(&table, "c", 1).await;
    assert!(matches!(table.commit(Some(&base), append(file)).await.unwrap(), CommitOutcome::Conflict(c) if c.detail.contains("metadata")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_not_there_are_not_removed() {
    let (_folder, table) = table_with_a(&[]).await;
    let mut stranger = files(&table).await.remove(0);
    stranger.path = "elsewhere".into();
    let change =
        Change { operation: operation("DELETE"), removed: vec![stranger], reads: ReadSet::Table, data_change: true, ..Change::default() };
    let error = table.commit(Some(&latest(&table).await), change).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error}");
    let mut outside = stage(&table, "b", 1).await;
    outside.path = "../b".into();
    let error = table.commit(Some(&latest(&table).await), append(outside)).await.unwrap_err();
    assert!(error.to_string().contains("outside"), "{error}");
}

/// In-commit timestamps grow though the clock stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_commit_times_grow() {
    let (folder, table) = table_with_a(&[("delta.enableInCommitTimestamps", "true")]).await;
    let file = stage(&table, "b", 1).await;
    committed(table.commit(Some(&latest(&table).await), append(file)).await.unwrap());
    let at = |v| action(&folder.path().join("t"), v, "commitInfo")["inCommitTimestamp"].as_i64().unwrap();
    assert_eq!((at(1) - at(0), at(2) - at(1)), (1, 1));
    let found = table.resolve(&SnapshotSelector::Timestamp(asof_storage::Micros::from_millis(at(1)))).await.unwrap();
    assert_eq!((found.version, found.committed_at.millis()), (1, at(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_commit_times_turned_on_late() {
    let (folder, table) = table_with_a(&[]).await;
    let base = latest(&table).await;
    let mut properties = base.properties.clone();
    properties.insert("delta.enableInCommitTimestamps".into(), "true".into());
    let metadata = NewMetadata { schema: schema(), partition_columns: vec![], properties, description: None };
    let change = Change { operation: operation("SET TBLPROPERTIES"), metadata: Some(metadata), ..Change::default() };
    committed(table.commit(Some(&base), change).await.unwrap());
    let root = folder.path().join("t");
    let configuration = action(&root, 2, "metaData")["configuration"].clone();
    assert_eq!(configuration["delta.inCommitTimestampEnablementVersion"], "2");
    let at = action(&root, 2, "commitInfo")["inCommitTimestamp"].as_i64().unwrap();
    assert_eq!(configuration["delta.inCommitTimestampEnablementTimestamp"], at.to_string());
    assert!(action(&root, 2, "protocol")["writerFeatures"].as_array().unwrap().contains(&json!("inCommitTimestamp")));
}

/// A table dropped and made again at its path is seen as the new one, and old bases do not commit to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_made_again_is_another() {
    let (folder, table) = table_with_a(&[]).await;
    let old = latest(&table).await;
    assert_eq!(files(&table).await.len(), 1);
    let root = folder.path().join("t");
    std::fs::remove_dir_all(&root).unwrap();
    assert!(matches!(table.resolve(&SnapshotSelector::Latest).await, Err(Error::NotATable { .. })));
    committed(open(&root).commit(None, create(&[("k", "v")])).await.unwrap());
    let new = latest(&table).await;
    assert_eq!((new.version, new.properties.get("k").map(String::as_str)), (0, Some("v")));
    assert!(table.index(&new).await.unwrap().is_empty());
    let file = stage(&table, "b", 1).await;
    assert!(matches!(table.commit(Some(&old), append(file)).await, Ok(CommitOutcome::Conflict(c)) if c.detail.contains("made again")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_application_writes_a_version_once() {
    let (_folder, table) = table_with_a(&[]).await;
    let base = latest(&table).await;
    let with_txn = async |name: &str| {
        let mut change = append(stage(&table, name, 1).await);
        change.raw = vec![json!({ "txn": { "appId": "etl", "version": 1 } })];
        change
    };
    let (one, two) = (with_txn("x").await, with_txn("y").await);
    committed(table.commit(Some(&base), one).await.unwrap());
    assert!(matches!(table.commit(Some(&base), two).await, Ok(CommitOutcome::Conflict(c)) if c.detail.contains("etl")));
    let key = FileKey { path: "y".into(), deletion_vector: None };
    assert!(files(&table).await.iter().all(|f| f.key() != key));
}
