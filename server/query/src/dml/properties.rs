//! Properties of a table that mean something to those who read and write it: what they may be set to, and which are not set by hand.

use std::collections::BTreeMap;

use super::invalid;
use crate::error::Result;
use crate::write::rules::CONSTRAINTS;

const MAPPING_MODE: &str = "delta.columnMapping.mode";

/// Properties that are true or false.
const SWITCHES: [&str; 6] = [
    "delta.appendOnly",
    "delta.enableChangeDataFeed",
    "delta.enableDeletionVectors",
    "delta.enableInCommitTimestamps",
    "delta.enableRowTracking",
    "delta.enableTypeWidening",
];

/// Properties that keep account of something.
const KEPT: [&str; 3] =
    ["delta.columnMapping.maxColumnId", "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"];

/// Whether a table with these properties may get this one.
pub(super) fn check_change(now: &BTreeMap<String, String>, key: &str, value: &str) -> Result<()> {
    if key.starts_with(CONSTRAINTS) {
        return Err(invalid(format!("{key} is a constraint: write ALTER TABLE … ADD CONSTRAINT, which looks at the rows that are there")));
    }
    if KEPT.contains(&key) {
        return Err(invalid(format!("{key} keeps account of something and cannot be set")));
    }
    if SWITCHES.contains(&key) && !["true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word)) {
        return Err(invalid(format!("{key} is true or false, not {value:?}")));
    }
    let mode = now.get(MAPPING_MODE).map_or("none", String::as_str);
    if key == MAPPING_MODE && mode != value && !(mode == "none" && value == "name") {
        return Err(invalid(format!(
            "{MAPPING_MODE} of a table that has files goes from none to name only (it is {mode}): the files would have to be written again"
        )));
    }
    Ok(())
}

/// Whether this property may be taken away.
pub(super) fn check_removal(key: &str) -> Result<()> {
    if key.starts_with(CONSTRAINTS) {
        return Err(invalid(format!("{key} is a constraint: write ALTER TABLE … DROP CONSTRAINT")));
    }
    if KEPT.contains(&key) || key == MAPPING_MODE {
        return Err(invalid(format!("{key} says how the files that are there are read, and cannot be taken away")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_set() {
        let check = |now: &[(&str, &str)], key: &str, value: &str, expect: Option<&str>| {
            let now = now.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            match (check_change(&now, key, value), expect) {
                (Ok(()), None) => {}
                (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{error}"),
                (result, expect) => panic!("{key} = {value}: {result:?}, expected {expect:?}"),
            }
        };
        check(&[], "delta.appendOnly", "TRUE", None);
        check(&[], "delta.appendOnly", "yes", Some("true or false"));
        check(&[], "owner", "anyone", None);
        check(&[], MAPPING_MODE, "name", None);
        check(&[(MAPPING_MODE, "name")], MAPPING_MODE, "name", None);
        check(&[], MAPPING_MODE, "id", Some("none to name"));
        check(&[(MAPPING_MODE, "name")], MAPPING_MODE, "none", Some("it is name"));
        check(&[], "delta.constraints.c", "a > 0", Some("ADD CONSTRAINT"));
        check(&[], "delta.columnMapping.maxColumnId", "7", Some("cannot be set"));
        assert!(check_removal(MAPPING_MODE).is_err());
        assert!(check_removal("owner").is_ok());
    }
}
