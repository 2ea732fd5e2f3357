//! What can be set in a session: names, aliases, values.
//!
//! A setting nobody knows is an error that names the nearest, because a misspelt `SET` that succeeds is found out too late. Settings of
//! other engines (`spark.…`) are sent by their tools at connect; those are kept and shown, and have no effect.

use std::time::Duration;

use super::time_zone;
use crate::error::{Error, Result};
use crate::nearest;

/// Longest value, in bytes.
const LONGEST_VALUE: usize = 4096;

/// Beginnings of other engines' names.
const OF_OTHERS: [&str; 5] = ["spark.", "hive.", "databricks.", "delta.", "datafusion."];

/// A setting of asof's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// Current catalog.
    Catalog,
    /// Current schema.
    Schema,
    /// In which zone times without one are read and shown.
    TimeZone,
    /// How zoned timestamps go on the wire: `zoned`, `naive`, `text`.
    Timestamps,
    /// How long a statement may take.
    StatementTimeout,
    /// The program's own name, for logs.
    ApplicationName,
}

impl Setting {
    pub(super) const ALL: [Self; 6] =
        [Self::ApplicationName, Self::Catalog, Self::Schema, Self::StatementTimeout, Self::TimeZone, Self::Timestamps];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Schema => "schema",
            Self::TimeZone => "time_zone",
            Self::Timestamps => "timestamps",
            Self::StatementTimeout => "statement_timeout",
            Self::ApplicationName => "application_name",
        }
    }

    /// What it is when nothing was set. Catalog and schema are the server's and live elsewhere.
    pub(super) fn default(self) -> &'static str {
        match self {
            Self::Catalog | Self::Schema | Self::ApplicationName => "",
            Self::TimeZone => "UTC",
            Self::Timestamps => "zoned",
            Self::StatementTimeout => "0",
        }
    }

    /// The value's one spelling.
    pub(super) fn canonical(self, value: &str) -> Result<String> {
        if value.len() > LONGEST_VALUE {
            return Err(Error::InvalidSetting(format!("{}: a value of {} bytes is too long", self.name(), value.len())));
        }
        let refuse = |why: String| Error::InvalidSetting(format!("{}: {why}", self.name()));
        match self {
            Self::Catalog | Self::Schema => {
                if value.is_empty() {
                    Err(refuse("the name is empty".to_owned()))
                } else {
                    Ok(value.to_owned())
                }
            }
            Self::TimeZone => time_zone::canonical(value).map_err(refuse),
            Self::Timestamps => {
                let known = ["zoned", "naive", "text"];
                let lower = value.trim().to_ascii_lowercase();
                if known.contains(&lower.as_str()) { Ok(lower) } else { Err(refuse(format!("{value:?} is none of zoned, naive, text"))) }
            }
            Self::StatementTimeout => duration(value).map(spelled).ok_or_else(|| {
                refuse(format!("{value:?} is no duration: write 500ms, 30s, 5min, 1h, or 0 for none; a bare number is milliseconds"))
            }),
            Self::ApplicationName => Ok(value.to_owned()),
        }
    }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// One of ours.
    Known(Setting),
    /// Another engine's, lower case as given.
    Foreign(String),
}

/// Looks a name up, in any case and with its aliases.
///
/// # Errors
/// `InvalidSetting` naming the nearest.
pub(super) fn look_up(name: &str) -> Result<Name> {
    let plain = name.trim().to_ascii_lowercase();
    let known = match plain.as_str() {
        "time_zone" | "timezone" | "time zone" | "spark.sql.session.timezone" => Some(Setting::TimeZone),
        "catalog" | "current_catalog" | "database_catalog" => Some(Setting::Catalog),
        "schema" | "current_schema" | "database" => Some(Setting::Schema),
        other => Setting::ALL.into_iter().find(|s| s.name() == other),
    };
    if let Some(setting) = known {
        return Ok(Name::Known(setting));
    }
    if plain.len() <= 256 && OF_OTHERS.iter().any(|prefix| plain.starts_with(prefix)) {
        return Ok(Name::Foreign(plain));
    }
    let names = Setting::ALL.map(Setting::name);
    let hint = nearest::did_you_mean(&plain, names).unwrap_or_else(|| format!("there is {}", names.join(", ")));
    let shown: String = name.chars().take(64).collect();
    Err(Error::InvalidSetting(format!("no setting {shown:?}: {hint}")))
}

/// `500ms`, `30s`, `5min`, `1h`; a bare number is milliseconds; `0` and `none` are no limit.
pub(super) fn duration(text: &str) -> Option<Option<Duration>> {
    let text = text.trim().to_ascii_lowercase();
    if text == "none" {
        return Some(None);
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(unit_at)?;
    let number: u64 = number.parse().ok()?;
    let in_ms = match unit.trim() {
        "" | "ms" => 1,
        "s" | "sec" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        _ => return None,
    };
    let ms = number.checked_mul(in_ms)?;
    Some((ms > 0).then(|| Duration::from_millis(ms)))
}

fn spelled(duration: Option<Duration>) -> String {
    match duration.map(|d| d.as_millis()) {
        None => "0".to_owned(),
        Some(ms) if ms.is_multiple_of(3_600_000) => format!("{}h", ms / 3_600_000),
        Some(ms) if ms.is_multiple_of(60_000) => format!("{}min", ms / 60_000),
        Some(ms) if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        Some(ms) => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_aliases_and_misspelt_ones_a_hint() {
        fn check(name: &str, expect: Result<Name, &str>) {
            match (look_up(name), expect) {
                (Ok(got), Ok(expect)) => assert_eq!(got, expect, "{name}"),
                (Err(e), Err(part)) => assert!(e.to_string().contains(part), "{name}: {e}"),
                (got, _) => panic!("{name}: {got:?}"),
            }
        }
        check("TIME ZONE", Ok(Name::Known(Setting::TimeZone)));
        check("timezone", Ok(Name::Known(Setting::TimeZone)));
        check("spark.sql.session.timeZone", Ok(Name::Known(Setting::TimeZone)));
        check("spark.sql.ansi.enabled", Ok(Name::Foreign("spark.sql.ansi.enabled".to_owned())));
        check("statement_timeuot", Err("statement_timeout"));
        check("zzz", Err("application_name, catalog"));
    }

    #[test]
    fn values_have_one_spelling() {
        fn check(setting: Setting, value: &str, expect: Option<&str>) {
            assert_eq!(setting.canonical(value).ok().as_deref(), expect, "{setting:?} {value}");
        }
        check(Setting::StatementTimeout, "90s", Some("90s"));
        check(Setting::StatementTimeout, "120 s", Some("2min"));
        check(Setting::StatementTimeout, "1500", Some("1500ms"));
        check(Setting::StatementTimeout, "0", Some("0"));
        check(Setting::StatementTimeout, "none", Some("0"));
        check(Setting::StatementTimeout, "soon", None);
        check(Setting::StatementTimeout, "-1", None);
        check(Setting::StatementTimeout, "99999999999999999999h", None);
        check(Setting::Timestamps, "Naive", Some("naive"));
        check(Setting::Timestamps, "local", None);
        check(Setting::TimeZone, "asia/seoul", Some("Asia/Seoul"));
        check(Setting::Catalog, "", None);
    }
}
