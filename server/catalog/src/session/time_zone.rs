//! Time zones as people write them: IANA names in any case, offsets with or without `UTC`/`GMT` before them.

use std::str::FromStr;

use chrono_tz::{TZ_VARIANTS, Tz};

use crate::nearest;

/// Largest offset from UTC, in minutes: as in Java and so in Spark.
const LARGEST_OFFSET: i64 = 18 * 60;

/// The zone's one spelling: an IANA name, or an offset as `+05:30`.
///
/// # Errors
/// The reason in words, with the nearest name.
pub(super) fn canonical(given: &str) -> Result<String, String> {
    let given = given.trim();
    if given.eq_ignore_ascii_case("z") {
        return Ok("UTC".to_owned());
    }
    if let Ok(zone) = Tz::from_str(given) {
        return Ok(zone.name().to_owned());
    }
    if let Some(zone) = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(given)) {
        return Ok(zone.name().to_owned());
    }
    let offset = ["UTC", "GMT", "UT"].iter().find_map(|prefix| strip(given, prefix)).unwrap_or(given);
    if let Some(minutes) = minutes(offset) {
        return Ok(spelled(minutes));
    }
    let hint = nearest::did_you_mean(given, TZ_VARIANTS.iter().map(|zone| zone.name()))
        .unwrap_or_else(|| "use an IANA name such as Europe/Berlin, or an offset such as +05:30".to_owned());
    Err(format!("{given:?} is no time zone: {hint}"))
}

fn strip<'a>(given: &'a str, prefix: &str) -> Option<&'a str> {
    let head = given.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &given[prefix.len()..])
}

/// `+5`, `+05`, `+0530`, `+05:30`, `-8:00` in minutes.
fn minutes(offset: &str) -> Option<i64> {
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "0"),
    };
    if !(1..=2).contains(&hours.len()) || !hours.bytes().chain(minutes.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= LARGEST_OFFSET).then_some(sign * total)
}

fn spelled(minutes: i64) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_one_spelling() {
        fn check(given: &str, expect: Result<&str, &str>) {
            match (canonical(given), expect) {
                (Ok(zone), Ok(expect)) => assert_eq!(zone, expect, "{given}"),
                (Err(text), Err(part)) => assert!(text.contains(part), "{given}: {text}"),
                (got, _) => panic!("{given}: {got:?}"),
            }
        }
        check("UTC", Ok("UTC"));
        check("utc", Ok("UTC"));
        check("Z", Ok("UTC"));
        check("Europe/Berlin", Ok("Europe/Berlin"));
        check(" america/los_angeles ", Ok("America/Los_Angeles"));
        check("+05:30", Ok("+05:30"));
        check("+0530", Ok("+05:30"));
        check("-8", Ok("-08:00"));
        check("UTC+2", Ok("+02:00"));
        check("GMT-03:00", Ok("-03:00"));
        check("+18:00", Ok("+18:00"));
        check("+18:01", Err("no time zone"));
        check("+05:3", Err("no time zone"));
        check("+05:60", Err("no time zone"));
        check("+", Err("no time zone"));
        check("Europe/Berlim", Err("Europe/Berlin"));
        check("", Err("no time zone"));
        check("Żółć", Err("no time zone"));
    }
}
