//! Patterns of dates and times: Java's (Spark's `to_timestamp`, `date_format`), .NET's (T-SQL's `FORMAT`) and strftime's.
//!
//! A pattern is compiled once into [`Item`]s, which both read and write text.

use chrono::{Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use super::instant::Zone;

/// Which language a pattern is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Java,
    DotNet,
}

/// A piece of a pattern; the number is how many letters it has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Year(usize),
    Month(usize),
    MonthName { long: bool },
    Day(usize),
    DayOfYear(usize),
    Hour(usize),
    Hour12(usize),
    Minute(usize),
    Second(usize),
    Fraction(usize),
    HalfDay,
    Weekday { long: bool },
    Offset { colon: bool, zulu: bool },
    ZoneName,
    Literal(String),
}

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    items: Vec<Item>,
    strftime: Option<String>,
}

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl Pattern {
    /// Compile; the error says which letter is not known.
    pub(super) fn compile(text: &str, language: Language) -> Result<Self, String> {
        if language == Language::Java && text.contains('%') {
            return Ok(Self { items: Vec::new(), strftime: Some(text.to_owned()) });
        }
        let mut items = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(ch) = chars.next() {
            if ch == '\'' || (ch == '"' && language == Language::DotNet) {
                quoted(&mut chars, ch, &mut literal);
            } else if ch == '\\' && language == Language::DotNet {
                literal.extend(chars.next());
            } else if ch.is_ascii_alphabetic() {
                let mut count = 1;
                while chars.next_if_eq(&ch).is_some() {
                    count += 1;
                }
                if !literal.is_empty() {
                    items.push(Item::Literal(std::mem::take(&mut literal)));
                }
                items.push(
                    item(ch, count, language)
                        .ok_or_else(|| format!("the letters '{}' mean nothing in the pattern '{text}'", ch.to_string().repeat(count)))?,
                );
            } else if language == Language::Java && matches!(ch, '[' | ']') {
                return Err(format!("optional parts ([…]) are not read in the pattern '{text}'"));
            } else {
                literal.push(ch);
            }
        }
        if !literal.is_empty() {
            items.push(Item::Literal(literal));
        }
        Ok(Self { items, strftime: None })
    }

    /// The text of a local time.
    pub(super) fn write(&self, local: NaiveDateTime, offset: FixedOffset, zone: Zone) -> String {
        if let Some(strftime) = &self.strftime {
            use std::fmt::Write as _;
            let mut text = String::new();
            // A pattern that chrono does not know makes its Display fail; then there is no text.
            return if write!(text, "{}", local.format(strftime)).is_ok() { text } else { String::new() };
        }
        self.items.iter().map(|item| piece(item, local, offset, zone)).collect()
    }

    /// The local time that a text names, and its zone when it has one. `None` when the text does not fit.
    pub(super) fn read(&self, text: &str) -> Option<(NaiveDateTime, Option<Zone>)> {
        if let Some(strftime) = &self.strftime {
            let moment = NaiveDateTime::parse_from_str(text, strftime).ok();
            return moment.or_else(|| NaiveDate::parse_from_str(text, strftime).ok()?.and_hms_opt(0, 0, 0)).map(|local| (local, None));
        }
        let mut parts = Parts::default();
        let mut rest = text;
        for (n, item) in self.items.iter().enumerate() {
            let adjacent = self.items.get(n + 1).is_some_and(Item::is_number);
            rest = parts.take(item, rest, adjacent)?;
        }
        if rest.is_empty() { parts.finish() } else { None }
    }
}

fn quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char, literal: &mut String) {
    if chars.next_if_eq(&quote).is_some() {
        literal.push(quote);
        return;
    }
    while let Some(ch) = chars.next() {
        if ch != quote {
            literal.push(ch);
        } else if chars.next_if_eq(&quote).is_some() {
            literal.push(quote);
        } else {
            return;
        }
    }
}

fn item(letter: char, count: usize, language: Language) -> Option<Item> {
    let shared = match (letter, count) {
        ('y', 1..=6) => Item::Year(count),
        ('M', 1..=2) => Item::Month(count),
        ('M', 3) => Item::MonthName { long: false },
        ('M', 4) => Item::MonthName { long: true },
        ('d', 1..=2) => Item::Day(count),
        ('H', 1..=2) => Item::Hour(count),
        ('h', 1..=2) => Item::Hour12(count),
        ('m', 1..=2) => Item::Minute(count),
        ('s', 1..=2) => Item::Second(count),
        _ => {
            return match language {
                Language::Java => java(letter, count),
                Language::DotNet => dot_net(letter, count),
            };
        }
    };
    Some(shared)
}

fn java(letter: char, count: usize) -> Option<Item> {
    Some(match (letter, count) {
        ('u', 1..=6) => Item::Year(count),
        ('L', 1..=2) => Item::Month(count),
        ('L', 3) => Item::MonthName { long: false },
        ('L', 4) => Item::MonthName { long: true },
        ('D', 1..=3) => Item::DayOfYear(count),
        ('S', 1..=9) => Item::Fraction(count),
        ('a', 1) => Item::HalfDay,
        ('E', 1..=3) => Item::Weekday { long: false },
        ('E', 4) => Item::Weekday { long: true },
        ('X', 2) => Item::Offset { colon: false, zulu: true },
        ('X', 1 | 3) => Item::Offset { colon: true, zulu: true },
        ('x', 2) | ('Z', 1..=3) => Item::Offset { colon: false, zulu: false },
        ('x', 1 | 3) | ('Z', 5) => Item::Offset { colon: true, zulu: false },
        ('V', 2) | ('z', 1..=4) => Item::ZoneName,
        _ => return None,
    })
}

fn dot_net(letter: char, count: usize) -> Option<Item> {
    Some(match (letter, count) {
        ('f' | 'F', 1..=7) => Item::Fraction(count),
        ('t', 2) => Item::HalfDay,
        ('d', 3) => Item::Weekday { long: false },
        ('d', 4) => Item::Weekday { long: true },
        ('z', 3) => Item::Offset { colon: true, zulu: false },
        ('K', 1) => Item::Offset { colon: true, zulu: true },
        _ => return None,
    })
}

fn short(name: &str) -> &str {
    name.get(..3).unwrap_or(name)
}

fn piece(item: &Item, local: NaiveDateTime, offset: FixedOffset, zone: Zone) -> String {
    let padded = |value: u32, width: usize| format!("{value:0width$}");
    let named = |names: &[&str], index: u32, long: bool| {
        let name = names.get(usize::try_from(index).unwrap_or(0)).copied().unwrap_or_default();
        if long { name.to_owned() } else { short(name).to_owned() }
    };
    match item {
        Item::Year(2) => padded(local.year().rem_euclid(100).unsigned_abs(), 2),
        Item::Year(width) => format!("{:0width$}", local.year()),
        Item::Month(width) => padded(local.month(), *width),
        Item::MonthName { long } => named(&MONTHS, local.month0(), *long),
        Item::Day(width) => padded(local.day(), *width),
        Item::DayOfYear(width) => padded(local.ordinal(), *width),
        Item::Hour(width) => padded(local.hour(), *width),
        Item::Hour12(width) => padded(local.hour12().1, *width),
        Item::Minute(width) => padded(local.minute(), *width),
        Item::Second(width) => padded(local.second(), *width),
        Item::Fraction(width) => format!("{:09}", local.nanosecond()).chars().take(*width).collect(),
        Item::HalfDay => (if local.hour() < 12 { "AM" } else { "PM" }).to_owned(),
        Item::Weekday { long } => named(&WEEKDAYS, local.weekday().num_days_from_monday(), *long),
        Item::Offset { zulu: true, .. } if offset.local_minus_utc() == 0 => "Z".to_owned(),
        Item::Offset { colon, .. } => {
            let text = offset.to_string();
            if *colon { text } else { text.replace(':', "") }
        }
        Item::ZoneName => zone.name(),
        Item::Literal(text) => text.clone(),
    }
}

impl Item {
    fn is_number(&self) -> bool {
        !matches!(
            self,
            Self::Literal(_) | Self::MonthName { .. } | Self::Weekday { .. } | Self::HalfDay | Self::Offset { .. } | Self::ZoneName
        )
    }
}

/// What has been read of a text.
#[derive(Default)]
struct Parts {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<u32>,
    hour: Option<u32>,
    hour12: Option<u32>,
    minute: u32,
    second: u32,
    micros: u32,
    afternoon: Option<bool>,
    zone: Option<Zone>,
}

/// Digits off the front: exactly `width` when another number follows, or for two letters; else at least `width`.
fn digits(text: &str, width: usize, most: usize, adjacent: bool) -> Option<(&str, &str)> {
    let most = if adjacent || width == 2 { width } else { most };
    let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    (length >= width.min(most)).then(|| text.split_at(length)).filter(|(taken, _)| !taken.is_empty())
}

fn strip_name<'a>(text: &'a str, names: &[&str], long: bool) -> Option<(u32, &'a str)> {
    names.iter().zip(0_u32..).find_map(|(name, index)| {
        let name = if long { name } else { short(name) };
        let head = text.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| (index, &text[name.len()..]))
    })
}

impl Parts {
    fn take<'a>(&mut self, item: &Item, text: &'a str, adjacent: bool) -> Option<&'a str> {
        let number = |width: usize, most: usize| -> Option<(u32, &'a str)> {
            let (taken, rest) = digits(text, width, most, adjacent)?;
            Some((taken.parse().ok()?, rest))
        };
        let (slot, (value, rest)) = match item {
            Item::Year(width) => {
                let (taken, rest) = digits(text, *width, 6, adjacent)?;
                let year: i32 = taken.parse().ok()?;
                self.year = Some(if *width == 2 { 2000 + year } else { year });
                return Some(rest);
            }
            Item::Fraction(width) => {
                let (taken, rest) = digits(text, if adjacent { *width } else { 1 }, 9, adjacent)?;
                let micros: String = format!("{taken:0<6}").chars().take(6).collect();
                self.micros = micros.parse().ok()?;
                return Some(rest);
            }
            Item::MonthName { long } => {
                let (index, rest) = strip_name(text, &MONTHS, *long)?;
                self.month = Some(index + 1);
                return Some(rest);
            }
            Item::Weekday { long } => return strip_name(text, &WEEKDAYS, *long).map(|(_, rest)| rest),
            Item::HalfDay => {
                let (index, rest) = strip_name(text, &["AM", "PM"], true)?;
                self.afternoon = Some(index == 1);
                return Some(rest);
            }
            Item::Offset { .. } | Item::ZoneName => {
                let length = text.find(char::is_whitespace).unwrap_or(text.len());
                self.zone = Some(Zone::parse(&text[..length])?);
                return Some(&text[length..]);
            }
            Item::Literal(literal) => return text.strip_prefix(literal.as_str()),
            Item::Month(width) => (&mut self.month, number(*width, 2)?),
            Item::Day(width) => (&mut self.day, number(*width, 2)?),
            Item::DayOfYear(width) => (&mut self.day_of_year, number(*width, 3)?),
            Item::Hour(width) => (&mut self.hour, number(*width, 2)?),
            Item::Hour12(width) => (&mut self.hour12, number(*width, 2)?),
            Item::Minute(width) => {
                let (value, rest) = number(*width, 2)?;
                self.minute = value;
                return Some(rest);
            }
            Item::Second(width) => {
                let (value, rest) = number(*width, 2)?;
                self.second = value;
                return Some(rest);
            }
        };
        *slot = Some(value);
        Some(rest)
    }

    fn finish(self) -> Option<(NaiveDateTime, Option<Zone>)> {
        let year = self.year.unwrap_or(1970);
        let day = match self.day_of_year {
            Some(ordinal) => NaiveDate::from_yo_opt(year, ordinal)?,
            None => NaiveDate::from_ymd_opt(year, self.month.unwrap_or(1), self.day.unwrap_or(1))?,
        };
        let hour = match (self.hour, self.hour12) {
            (Some(hour), _) => hour,
            (None, Some(hour @ 1..=12)) => hour % 12 + if self.afternoon == Some(true) { 12 } else { 0 },
            (None, Some(_)) => return None,
            (None, None) => 0,
        };
        let time = NaiveTime::from_hms_micro_opt(hour, self.minute, self.second, self.micros)?;
        Some((day.and_time(time), self.zone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::instant::show;

    #[test]
    fn java_patterns_read() {
        let check = |pattern: &str, text: &str, expect: Option<&str>| {
            let got = Pattern::compile(pattern, Language::Java)
                .ok()
                .and_then(|p| p.read(text))
                .map(|(local, zone)| format!("{}{}", show(local), zone.map(Zone::name).unwrap_or_default()));
            assert_eq!(got.as_deref(), expect, "{pattern} {text}");
        };
        check("dd/MM/yyyy", "07/05/2026", Some("2026-05-07 00:00:00"));
        check("d/M/yy", "7/5/26", Some("2026-05-07 00:00:00"));
        check("yyyyMMddHHmmssSSS", "20240626123453007", Some("2024-06-26 12:34:53.007"));
        check("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2026-05-07T01:02:03.5+02:00", Some("2026-05-07 01:02:03.5+02:00"));
        check("MMM d, yyyy h:mm a", "May 7, 2026 1:05 PM", Some("2026-05-07 13:05:00"));
        check("EEEE, dd MMMM yyyy", "Thursday, 07 May 2026", Some("2026-05-07 00:00:00"));
        check("%d/%m/%Y", "07/05/2026", Some("2026-05-07 00:00:00"));
        check("dd/MM/yyyy", "2026-05-07", None);
        check("dd/MM/yyyy", "07/05/2026 x", None);
        check("dd/MM/yyyy", "31/02/2026", None);
        assert!(Pattern::compile("yyyy-QQ", Language::Java).is_err());
    }

    #[test]
    fn patterns_write() {
        let local = NaiveDate::from_ymd_opt(2024, 6, 5).and_then(|d| d.and_hms_milli_opt(15, 7, 9, 40)).unwrap_or_default();
        let offset = FixedOffset::east_opt(0).unwrap_or_else(|| panic!("UTC"));
        let check = |pattern: &str, language: Language, expect: &str| {
            assert_eq!(Pattern::compile(pattern, language).map(|p| p.write(local, offset, Zone::UTC)).as_deref(), Ok(expect), "{pattern}");
        };
        check("yyyy-MM-dd HH:mm:ss", Language::DotNet, "2024-06-05 15:07:09");
        check("d MMM yyyy h:mm tt \\h", Language::DotNet, "5 Jun 2024 3:07 PM h");
        check("dddd", Language::DotNet, "Wednesday");
        check("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", Language::Java, "2024-06-05T15:07:09.040Z");
        check("EEE D yy ''", Language::Java, "Wed 157 24 '");
        check("%Y", Language::Java, "2024");
    }
}
