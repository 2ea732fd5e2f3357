//! From a path as the log writes it to a path of the store, never leaving the table.
//!
//! The log percent-encodes paths once on top of whatever the folder's own name holds: the folder `p=a%2Fb` is `p=a%252Fb` in the
//! log. A path is a URL reference: relative to the table, absolute in the same store, or a whole URL. It is decoded exactly once,
//! *then* judged, so `..%2F..%2Fx` is the same as `../../x`: outside.

use object_store::path::Path;
use percent_encoding::percent_decode_str;
use url::Url;

/// The path leads out of the table, or is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside;

/// See [`super::TableStore::data_path`].
pub(super) fn resolve(table: &Url, root: &Path, logged: &str) -> Result<Path, Outside> {
    let root = root.as_ref();
    if let Some(after_scheme) = scheme_length(logged).map(|n| &logged[n + 1..]) {
        let same_scheme = logged[..logged.len() - after_scheme.len() - 1].eq_ignore_ascii_case(table.scheme());
        let path = same_scheme.then(|| strip_authority(table, after_scheme)).flatten().ok_or(Outside)?;
        return within(root, &decode(path)?);
    }
    let decoded = decode(logged)?;
    if decoded.starts_with('/') {
        return within(root, &decoded);
    }
    plain(&decoded)?;
    parse(if root.is_empty() { decoded } else { format!("{root}/{decoded}") })
}

/// The length of a URL's scheme, when the text starts with one (`file:`, `s3:`); `p=a:b/c` does not.
fn scheme_length(text: &str) -> Option<usize> {
    let end = text.find(':')?;
    let scheme = &text.as_bytes()[..end];
    let letter = scheme.first().is_some_and(u8::is_ascii_alphabetic);
    (letter && scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))).then_some(end)
}

/// What follows the authority (`//host`), if it is the table's own.
fn strip_authority<'a>(table: &Url, after_scheme: &'a str) -> Option<&'a str> {
    let Some(rest) = after_scheme.strip_prefix("//") else {
        return after_scheme.starts_with('/').then_some(after_scheme);
    };
    let (host, path) = rest.split_at(rest.find('/')?);
    (host.is_empty() && table.scheme() == "file" || host == table.authority()).then_some(path)
}

fn decode(text: &str) -> Result<String, Outside> {
    percent_decode_str(text).decode_utf8().map(|s| s.into_owned()).map_err(|_| Outside)
}

/// An absolute path, if it lies below the table's root.
fn within(root: &str, absolute: &str) -> Result<Path, Outside> {
    let path = absolute.trim_start_matches('/');
    let below = match path.strip_prefix(root) {
        Some(rest) if root.is_empty() => rest,
        Some(rest) => rest.strip_prefix('/').ok_or(Outside)?,
        None => return Err(Outside),
    };
    plain(below)?;
    parse(path.to_owned())
}

/// No empty, `.` or `..` segment, no control characters.
fn plain(path: &str) -> Result<(), Outside> {
    let legal = |segment: &str| !matches!(segment, "" | "." | "..") && !segment.chars().any(|c| c.is_ascii_control());
    path.split('/').all(legal).then_some(()).ok_or(Outside)
}

fn parse(path: String) -> Result<Path, Outside> {
    Path::parse(path).map_err(|_| Outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(logged: &str, expect: Option<&str>) {
        let table = Url::parse("file:///w/main/t/").unwrap();
        let found = resolve(&table, &Path::parse("w/main/t").unwrap(), logged);
        assert_eq!(found.as_ref().map(AsRef::as_ref).ok(), expect, "{logged}");
    }

    #[test]
    fn names_are_decoded_once() {
        check("part-0.parquet", Some("w/main/t/part-0.parquet"));
        check("p=a%252Fb/x.parquet", Some("w/main/t/p=a%2Fb/x.parquet"));
        check("p=a%2Fb/x.parquet", Some("w/main/t/p=a/b/x.parquet"));
        check("p=a%20b/%70art.parquet", Some("w/main/t/p=a b/part.parquet"));
        check("p=a b/x.parquet", Some("w/main/t/p=a b/x.parquet"));
        check("p=ü:1/x.parquet", Some("w/main/t/p=ü:1/x.parquet"));
        check("p=100%25/x", Some("w/main/t/p=100%/x"));
    }

    #[test]
    fn absolute_paths_below_the_table_are_its_own() {
        check("file:///w/main/t/x.parquet", Some("w/main/t/x.parquet"));
        check("file:/w/main/t/x.parquet", Some("w/main/t/x.parquet"));
        check("/w/main/t/x.parquet", Some("w/main/t/x.parquet"));
    }

    #[test]
    fn what_leaves_the_table_is_refused() {
        for outside in [
            "../../secret.parquet",
            "..%2F..%2Fsecret.parquet",
            "a/../../secret.parquet",
            "a/%2E%2E/b",
            "file:///etc/hostname",
            "file:///w/main/t2/x",
            "file:///w/main/t/../t2/x",
            "file://elsewhere/w/main/t/x",
            "/etc/hostname",
            "//etc/hostname",
            "s3://w/main/t/x",
            "http://169.254.169.254/latest",
            "",
            ".",
            "a//b",
            "a%00b",
            "%ff",
        ] {
            check(outside, None);
        }
    }
}
