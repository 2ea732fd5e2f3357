//! Making what lies on a local disk survive a power cut.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use object_store::path::Path;

use crate::error::{Error, Result};

/// Syncs files, and every folder between the parent of the table's root and them (a new folder is an entry of its parent).
pub(super) async fn sync(root: &Path, paths: &[Path]) -> Result<()> {
    let files: Vec<PathBuf> = paths.iter().map(on_disk).collect();
    let top = on_disk(root).parent().map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let mut folders = BTreeSet::new();
    for file in &files {
        let mut folder = file.parent();
        while let Some(f) = folder.filter(|f| f.starts_with(&top)) {
            if !folders.insert(f.to_path_buf()) {
                break;
            }
            folder = f.parent();
        }
    }
    tokio::task::spawn_blocking(move || files.iter().chain(folders.iter()).try_for_each(sync_one))
        .await
        .map_err(|e| Error::Internal(format!("the sync was cut short: {e}")))?
}

/// Which of the files, given with the name to report, are not there.
pub(super) async fn missing(files: Vec<(String, Path)>) -> Result<Vec<String>> {
    let is_gone = |path: &Path| {
        on_disk(path).metadata().is_err_and(|e| e.kind() == io::ErrorKind::NotFound || e.kind() == io::ErrorKind::NotADirectory)
    };
    let look = move || files.into_iter().filter(|(_, path)| is_gone(path)).map(|(name, _)| name).collect();
    tokio::task::spawn_blocking(look).await.map_err(|e| Error::Internal(format!("looking for files was cut short: {e}")))
}

/// A local store is rooted at `/` and its paths are not encoded.
fn on_disk(path: &Path) -> PathBuf {
    PathBuf::from(format!("/{path}"))
}

fn sync_one(path: &PathBuf) -> Result<()> {
    std::fs::File::open(path).and_then(|f| f.sync_all()).map_err(|e| Error::Store {
        action: "syncing to disk",
        path: path.display().to_string(),
        source: object_store::Error::Generic { store: "local", source: Box::new(e) },
    })
}

/// Whether the operating system's refusal means that nothing was written: the local store makes an object visible by one link or rename, so an
/// error of the file system before it leaves no object.
pub(super) fn surely_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(e) = cause {
        if let Some(e) = e.downcast_ref::<io::Error>() {
            return !matches!(e.kind(), io::ErrorKind::TimedOut | io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock);
        }
        cause = e.source();
    }
    false
}
