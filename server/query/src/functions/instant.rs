//! Moments and dates in text, as Spark reads them, and zones by name.
//!
//! `[+-]y…-[m]m-[d]d`, then optionally `T` or a blank and `[h]h:[m]m[:[s]s[.f…]]`, then optionally a zone: `Z`, `±h[h][:mm[:ss]]`, `±hhmm`,
//! `UTC±…`, `GMT±…` or a name (`America/New_York`). More than six digits of a fraction are cut. Without a zone, the caller's counts.
//!
//! A local time that a clock skips (spring) is moved on by what it skips; one that it shows twice (autumn) is the earlier. Unit:
//! microseconds since 1970-01-01T00:00:00Z.

use chrono::{DateTime, Datelike, Duration, FixedOffset, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike};
use chrono_tz::Tz;

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// A fixed offset.
    Fixed(FixedOffset),
    /// A region.
    Region(Tz),
}

impl Zone {
    /// UTC.
    pub const UTC: Self = Self::Region(Tz::UTC);

    /// By name or offset; `None` when unknown.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("gmt") {
            return Some(Self::UTC);
        }
        let offset = ["UTC", "GMT", "UT", ""].iter().find_map(|prefix| text.strip_prefix(prefix).and_then(offset));
        if let Some(offset) = offset {
            return Some(Self::Fixed(offset));
        }
        text.parse().ok().or_else(|| chrono_tz::TZ_VARIANTS.into_iter().find(|tz| tz.name().eq_ignore_ascii_case(text))).map(Self::Region)
    }

    /// Is it UTC?
    #[must_use]
    pub fn is_utc(self) -> bool {
        match self {
            Self::Fixed(offset) => offset.local_minus_utc() == 0,
            Self::Region(tz) => tz == Tz::UTC,
        }
    }

    /// The instant of a local time.
    #[must_use]
    pub fn instant(self, local: NaiveDateTime) -> Option<i64> {
        let offset = match self {
            Self::Fixed(offset) => offset,
            Self::Region(tz) => match tz.offset_from_local_datetime(&local) {
                LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => offset.fix(),
                // The clock skips this time: count it by the offset from before.
                LocalResult::None => tz.offset_from_local_datetime(&local.checked_sub_signed(Duration::hours(3))?).earliest()?.fix(),
            },
        };
        local.and_utc().timestamp_micros().checked_sub(i64::from(offset.local_minus_utc()).checked_mul(1_000_000)?)
    }

    /// The local time of an instant, and how far it is from UTC.
    #[must_use]
    pub fn local(self, micros: i64) -> Option<(NaiveDateTime, FixedOffset)> {
        let utc = DateTime::from_timestamp_micros(micros)?.naive_utc();
        let offset = match self {
            Self::Fixed(offset) => offset,
            Self::Region(tz) => tz.offset_from_utc_datetime(&utc).fix(),
        };
        Some((utc.checked_add_offset(offset)?, offset))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Fixed(offset) => offset.to_string(),
            Self::Region(tz) => tz.name().to_owned(),
        }
    }
}

/// `±h[h][:mm[:ss]]`, `±hhmm`.
fn offset(text: &str) -> Option<FixedOffset> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let part = |text: &str| {
        (!text.is_empty() && text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i32>().ok()).flatten()
    };
    let parts: Vec<&str> = if rest.len() == 4 && rest.is_ascii() { vec![&rest[..2], &rest[2..]] } else { rest.split(':').collect() };
    let (hours, minutes, seconds) = match parts.as_slice() {
        [h] => (part(h)?, 0, 0),
        [h, m] => (part(h)?, part(m)?, 0),
        [h, m, s] => (part(h)?, part(m)?, part(s)?),
        _ => return None,
    };
    if hours > 18 || minutes > 59 || seconds > 59 {
        return None;
    }
    FixedOffset::east_opt(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// Reads numbers and marks off the front of a text.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let length = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if length < least {
            return None;
        }
        let number = self.rest[..length].parse().ok();
        self.rest = &self.rest[length..];
        number
    }

    fn mark(&mut self, mark: char) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// `[+-]y…-[m]m-[d]d`; month and day may be left out.
    fn date(&mut self) -> Option<NaiveDate> {
        let negative = self.mark('-');
        if !negative {
            self.mark('+');
        }
        let year = self.number(4, 6)?;
        let month = if self.mark('-') { self.number(1, 2)? } else { 1 };
        let day = if self.mark('-') { self.number(1, 2)? } else { 1 };
        let year = i32::try_from(if negative { -year } else { year }).ok()?;
        NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)
    }

    /// `[h]h:[m]m[:[s]s[.f…]]` on a day.
    fn time(&mut self, day: NaiveDate) -> Option<NaiveDateTime> {
        let hour = u32::try_from(self.number(1, 2)?).ok()?;
        let minute = if self.mark(':') { u32::try_from(self.number(1, 2)?).ok()? } else { 0 };
        let second = if self.mark(':') { u32::try_from(self.number(1, 2)?).ok()? } else { 0 };
        let mut micros = 0;
        if self.mark('.') {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            let kept = digits.min(6);
            let fraction: u32 = if kept == 0 { 0 } else { self.rest[..kept].parse().ok()? };
            micros = fraction * 10_u32.pow(u32::try_from(6 - kept).ok()?);
            self.rest = &self.rest[digits..];
        }
        day.and_hms_micro_opt(hour, minute, second, micros)
    }
}

/// A moment's local time, and its zone when the text has one.
#[must_use]
pub fn parse_local(text: &str) -> Option<(NaiveDateTime, Option<Zone>)> {
    let mut reader = Reader { rest: text.trim() };
    let day = reader.date()?;
    if reader.rest.is_empty() {
        return Some((day.and_hms_opt(0, 0, 0)?, None));
    }
    if !reader.mark('T') && !reader.mark('t') && !reader.mark(' ') {
        return None;
    }
    reader.rest = reader.rest.trim_start();
    let local = reader.time(day)?;
    let zone = reader.rest.trim();
    if zone.is_empty() { Some((local, None)) } else { Some((local, Some(Zone::parse(zone)?))) }
}

/// A moment: `zone` counts when the text has none. `None` when it is no moment.
#[must_use]
pub fn parse(text: &str, zone: Zone) -> Option<i64> {
    let (local, own) = parse_local(text)?;
    own.unwrap_or(zone).instant(local)
}

/// A date: the day of a moment's local time.
#[must_use]
pub fn parse_date(text: &str) -> Option<NaiveDate> {
    parse_local(text).map(|(local, _)| local.date())
}

/// `yyyyMMddHHmmssSSS` as a moment, as in `t@20240626123453000`.
#[must_use]
pub fn parse_compact(digits: &str, zone: Zone) -> Option<i64> {
    if digits.len() != 17 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| digits[from..to].parse::<u32>().ok();
    let day = NaiveDate::from_ymd_opt(digits[..4].parse().ok()?, part(4, 6)?, part(6, 8)?)?;
    zone.instant(day.and_hms_milli_opt(part(8, 10)?, part(10, 12)?, part(12, 14)?, part(14, 17)?)?)
}

/// `2026-05-06 12:30:15.25`, as Spark shows a moment: no zeros at the fraction's end.
#[must_use]
pub fn show(local: NaiveDateTime) -> String {
    let mut text = format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        local.year(),
        local.month(),
        local.day(),
        local.hour(),
        local.minute(),
        local.second()
    );
    let micros = local.nanosecond() / 1_000;
    if micros > 0 {
        text.push('.');
        text.push_str(format!("{micros:06}").trim_end_matches('0'));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let check = |text: &str, expect: Option<&str>| {
            let got =
                parse(text, Zone::UTC).map(|micros| DateTime::from_timestamp_micros(micros).map(|t| t.to_rfc3339()).unwrap_or_default());
            assert_eq!(got.as_deref(), expect, "{text}");
        };
        check("2026-05-05", Some("2026-05-05T00:00:00+00:00"));
        check("2026-5-5", Some("2026-05-05T00:00:00+00:00"));
        check("2026-05", Some("2026-05-01T00:00:00+00:00"));
        check("2026-05-05T00:00:00Z", Some("2026-05-05T00:00:00+00:00"));
        check("2026-05-05T02:00:00+02:00", Some("2026-05-05T00:00:00+00:00"));
        check("2026-05-05 02:00:00 +0200", Some("2026-05-05T00:00:00+00:00"));
        check("2026-05-05 00:00:00 America/New_York", Some("2026-05-05T04:00:00+00:00"));
        check("2026-05-05 00:00:00 UTC+3", Some("2026-05-04T21:00:00+00:00"));
        check(" 2026-05-06 12:30:15.250001999 ", Some("2026-05-06T12:30:15.250001+00:00"));
        check("2026-05-06 12:30", Some("2026-05-06T12:30:00+00:00"));
        check("0001-01-01 00:00:00", Some("0001-01-01T00:00:00+00:00"));
        check("9999-12-31 23:59:59.999999", Some("9999-12-31T23:59:59.999999+00:00"));
        for wrong in [
            "",
            "yesterday",
            "2026-13-45",
            "2026-02-30",
            "2026-05-05 25:00:00",
            "2026-05-05 00:00:00 Mars/Base",
            "2026-05-05x",
            "05/07/2026",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn zones() {
        let berlin = Zone::parse("europe/berlin").unwrap_or(Zone::UTC);
        assert_eq!(parse("2026-07-01 00:00:00", berlin), parse("2026-06-30 22:00:00", Zone::UTC));
        // Skipped and doubled hours.
        assert_eq!(parse("2026-03-29 02:30:00", berlin), parse("2026-03-29 01:30:00", Zone::UTC));
        assert_eq!(parse("2026-10-25 02:30:00", berlin), parse("2026-10-25 00:30:00", Zone::UTC));
        assert_eq!(Zone::parse("+19:00"), None);
        assert_eq!(Zone::parse("-03:30").map(Zone::name).as_deref(), Some("-03:30"));
        assert_eq!(parse_compact("20240626123453000", Zone::UTC), parse("2024-06-26 12:34:53", Zone::UTC));
        assert_eq!(parse_compact("20241326123453000", Zone::UTC), None);
    }
}
