//! Path identifiers: ``delta.`Tables/x` ``, ``delta.`/srv/warehouse/Tables/x` ``, ``delta.`file:///srv/warehouse/Tables/x` ``.
//!
//! Whatever is typed becomes the names of folders from the warehouse's root down, or is refused. Purely textual: whether a link lies on the
//! way is asked of the file system afterwards.

use std::path::{Component, Path};

use url::Url;

use crate::error::{Error, Result};

/// Longest path identifier, in bytes.
const LONGEST: usize = 4096;

/// Folder names from the root to what `given` names. `roots` are the spellings of the root that an absolute path may begin with.
///
/// # Errors
/// `InvalidName` when it is empty, holds `..`, has a scheme other than `file`, lies outside the warehouse or in the server's own folder.
pub(super) fn segments(given: &str, roots: &[&Path]) -> Result<Vec<String>> {
    if given.len() > LONGEST {
        return Err(Error::InvalidName(format!("a path of {} bytes is too long: {LONGEST} are the most", given.len())));
    }
    let refuse =
        |why: String| Error::InvalidName(format!("path {given:?} {why}; paths are relative to the warehouse, or absolute inside it"));
    if given.trim().is_empty() {
        return Err(refuse("is empty".to_owned()));
    }
    if given.split(['/', '\\']).any(|s| s == ".." || s.eq_ignore_ascii_case("%2e%2e")) {
        return Err(refuse("holds `..`, which is refused".to_owned()));
    }
    if let Some(c) = given.chars().find(|c| c.is_control()) {
        return Err(refuse(format!("holds the character {c:?}")));
    }
    let inside = match scheme(given) {
        Some("file") => {
            let path = Url::parse(given).ok().and_then(|url| url.to_file_path().ok());
            let path = path.ok_or_else(|| refuse("is no file URL".to_owned()))?;
            under(&path, roots).ok_or_else(|| refuse("lies outside the warehouse".to_owned()))?
        }
        Some(scheme) => return Err(refuse(format!("has the scheme {scheme:?} and lies outside the warehouse"))),
        None if given.starts_with('/') => under(Path::new(given), roots).ok_or_else(|| refuse("lies outside the warehouse".to_owned()))?,
        None => names(Path::new(given)).ok_or_else(|| refuse("is no path".to_owned()))?,
    };
    match inside.first() {
        Some(first) if first == super::OWN_FOLDER => Err(refuse("lies in the server's own folder".to_owned())),
        _ => Ok(inside),
    }
}

/// `scheme` of `scheme:…`, when there is one (a single letter is a drive, a path with a colon further on is a path).
fn scheme(given: &str) -> Option<&str> {
    let (scheme, _) = given.split_once(':')?;
    let letters = scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (scheme.len() > 1 && letters && scheme.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(scheme)
}

fn under(path: &Path, roots: &[&Path]) -> Option<Vec<String>> {
    roots.iter().find_map(|root| path.strip_prefix(root).ok()).and_then(names)
}

/// The names of a path's parts; nothing when it is not made of plain names.
fn names(path: &Path) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?.to_owned()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_folder_names_or_are_refused() {
        fn check(given: &str, expect: Option<&[&str]>) {
            let roots = [Path::new("/srv/warehouse"), Path::new("/mnt/disk1/warehouse")];
            let got = segments(given, &roots);
            match expect {
                Some(names) => assert_eq!(got.unwrap(), names, "{given}"),
                None => assert!(matches!(got, Err(Error::InvalidName(_))), "{given}: {got:?}"),
            }
        }
        check("Tables/x", Some(&["Tables", "x"]));
        check("./Tables//x/", Some(&["Tables", "x"]));
        check("a b/주문", Some(&["a b", "주문"]));
        check(".", Some(&[]));
        check("/srv/warehouse/Tables/x", Some(&["Tables", "x"]));
        check("/mnt/disk1/warehouse/x", Some(&["x"]));
        check("file:///srv/warehouse/a%20b", Some(&["a b"]));
        check("x:y", Some(&["x:y"]));
        check("xy:z", None);
        check("odd name:1", Some(&["odd name:1"]));
        check("", None);
        check("  ", None);
        check("..", None);
        check("a/../../etc", None);
        check("a\\..\\b", None);
        check("file:///srv/warehouse/../../etc", None);
        check("file:///srv/warehouse/%2e%2e/etc", None);
        check("/etc", None);
        check("/srv/warehouse2/x", None);
        check("/srv", None);
        check("s3://bucket/x", None);
        check("http://169.254.169.254/latest", None);
        check("_asof/dropped/main/t", None);
        check("./_asof/keys", None);
        check("a\0b", None);
        check(&"x/".repeat(4000), None);
    }
}
