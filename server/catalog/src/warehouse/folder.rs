//! Folders of a local warehouse: what is in them, which they are, moving them.
//!
//! Links are never followed below the root: a link could lead a name out of the warehouse, and would give one table two places.
//! All calls go to the blocking pool of the runtime.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use asof_storage::Error as StorageError;

use crate::error::{Error, Result};

/// The folder that makes a folder a Delta table.
pub(super) const DELTA_LOG: &str = "_delta_log";

/// What tells one folder from a later one at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    inode: (u64, u64),
    created: Option<SystemTime>,
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A folder.
    Folder(Identity),
    /// A symbolic link, to whatever.
    Link,
    /// A file, or something stranger.
    Other,
}

/// What lies at `path`; a link itself, not what it leads to.
pub(super) async fn look(path: &Path) -> Result<Found> {
    match tokio::fs::symlink_metadata(path).await {
        Ok(found) if found.is_dir() => Ok(Found::Folder(identity(&found))),
        Ok(found) if found.is_symlink() => Ok(Found::Link),
        Ok(_) => Ok(Found::Other),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Found::Nothing),
        Err(e) => Err(failed("looking at", path, e)),
    }
}

#[cfg(unix)]
fn identity(found: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity { inode: (found.dev(), found.ino()), created: found.created().ok() }
}

#[cfg(not(unix))]
fn identity(found: &std::fs::Metadata) -> Identity {
    Identity { inode: (0, 0), created: found.created().ok() }
}

/// Whether a folder is a table: it holds a `_delta_log` folder.
pub(super) async fn table(path: &Path) -> Result<Option<Identity>> {
    match look(&path.join(DELTA_LOG)).await? {
        Found::Folder(identity) => Ok(Some(identity)),
        Found::Nothing | Found::Link | Found::Other => Ok(None),
    }
}

/// Names of the folders in a folder, sorted, without links and without what is hidden (`.x`). Names that are not UTF-8 are left out: SQL
/// cannot spell them. Nothing when the folder is not there.
pub(super) async fn folders(path: &Path) -> Result<Vec<String>> {
    let mut entries = match tokio::fs::read_dir(path).await {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed("listing", path, e)),
    };
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(|e| failed("listing", path, e))? {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // An entry that went away in the meantime has no type: it is no folder either.
        if !name.starts_with('.') && entry.file_type().await.is_ok_and(|t| t.is_dir()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Makes a folder and its parents; `false` when it was there.
pub(super) async fn make(path: &Path) -> Result<bool> {
    if let Some(parent) = path.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(|e| failed("making", parent, e))?;
    }
    match tokio::fs::create_dir(path).await {
        Ok(()) => sync(path.parent()).await.map(|()| true),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(failed("making", path, e)),
    }
}

/// Makes a folder that only the server's own user may look into.
pub(super) async fn make_private(path: &Path) -> Result<()> {
    make(path).await?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        tokio::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).await.map_err(|e| failed("closing to others", path, e))?;
    }
    Ok(())
}

/// Moves a folder in one step; both parents are on disk when this returns. `false` when there is nothing to move.
pub(super) async fn rename(from: &Path, to: &Path) -> Result<bool> {
    if let Some(parent) = to.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(|e| failed("making", parent, e))?;
    }
    match tokio::fs::rename(from, to).await {
        Ok(()) => {
            sync(to.parent()).await?;
            sync(from.parent()).await?;
            Ok(true)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed("moving", from, e)),
    }
}

/// Removes an empty folder; `false` when it was not there.
pub(super) async fn remove_empty(path: &Path) -> Result<bool> {
    match tokio::fs::remove_dir(path).await {
        Ok(()) => sync(path.parent()).await.map(|()| true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed("removing", path, e)),
    }
}

/// A change of a folder's entries survives a power cut only when the folder is synced.
async fn sync(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder.map(Path::to_path_buf) else { return Ok(()) };
    let synced = tokio::task::spawn_blocking(move || match std::fs::File::open(&folder).and_then(|f| f.sync_all()) {
        Ok(()) => Ok(()),
        Err(e) => Err(failed("syncing to disk", &folder, e)),
    });
    synced.await.map_err(|e| Error::Storage(StorageError::Internal(format!("the sync was cut short: {e}"))))?
}

fn failed(action: &'static str, path: &Path, error: io::Error) -> Error {
    let path = path.display().to_string();
    let source = match error.kind() {
        io::ErrorKind::PermissionDenied => object_store::Error::PermissionDenied { path: path.clone(), source: Box::new(error) },
        _ => object_store::Error::Generic { store: "local", source: Box::new(error) },
    };
    Error::Storage(StorageError::Store { action, path, source })
}

/// The root as given, made absolute and made when absent; and the same with links on the way to it followed.
pub(super) fn open_root(given: &Path) -> Result<(PathBuf, PathBuf)> {
    std::fs::create_dir_all(given).map_err(|e| failed("making the warehouse", given, e))?;
    let absolute = std::path::absolute(given).map_err(|e| failed("finding the warehouse", given, e))?;
    let real = given.canonicalize().map_err(|e| failed("finding the warehouse", given, e))?;
    Ok((absolute, real))
}
