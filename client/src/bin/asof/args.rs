//! The command line.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::output::Format;

/// Ask an asof server what its tables hold, and when.
///
/// Without -c and -f it opens a shell; with standard input that is no terminal it runs what comes there.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:\n  asof\n  asof asof://db:50051 -c 'SELECT count(*) FROM orders VERSION AS OF 3'\n  \
    asof -f load.sql\n  asof -c 'SELECT * FROM orders' --output orders.parquet"
)]
pub struct Args {
    /// The server: asof://HOST:PORT, grpc://HOST:PORT, http://HOST:PORT or HOST:PORT.
    #[arg(env = "ASOF_URI", default_value = "127.0.0.1:50051")]
    pub uri: String,

    /// Run these statements, cut at `;`. May be given more than once.
    #[arg(short, long, value_name = "SQL")]
    pub command: Vec<String>,

    /// Run the statements of this file, after those of -c; `-` is standard input. May be given more than once.
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,

    /// How rows are written; by the ending of --output's name unless given, else a table.
    #[arg(long, value_enum)]
    pub format: Option<Format>,

    /// Write rows to this file; it appears when all statements have ended well.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Columns a table may take; the terminal's unless given, and without limit where there is no terminal.
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,

    /// Show at most so many rows of a table, 0 for all of them; 1000 on a terminal, all elsewhere.
    #[arg(long, value_name = "ROWS")]
    pub max_rows: Option<usize>,

    /// Show neither counts nor times.
    #[arg(short, long)]
    pub quiet: bool,
}

impl Args {
    /// The format that was asked for, or that the output's name asks for.
    pub fn format(&self) -> Format {
        self.format.or_else(|| self.output.as_deref().and_then(by_ending)).unwrap_or(Format::Table)
    }
}

fn by_ending(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "csv" => Some(Format::Csv),
        "json" | "jsonl" | "ndjson" => Some(Format::Json),
        "arrow" | "arrows" | "feather" => Some(Format::Arrow),
        "parquet" => Some(Format::Parquet),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn formats() {
        let check = |line: &[&str], expect: Format| {
            let args = Args::try_parse_from([&["asof", "h:1"], line].concat()).unwrap();
            assert_eq!(args.format(), expect, "{line:?}");
        };
        check(&[], Format::Table);
        check(&["-o", "x.txt"], Format::Table);
        check(&["-o", "x.parquet"], Format::Parquet);
        check(&["-o", "x.arrows"], Format::Arrow);
        check(&["-o", "x.parquet", "--format", "csv"], Format::Csv);
    }
}
