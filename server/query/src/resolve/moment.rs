//! Text that names a moment.
//!
//! `2026-05-06`, `2026-5-6`, `2026-05-06 12:30`, `2026-05-06T12:30:15.25`, each also with `Z`, `+02:00`, `+0200`, `UTC` or a zone's
//! name behind it. Without an offset the text is read in the session's time zone. More than six decimals are cut.

use asof_storage::Micros;
use chrono::{FixedOffset, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone};
use chrono_tz::Tz;

/// A session's or a text's zone.
enum Zone {
    Fixed(FixedOffset),
    Named(Tz),
}

impl Zone {
    fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("gmt") {
            return Some(Self::Fixed(chrono::Utc.fix()));
        }
        if let Some(offset) = offset(text) {
            return Some(Self::Fixed(offset));
        }
        text.parse().ok().map(Self::Named)
    }

    fn instant(&self, local: NaiveDateTime) -> Option<i64> {
        let micros = |result: LocalResult<i64>| match result {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at),
            LocalResult::None => None,
        };
        match self {
            Self::Fixed(zone) => micros(zone.from_local_datetime(&local).map(|t| t.timestamp_micros())),
            Self::Named(zone) => micros(zone.from_local_datetime(&local).map(|t| t.timestamp_micros())),
        }
    }
}

/// `+02:00`, `+0200`, `+02`, `+2:00`, also with `-`.
fn offset(text: &str) -> Option<FixedOffset> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some((h, m)) => (h, m),
        None if rest.len() == 4 => rest.split_at(2),
        None => (rest, "0"),
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    FixedOffset::east_opt(sign * (hours * 3600 + minutes * 60))
}

/// A moment from text; `zone` is the session's.
///
/// # Errors
/// In words, with the text and what would be understood.
pub fn parse_moment(text: &str, zone: &str) -> Result<Micros, String> {
    let unclear = || {
        format!(
            "{text:?} is no moment: write it as '2026-05-06 12:30:15.250', with an offset or a zone's name behind it if it is not in the session's time zone {zone}"
        )
    };
    let trimmed = text.trim();
    let (local, rest) = local_time(trimmed).ok_or_else(unclear)?;
    let rest = rest.trim();
    let zone = Zone::parse(if rest.is_empty() { zone } else { rest }).ok_or_else(unclear)?;
    zone.instant(local).map(Micros).ok_or_else(|| format!("{text:?} did not happen: the clocks were put forward then"))
}

/// A wall-clock time (microseconds since 1970 as if in UTC) in the session's time zone.
pub(super) fn wall_clock(micros: i64, zone: &str) -> Result<Micros, String> {
    let local = chrono::DateTime::from_timestamp_micros(micros).ok_or_else(|| format!("{micros} µs is out of range"))?.naive_utc();
    let zone = Zone::parse(zone).ok_or_else(|| format!("{zone:?} is no time zone"))?;
    zone.instant(local).map(Micros).ok_or_else(|| format!("{local} did not happen: the clocks were put forward then"))
}

/// Delta's path suffix `yyyyMMddHHmmssSSS` in the session's time zone.
pub(super) fn compact_moment(digits: &str, zone: &str) -> Result<Micros, String> {
    let unclear = || format!("@{digits} is no moment: write it as @yyyyMMddHHmmssSSS");
    let (to_seconds, millis) = digits.split_at_checked(14).filter(|(_, ms)| ms.len() == 3).ok_or_else(unclear)?;
    let local = NaiveDateTime::parse_from_str(to_seconds, "%Y%m%d%H%M%S").map_err(|_| unclear())?;
    let millis: i64 = millis.parse().map_err(|_| unclear())?;
    wall_clock(local.and_utc().timestamp_micros() + millis * 1000, zone)
}

/// The date and time at the start of a text, and what is left.
fn local_time(text: &str) -> Option<(NaiveDateTime, &str)> {
    let (date, rest) = NaiveDate::parse_and_remainder(text, "%Y-%m-%d").ok()?;
    let after = rest.strip_prefix(['T', 't', ' ']).filter(|r| r.starts_with(|c: char| c.is_ascii_digit()));
    let Some(after) = after else { return Some((date.and_time(NaiveTime::MIN), rest)) };
    let formats = ["%H:%M:%S%.f", "%H:%M"];
    let (time, rest) = formats.iter().find_map(|format| NaiveTime::parse_and_remainder(after, format).ok())?;
    Some((date.and_time(time), rest))
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
        check("2026-05-06 12:30", "UTC", "2026-05-06T12:30:00Z");
        check(" 2026-05-06 12:30:15.25 ", "UTC", "2026-05-06T12:30:15.250Z");
        check("2026-05-06T12:30:15.250001", "UTC", "2026-05-06T12:30:15.250001Z");
        check("2026-05-05T00:00:00Z", "Asia/Kolkata", "2026-05-05T00:00:00Z");
        check("2024-06-26T14:34:53+02:00", "UTC", "2024-06-26T12:34:53Z");
        check("2026-05-05 00:00:00 America/New_York", "UTC", "2026-05-05T04:00:00Z");
        check("2026-05-05 Asia/Tokyo", "UTC", "2026-05-04T15:00:00Z");
        check("2026-05-05 00:00:00-0330", "UTC", "2026-05-05T03:30:00Z");
    }

    #[test]
    fn no_moments() {
        check("yesterday", "UTC", "\"yesterday\" is no moment");
        check("2026-13-45", "UTC", "2026-13-45");
        check("", "UTC", "is no moment");
        check("2026-05-05 25:00:00", "UTC", "is no moment");
        check("2026-05-05 00:00:00 Mars/Base", "UTC", "is no moment");
        check("2026-03-29 02:30:00", "Europe/Berlin", "did not happen");
    }

    #[test]
    fn compact() {
        assert_eq!(compact_moment("20260506123015250", "UTC").unwrap().to_string(), "2026-05-06T12:30:15.250Z");
        assert!(compact_moment("2026", "UTC").is_err());
        assert!(compact_moment("99999999999999999", "UTC").is_err());
    }
}
