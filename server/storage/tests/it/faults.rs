//! Stores that fail: answers that are lost, reads that break, writers that die between staging and commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use asof_storage::delta::DeltaTable;
use asof_storage::object::TableStore;
use asof_storage::object::fault::{Fault, FaultyStore, Operation};
use asof_storage::{CommitOutcome, Error, TableFormat};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use proptest::prelude::*;
use tempfile::TempDir;
use url::Url;

use crate::support::{append, committed, create, files, latest, open, open_store, stage, table_with_a};

/// The table in `folder` over a store with faults.
fn faulty(folder: &TempDir, mut plan: impl FnMut(Operation, &str) -> Fault + Send + 'static) -> DeltaTable {
    let plan = move |operation, path: &Path| plan(operation, path.as_ref());
    let objects = Arc::new(FaultyStore::new(Arc::new(LocalFileSystem::new()), Box::new(plan)));
    let url = Url::from_directory_path(folder.path().join("t")).unwrap();
    open_store(TableStore::over(objects, url).unwrap())
}

fn is_commit(path: &str) -> bool {
    path.contains("_delta_log/0") && path.ends_with(".json")
}

/// Puts of commit files fail in order; afterwards all is well.
fn commits_fail(folder: &TempDir, faults: &'static [Fault]) -> DeltaTable {
    let next = AtomicUsize::new(0);
    faulty(folder, move |operation, path| {
        if operation != Operation::Put || !is_commit(path) {
            return Fault::None;
        }
        faults.get(next.fetch_add(1, Ordering::SeqCst)).copied().unwrap_or(Fault::None)
    })
}

async fn append_over(table: &DeltaTable) -> asof_storage::Result<CommitOutcome> {
    let file = stage(table, "b", 1).await;
    let base = latest(table).await;
    table.commit(Some(&base), append(file)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_commits_once() {
    const PLANS: [&[Fault]; 4] = [
        &[Fault::AnswerLost],
        &[Fault::Refused],
        &[Fault::Refused, Fault::AnswerLost],
        &[Fault::Refused, Fault::Refused, Fault::Refused, Fault::AnswerLost],
    ];
    for plan in PLANS {
        let (folder, _) = table_with_a(&[]).await;
        let table = commits_fail(&folder, plan);
        assert_eq!(committed(append_over(&table).await.unwrap()), 2, "{plan:?}");
        let clean = open(&folder.path().join("t"));
        assert_eq!((latest(&clean).await.version, files(&clean).await.len()), (2, 2), "{plan:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_of_a_creation() {
    let folder = tempfile::tempdir().unwrap();
    let table = commits_fail(&folder, &[Fault::AnswerLost]);
    assert_eq!(committed(table.commit(None, create(&[])).await.unwrap()), 0);
}

/// The put's answer is lost and the store cannot be read either: the outcome is unknown, and says which transaction to look for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_stays_lost_is_unknown() {
    let (folder, _) = table_with_a(&[]).await;
    let table = faulty(&folder, |operation, path| match operation {
        Operation::Put if is_commit(path) => Fault::AnswerLost,
        Operation::Get if path.ends_with("00000000000000000002.json") && std::path::Path::new(&format!("/{path}")).exists() => {
            Fault::Refused
        }
        _ => Fault::None,
    });
    match append_over(&table).await {
        Err(Error::UnknownOutcome { version: 2, .. } | Error::Store { .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// Dying between staging and commit leaves nothing to see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_only_staged_is_not_there() {
    let (folder, table) = table_with_a(&[]).await;
    stage(&table, "orphan", 1).await;
    let dead = faulty(&folder, |operation, path| if operation == Operation::Put && is_commit(path) { Fault::Refused } else { Fault::None });
    let file = stage(&dead, "b", 1).await;
    let base = latest(&dead).await;
    let dying = tokio::spawn(async move { dead.commit(Some(&base), append(file)).await });
    tokio::task::yield_now().await;
    dying.abort();
    let _ = dying.await;
    assert_eq!((latest(&table).await.version, files(&table).await.len()), (1, 1));
    let file = stage(&table, "c", 1).await;
    assert_eq!(committed(table.commit(Some(&latest(&table).await), append(file)).await.unwrap()), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_checkpoint_fails_no_commit() {
    let (folder, _) = table_with_a(&[("delta.checkpointInterval", "2")]).await;
    let table = faulty(&folder, |operation, path| match operation {
        Operation::Put if path.contains("checkpoint") => Fault::Refused,
        _ => Fault::None,
    });
    assert_eq!(committed(append_over(&table).await.unwrap()), 2);
    table.settle().await;
    assert_eq!(files(&open(&folder.path().join("t"))).await.len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the store does to the commits of two writers, each acknowledged append is there once, and no other.
    #[test]
    fn acknowledged_appends_are_there_once(faults in prop::collection::vec(0_u8..6, 0..24)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let (folder, _) = table_with_a(&[]).await;
            let faults: &'static [Fault] = faults.iter().map(|f| match f {
                0 => Fault::Refused,
                1 => Fault::AnswerLost,
                _ => Fault::None,
            }).collect::<Vec<_>>().leak();
            let write = async |name: &str| {
                let table = commits_fail(&folder, faults);
                let mut acknowledged = 0;
                for i in 0..4 {
                    let file = stage(&table, &format!("{name}{i}"), 1).await;
                    let base = latest(&table).await;
                    if let Ok(CommitOutcome::Committed { .. }) = table.commit(Some(&base), append(file)).await {
                        acknowledged += 1;
                    }
                }
                acknowledged
            };
            let (one, two) = tokio::join!(write("x"), write("y"));
            let clean = open(&folder.path().join("t"));
            let found = files(&clean).await;
            assert_eq!(found.len(), 1 + one + two);
            assert_eq!(usize::try_from(latest(&clean).await.version).unwrap(), 1 + one + two);
        });
    }
}
