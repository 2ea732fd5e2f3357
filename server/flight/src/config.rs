//! Configuration: flags, then `ASOF_…` variables, then a TOML file, then defaults.
//!
//! The same name everywhere: `--session-ttl`, `ASOF_SESSION_TTL`, `session_ttl = "1h"`. A key of the file that nobody knows is an error that
//! names the nearest one, because a misspelt limit is worse than none.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use asof_catalog::nearest;
use clap::{Args, ValueEnum};
use serde::Deserialize;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What may be set, all of it optional: by flags and environment (clap reads both), or by the file.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:50051]
    #[arg(long, env = "ASOF_LISTEN", value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Where the tables are: a folder, or a file:// URL [default: ./warehouse]
    #[arg(long, env = "ASOF_WAREHOUSE", value_name = "PATH|URL")]
    pub warehouse: Option<String>,
    /// The warehouse's name in SQL [default: lake]
    #[arg(long, env = "ASOF_CATALOG", value_name = "NAME")]
    pub catalog: Option<String>,
    /// How long a session lives after its last use, such as 30min [default: 8h]
    #[arg(long, env = "ASOF_SESSION_TTL", value_name = "DURATION")]
    pub session_ttl: Option<String>,
    /// Memory for all statements together, such as 4GB [default: three quarters of the machine's]
    #[arg(long, env = "ASOF_MEMORY_LIMIT", value_name = "BYTES")]
    pub memory_limit: Option<String>,
    /// Memory for one statement, such as 1GB [default: all that there is for all together]
    #[arg(long, env = "ASOF_STATEMENT_MEMORY_LIMIT", value_name = "BYTES")]
    pub statement_memory_limit: Option<String>,
    /// Folder for what does not fit into memory [default: the system's temporary folder]
    #[arg(long, env = "ASOF_SPILL_DIR", value_name = "PATH")]
    pub spill_dir: Option<PathBuf>,
    /// Threads that plan and execute [default: as many as the machine has cores]
    #[arg(long, env = "ASOF_CPU_THREADS", value_name = "N")]
    pub cpu_threads: Option<usize>,
    /// Longest text of a statement [default: 16MB]
    #[arg(long, env = "ASOF_MAX_STATEMENT", value_name = "BYTES")]
    pub max_statement: Option<String>,
    /// How long running statements may take to end at shutdown [default: 10s]
    #[arg(long, env = "ASOF_SHUTDOWN_GRACE", value_name = "DURATION")]
    pub shutdown_grace: Option<String>,
    /// What is logged: a level, or directives such as info,asof_query=debug [default: info, of the Delta kernel warn]
    #[arg(long, env = "ASOF_LOG", value_name = "FILTER")]
    pub log: Option<String>,
    /// How log lines look [default: text]
    #[arg(long, env = "ASOF_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// The keys of a file.
const KEYS: [&str; 12] = [
    "catalog",
    "cpu_threads",
    "listen",
    "log",
    "log_format",
    "max_statement",
    "memory_limit",
    "session_ttl",
    "shutdown_grace",
    "spill_dir",
    "statement_memory_limit",
    "warehouse",
];

/// A complete configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where to listen; loopback.
    pub listen: SocketAddr,
    /// Where the tables are.
    pub warehouse: String,
    /// Their catalog's name.
    pub catalog: String,
    /// How long a session lives after its last use.
    pub session_ttl: Duration,
    /// Bytes for all statements together.
    pub memory_limit: usize,
    /// Bytes for one statement, if that is less.
    pub statement_memory_limit: Option<usize>,
    /// Where to spill.
    pub spill_dir: Option<PathBuf>,
    /// Threads that plan and execute.
    pub cpu_threads: usize,
    /// Bytes of a statement's text.
    pub max_statement: usize,
    /// How long running statements may take to end at shutdown.
    pub shutdown_grace: Duration,
    /// What is logged.
    pub log: String,
    /// How it looks.
    pub log_format: LogFormat,
}

/// A configuration that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is not there, or cannot be read.
    #[error("configuration file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML, or a value has another type.
    #[error("configuration file {}: {detail}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and what.
        detail: String,
    },
    /// A key nobody knows.
    #[error("configuration file {}: no key {key:?}: {hint}", path.display())]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The nearest, or all.
        hint: String,
    },
    /// A value that is none.
    #[error("{key} = {value:?}: {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// An address that others can reach.
    #[error(
        "refusing to listen on {0}: this version has no authentication yet, so whoever reaches that address could read and change every table; listen on 127.0.0.1 (or [::1]), and let clients come through an SSH tunnel or a proxy that authenticates them"
    )]
    NotLoopback(String),
}

type Result<T, E = ConfigError> = std::result::Result<T, E>;

impl Settings {
    /// A file's settings.
    ///
    /// # Errors
    /// `File`, `Syntax`, `UnknownKey`.
    pub fn from_file(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
        Self::from_toml(path, &text)
    }

    fn from_toml(path: &Path, text: &str) -> Result<Self> {
        let syntax = |e: toml::de::Error| ConfigError::Syntax { path: path.to_owned(), detail: e.to_string() };
        let table: toml::Table = toml::from_str(text).map_err(syntax)?;
        for key in table.keys() {
            if !KEYS.contains(&key.as_str()) {
                let hint = nearest::did_you_mean(key, KEYS).unwrap_or_else(|| format!("there is {}", KEYS.join(", ")));
                return Err(ConfigError::UnknownKey { path: path.to_owned(), key: key.clone(), hint });
            }
        }
        toml::from_str(text).map_err(syntax)
    }

    /// These settings, and another's where these say nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            listen: self.listen.or(other.listen),
            warehouse: self.warehouse.or(other.warehouse),
            catalog: self.catalog.or(other.catalog),
            session_ttl: self.session_ttl.or(other.session_ttl),
            memory_limit: self.memory_limit.or(other.memory_limit),
            statement_memory_limit: self.statement_memory_limit.or(other.statement_memory_limit),
            spill_dir: self.spill_dir.or(other.spill_dir),
            cpu_threads: self.cpu_threads.or(other.cpu_threads),
            max_statement: self.max_statement.or(other.max_statement),
            shutdown_grace: self.shutdown_grace.or(other.shutdown_grace),
            log: self.log.or(other.log),
            log_format: self.log_format.or(other.log_format),
        }
    }

    /// With the defaults filled in, and checked.
    ///
    /// # Errors
    /// `Value`, `NotLoopback`.
    pub fn complete(self) -> Result<Config> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let cpu_threads = self.cpu_threads.unwrap_or(cores);
        if cpu_threads == 0 {
            return Err(value("cpu_threads", "0", "at least one thread must plan and execute"));
        }
        Ok(Config {
            listen: address(&self.listen.unwrap_or_else(|| "127.0.0.1:50051".to_owned()))?,
            warehouse: self.warehouse.unwrap_or_else(|| "./warehouse".to_owned()),
            catalog: self.catalog.unwrap_or_else(|| "lake".to_owned()),
            session_ttl: duration("session_ttl", self.session_ttl, Duration::from_secs(8 * 3600))?,
            memory_limit: self.memory_limit.map_or_else(|| Ok(default_memory()), |text| bytes("memory_limit", &text))?,
            statement_memory_limit: self.statement_memory_limit.map(|text| bytes("statement_memory_limit", &text)).transpose()?,
            spill_dir: self.spill_dir,
            cpu_threads,
            max_statement: self.max_statement.map_or(Ok(16 << 20), |text| bytes("max_statement", &text))?,
            shutdown_grace: duration("shutdown_grace", self.shutdown_grace, Duration::from_secs(10))?,
            // The kernel tells each of its steps at level info.
            log: self.log.unwrap_or_else(|| "info,delta_kernel=warn,delta_kernel_default_engine=warn".to_owned()),
            log_format: self.log_format.unwrap_or_default(),
        })
    }
}

fn value(key: &'static str, value: &str, problem: &str) -> ConfigError {
    ConfigError::Value { key, value: value.to_owned(), problem: problem.to_owned() }
}

/// A loopback address. A host's name counts as loopback when all its addresses are.
fn address(text: &str) -> Result<SocketAddr> {
    let problem = "write HOST:PORT, such as 127.0.0.1:50051; port 0 picks a free one";
    let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|_| value("listen", text, problem))?.collect();
    let Some(first) = found.first() else { return Err(value("listen", text, problem)) };
    if found.iter().all(|address| address.ip().is_loopback()) {
        // Drivers are told 127.0.0.1 more often than ::1.
        return Ok(*found.iter().find(|address| address.is_ipv4()).unwrap_or(first));
    }
    Err(ConfigError::NotLoopback(text.to_owned()))
}

fn duration(key: &'static str, text: Option<String>, default: Duration) -> Result<Duration> {
    let Some(text) = text else { return Ok(default) };
    parse_number(&text, &[("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)], None)
        .map(Duration::from_millis)
        .ok_or_else(|| value(key, &text, "write a number with its unit: 500ms, 30s, 5min, 8h, 1d"))
}

fn bytes(key: &'static str, text: &str) -> Result<usize> {
    let units = [("b", 1), ("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("tb", 1_u64 << 40)];
    parse_number(text, &units, Some(1))
        .and_then(|bytes| usize::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| value(key, text, "write a number of bytes, such as 4GB, 512MB or 1048576"))
}

/// A whole number and a unit; without a unit only where `bare` says what it counts.
fn parse_number(text: &str, units: &[(&str, u64)], bare: Option<u64>) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(at)?;
    let unit = unit.trim().replace("ib", "b");
    let factor = if unit.is_empty() { bare? } else { units.iter().find(|(name, _)| *name == unit)?.1 };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Three quarters of the machine's memory; 2 GB where that cannot be told.
fn default_memory() -> usize {
    const UNKNOWN: usize = 2 << 30;
    let Ok(info) = std::fs::read_to_string("/proc/meminfo") else { return UNKNOWN };
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    total.map_or(UNKNOWN, |kb| kb.saturating_mul(1024) / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Settings> {
        Settings::from_toml(Path::new("asof.toml"), text)
    }

    #[test]
    fn a_flag_beats_the_file_and_the_file_beats_the_default() {
        let flags = Settings { listen: Some("127.0.0.1:1".into()), ..Settings::default() };
        let config = flags.or(file("listen = '127.0.0.1:2'\ncatalog = 'pond'\nlog_format = 'json'").unwrap()).complete().unwrap();
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.catalog, "pond");
        assert_eq!(config.log_format, LogFormat::Json);
        assert_eq!(config.warehouse, "./warehouse");
    }

    #[test]
    fn keys_nobody_knows_name_the_nearest() {
        fn check(text: &str, expect: &str) {
            let error = file(text).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
        check("lisen = 'x'", "did you mean \"listen\"?");
        check("memory = '1GB'", "memory_limit");
        check("zzz = 1", "there is catalog, cpu_threads");
        check("listen = 1", "expected a string");
        check("listen", "asof.toml");
        for key in KEYS {
            let value = if key == "cpu_threads" {
                "1"
            } else if key == "log_format" {
                "'text'"
            } else {
                "'1'"
            };
            file(&format!("{key} = {value}")).unwrap();
        }
    }

    #[test]
    fn the_example_says_the_defaults_and_names_every_key() {
        let text = include_str!("../../../deploy/asofd.toml");
        assert_eq!(file(text).unwrap().complete().unwrap(), Settings::default().complete().unwrap());
        for key in KEYS {
            assert!(text.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{key} ="))), "{key}");
        }
    }

    #[test]
    fn only_loopback_is_listened_on() {
        fn check(listen: &str, expect: Option<&str>) {
            match (address(listen), expect) {
                (Ok(address), Some(expect)) => assert_eq!(address.to_string(), expect),
                (Err(ConfigError::NotLoopback(shown)), None) => assert_eq!(shown, listen),
                (got, _) => panic!("{listen}: {got:?}"),
            }
        }
        check("127.0.0.1:0", Some("127.0.0.1:0"));
        check("127.0.0.2:5", Some("127.0.0.2:5"));
        check("[::1]:5", Some("[::1]:5"));
        check("0.0.0.0:50051", None);
        check("[::]:50051", None);
        check("10.1.2.3:50051", None);
        assert!(matches!(address("50051"), Err(ConfigError::Value { .. })));
        assert!(matches!(address("127.0.0.1"), Err(ConfigError::Value { .. })));
    }

    #[test]
    fn numbers_have_units() {
        fn check(text: &str, expect: Option<usize>) {
            assert_eq!(bytes("memory_limit", text).ok(), expect, "{text}");
        }
        check("4GB", Some(4 << 30));
        check("512 MiB", Some(512 << 20));
        check("1048576", Some(1 << 20));
        check("0", None);
        check("4 GBs", None);
        check("-1", None);
        check("99999999999999999999", None);
        let seconds = |text: &str| duration("session_ttl", Some(text.to_owned()), Duration::ZERO).ok().map(|d| d.as_secs());
        assert_eq!(seconds("30min"), Some(1800));
        assert_eq!(seconds("1 d"), Some(86_400));
        assert_eq!(seconds("30"), None, "a number alone says no unit");
    }
}
