//! Golden tables: written by other engines, with recorded answers.
//!
//! Delta dates versions by the modification times of its commit files, and a checkout loses those. So a table is always copied, and
//! the times are set as its `case.json` tells.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// Where the golden Delta tables lie.
///
/// # Errors
/// As [`crate::folder`].
pub fn root() -> io::Result<PathBuf> {
    Ok(crate::folder()?.join("golden/delta"))
}

/// Copies a table into `<warehouse>/<schema>/<table>`, where `case` is its folder below [`root`] and its last part the table's name.
///
/// # Errors
/// What the file system says, or a `case.json` that is not as its README tells.
pub fn copy(case: &str, warehouse: &Path, schema: &str) -> io::Result<PathBuf> {
    let source = root()?.join(case);
    let name = source.file_name().ok_or_else(|| io::Error::other(format!("`{case}` names no case")))?;
    let target = warehouse.join(schema).join(name);
    copy_folder(&source.join("table"), &target)?;
    let told: Value = serde_json::from_str(&fs::read_to_string(source.join("case.json"))?)?;
    let times = told["mtimes"].as_object().ok_or_else(|| io::Error::other(format!("{case}/case.json has no mtimes")))?;
    for (path, milliseconds) in times {
        let milliseconds = milliseconds.as_u64().ok_or_else(|| io::Error::other(format!("{case}: {path} has no time")))?;
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
        fs::File::options().append(true).open(target.join(path))?.set_modified(time)?;
    }
    Ok(target)
}

fn copy_folder(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            // Not fs::copy: the copy must be writable though the original may not be.
            fs::write(to, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
