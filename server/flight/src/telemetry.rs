//! Logs: to stderr, as text or JSON. Stdout says one thing only, that the server is ready.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, ConfigError, LogFormat};

/// Starts logging, and makes panics a log line: what is caught shows its id to the client, and its place here.
///
/// # Errors
/// `Value` when the filter is none.
pub fn start(config: &Config) -> Result<(), ConfigError> {
    let filter = EnvFilter::try_new(&config.log).map_err(|e| ConfigError::Value {
        key: "log",
        value: config.log.clone(),
        problem: format!("{e}; write a level (error, warn, info, debug, trace) or directives such as info,asof_query=debug"),
    })?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    // A subscriber that is there already (in tests) stays.
    match config.log_format {
        LogFormat::Text => lines.try_init().ok(),
        LogFormat::Json => lines.json().flatten_event(true).try_init().ok(),
    };
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string).unwrap_or_default();
        let text = panic.payload_as_str().unwrap_or_default();
        tracing::error!(at, panic = text, backtrace = %std::backtrace::Backtrace::capture(), "panic");
    }));
    Ok(())
}
