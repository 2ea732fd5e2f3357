//! RESTORE against what Spark's RESTORE did to the same tables.

use std::collections::BTreeSet;

use asof_storage::{Error, FileKey, SnapshotSelector, TableFormat};

use crate::support::{Case, action, committed, files, latest, open};

/// Every RESTORE in the golden histories: from the version before it, to the version it names; the same files and metrics.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_spark_restores() {
    let mut done = 0;
    for name in ["dv", "replace", "seed_001a_cities", "seed_003_gold_sales", "constraints"] {
        let case = Case::copy(name);
        let table = case.table();
        for commit in table.history(asof_storage::HistoryRange::default()).await.unwrap() {
            let parameters = commit.operation_parameters.clone().unwrap_or_default();
            let (Some("RESTORE"), Some(Some(target))) = (commit.operation.as_deref(), parameters.get("version")) else { continue };
            let at = async |v: i64| table.resolve(&SnapshotSelector::Version(v)).await.unwrap();
            let (base, target, after) = (at(commit.version - 1).await, at(target.parse().unwrap()).await, at(commit.version).await);
            let change = table.restore(&base, &target).await.unwrap();
            let ours: std::collections::BTreeMap<_, _> =
                change.operation.metrics.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect();
            assert_eq!(Some(ours), commit.operation_metrics, "{name} {}", commit.version);
            let keys = async |s| -> BTreeSet<FileKey> { table.index(s).await.unwrap().files().map(|f| f.key()).collect() };
            assert_eq!(keys(&target).await, keys(&after).await, "{name} {}", commit.version);
            done += 1;
        }
    }
    assert!(done >= 7, "only {done}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_tables_are_what_they_were() {
    for (name, version) in
        [("dv", 5), ("replace", 1), ("seed_001a_cities", 0), ("mapping_name", 4), ("constraints", 3), ("type_widening", 6)]
    {
        let case = Case::copy(name);
        let table = case.table();
        let target = table.resolve(&SnapshotSelector::Version(version)).await.unwrap();
        let base = latest(&table).await;
        let change = table.restore(&base, &target).await.unwrap();
        let restored = committed(table.commit(Some(&base), change).await.unwrap());
        assert_eq!(restored, base.version + 1);
        for table in [table.clone(), open(&case.path(""))] {
            let now = latest(&table).await;
            let mut then: Vec<_> = table.index(&target).await.unwrap().files().collect();
            then.sort_by(|a, b| a.path.cmp(&b.path));
            assert_eq!(files(&table).await, then, "{name}");
            assert_eq!(now.schema.fields().len(), target.schema.fields().len(), "{name}");
            assert_eq!(now.partition_columns, target.partition_columns, "{name}");
        }
        assert_eq!(action(&case.path(""), restored, "commitInfo")["operation"], "RESTORE");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_to_files_that_are_gone_is_refused() {
    let case = Case::copy("vacuumed");
    let table = case.table();
    let target = table.resolve(&SnapshotSelector::Version(2)).await.unwrap();
    let error = table.restore(&latest(&table).await, &target).await.unwrap_err();
    assert!(matches!(error, Error::FileGone { version: 2, .. }), "{error}");
    for file in ["part-00000-089ff0d2-0398-4d1b-9c04-8956874f1967-c000", "part-00000-821d09fe-f1bc-4085-a20c-3e336ae9f095-c000"] {
        assert!(error.to_string().contains(file), "{error}");
    }
}

/// A table whose latest version lost a file can still be put back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_table_is_put_back() {
    let case = Case::copy("malformed/missing_file");
    let table = case.table();
    let target = table.resolve(&SnapshotSelector::Version(1)).await.unwrap();
    let base = latest(&table).await;
    let change = table.restore(&base, &target).await.unwrap();
    committed(table.commit(Some(&base), change).await.unwrap());
    assert_eq!(files(&table).await.len(), 1);
}

/// A version that was read, and so found whole, may have been vacuumed since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_looks_again() {
    let mut refused = 0;
    for name in ["delta_rs_dml", "replace", "dv", "optimize_zorder"] {
        let case = Case::copy(name);
        let table = case.table();
        let now = files(&table).await;
        let target = table.resolve(&SnapshotSelector::Version(1)).await.unwrap();
        let then: Vec<_> = table.index(&target).await.unwrap().files().collect();
        let lost: Vec<_> = then.iter().filter(|file| now.iter().all(|n| n.path != file.path)).collect();
        for file in &lost {
            std::fs::remove_file(case.path(&file.path)).unwrap();
        }
        let restored = table.restore(&latest(&table).await, &target).await;
        if !lost.is_empty() {
            assert!(matches!(restored, Err(Error::FileGone { version: 1, .. })), "{name}: {restored:?}");
            refused += 1;
        }
    }
    assert!(refused > 1);
}
