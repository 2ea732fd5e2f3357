//! Text that names a moment in a selector.
//!
//! It is read as every other timestamp of a statement is ([`crate::functions::instant`]), so that a selector and a cast never disagree:
//! without an offset or a zone's name of its own, in the session's time zone. Here are only the words for what is no moment.

use asof_storage::Micros;

use crate::functions::instant::{self, Zone};

fn zone(name: &str) -> Result<Zone, String> {
    Zone::parse(name).ok_or_else(|| format!("the session's time zone {name:?} is unknown: SET time_zone to a zone's name or an offset"))
}

/// A moment from text; `zone` is the session's.
///
/// # Errors
/// In words, with the text and what would be understood.
pub fn parse_moment(text: &str, zone: &str) -> Result<Micros, String> {
    let unclear = || {
        format!(
            "{text:?} is no moment: write it as '2026-05-06 12:30:15.250', with an offset or a zone's name behind it \
             if it is not in the session's time zone {zone}"
        )
    };
    instant::parse(text, self::zone(zone)?).map(Micros).ok_or_else(unclear)
}

/// A wall-clock time (microseconds since 1970 as if in UTC) in the session's time zone.
pub(super) fn wall_clock(micros: i64, zone: &str) -> Result<Micros, String> {
    let local = chrono::DateTime::from_timestamp_micros(micros).map(|at| at.naive_utc());
    let zone = self::zone(zone)?;
    local.and_then(|local| zone.instant(local)).map(Micros).ok_or_else(|| format!("{micros} µs after 1970 is out of range"))
}

/// Delta's path suffix `yyyyMMddHHmmssSSS` in the session's time zone.
pub(super) fn compact_moment(digits: &str, zone: &str) -> Result<Micros, String> {
    instant::parse_compact(digits, self::zone(zone)?)
        .map(Micros)
        .ok_or_else(|| format!("@{digits} is no moment: write it as @yyyyMMddHHmmssSSS"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, zone: &str, expect: &str) {
        let got = parse_moment(text, zone).map(|m| m.to_string()).unwrap_or_else(|e| e);
        assert!(got.contains(expect), "{text} in {zone}: {got}, not {expect}");
    }

    #[test]
    fn spellings() {
        check("2026-05-06", "UTC", "2026-05-06T00:00:00Z");
        check("2026-5-5", "UTC", "2026-05-05T00:00:00Z");
        check("2026-05-06", "Asia/Kolkata", "2026-05-05T18:30:00Z");
        check(" 2026-05-06 12:30:15.25 ", "UTC", "2026-05-06T12:30:15.250Z");
        check("2026-05-05T00:00:00Z", "Asia/Kolkata", "2026-05-05T00:00:00Z");
        check("2026-05-05 00:00:00 America/New_York", "UTC", "2026-05-05T04:00:00Z");
        check("2026-05-05 00:00:00-0330", "UTC", "2026-05-05T03:30:00Z");
        // A time that the clock skips counts by the offset from before, as in a cast.
        check("2026-03-29 02:30:00", "Europe/Berlin", "2026-03-29T01:30:00Z");
    }

    #[test]
    fn no_moments() {
        check("yesterday", "UTC", "\"yesterday\" is no moment");
        check("2026-13-45", "UTC", "2026-13-45");
        check("", "UTC", "is no moment");
        check("2026-05-05 25:00:00", "UTC", "is no moment");
        check("2026-05-05 00:00:00 Mars/Base", "UTC", "is no moment");
        check("2026-05-05", "Mars/Base", "time zone");
    }

    #[test]
    fn compact() {
        assert_eq!(compact_moment("20260506123015250", "UTC").unwrap().to_string(), "2026-05-06T12:30:15.250Z");
        assert!(compact_moment("2026", "UTC").is_err());
        assert!(compact_moment("99999999999999999", "UTC").is_err());
    }
}
