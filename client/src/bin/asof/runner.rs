//! One statement, from its text to what is shown of it.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use asof_client::script::{Piece, Pieces};
use asof_client::{Connection, Outcome, Rows};
use futures::TryStreamExt;

use crate::args::Args;
use crate::failure::Failure;
use crate::output::{Flow, Format, Layout, Shown, Target};
use crate::spinner::Spinner;

/// Rows of a table that a terminal shows unless told otherwise.
const ROWS_ON_A_TERMINAL: usize = 1000;

/// How results are shown.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How rows are written.
    pub format: Format,
    /// How tables are laid out.
    pub layout: Layout,
    /// Show counts.
    pub counts: bool,
    /// Show times.
    pub timing: bool,
    /// Show a spinner on long work.
    pub spinner: bool,
}

impl Settings {
    /// As the command line wants them.
    pub fn new(args: &Args, interactive: bool) -> Self {
        let looked_at = args.output.is_none() && io::stdout().is_terminal();
        let unlimited = if looked_at || interactive { Some(ROWS_ON_A_TERMINAL) } else { None };
        let max_rows = args.max_rows.map_or(unlimited, |rows| (rows > 0).then_some(rows));
        Self {
            format: args.format(),
            layout: Layout { width: args.width, max_rows, ..Layout::default() },
            counts: !args.quiet,
            timing: !args.quiet,
            spinner: !args.quiet && io::stderr().is_terminal(),
        }
    }
}

/// Runs statements on a connection, and shows what they give.
pub struct Runner {
    /// Where they run.
    pub connection: Connection,
    /// Where rows go.
    pub target: Target,
    /// How they are shown.
    pub settings: Settings,
}

impl Runner {
    /// A runner.
    pub fn new(connection: Connection, target: Target, settings: Settings) -> Self {
        Self { connection, target, settings }
    }

    /// Runs a statement; Ctrl-C cancels it, here and on the server. Tells whether it gave rows.
    pub async fn interruptible(&mut self, sql: &str) -> Result<bool, Failure> {
        tokio::select! {
            biased;
            interrupted = tokio::signal::ctrl_c() => Err(interrupted.map_or_else(Failure::Output, |()| Failure::Cancelled)),
            ended = self.statement(sql) => ended,
        }
    }

    async fn statement(&mut self, sql: &str) -> Result<bool, Failure> {
        let started = Instant::now();
        let mut spinner = Spinner::new(started, self.settings.spinner);
        match spinner.watch(self.connection.run(sql)).await? {
            Outcome::Rows(rows) => {
                let shown = self.rows(rows, &mut spinner).await?;
                spinner.clear();
                self.say(&shown.summary(), started.elapsed())?;
                Ok(true)
            }
            Outcome::Count(count) => {
                spinner.clear();
                self.say(&affected(count.filter(|&rows| rows > 0 || counts_rows(sql))), started.elapsed())?;
                Ok(false)
            }
        }
    }

    /// Writes rows as they come, up to where the format has enough.
    async fn rows(&mut self, mut rows: Rows, spinner: &mut Spinner) -> Result<Shown, Failure> {
        let format = self.settings.format;
        let streams_to_screen = format != Format::Table && self.target.is_terminal();
        let mut writer = self.target.begin(format, &rows.schema(), &self.settings.layout)?;
        let mut received = 0;
        while let Some(batch) = spinner.watch(rows.try_next()).await? {
            received += batch.num_rows();
            spinner.rows(received);
            if streams_to_screen {
                spinner.clear();
            }
            if writer.write(&batch)? == Flow::Enough {
                break;
            }
        }
        drop(rows); // cancels what was not wanted
        spinner.clear();
        let shown = writer.finish()?;
        drop(writer);
        self.target.flush()?;
        Ok(shown)
    }

    /// A line about what was done: beside a table where it is read by a person, else on stderr, out of the rows' way.
    fn say(&mut self, what: &str, took: Duration) -> Result<(), Failure> {
        let line = match (self.settings.counts, self.settings.timing) {
            (false, _) => return Ok(()),
            (true, true) => format!("({what}, {})\n", seconds(took)),
            (true, false) => format!("({what})\n"),
        };
        if self.settings.format == Format::Table && !self.target.is_file() {
            self.target.write_all(line.as_bytes())?;
            self.target.flush()?;
        } else {
            io::stderr().write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

/// The words for a count.
fn affected(count: Option<u64>) -> String {
    match count {
        None => "done".to_owned(),
        Some(1) => "1 row affected".to_owned(),
        Some(count) => format!("{count} rows affected"),
    }
}

/// Is the count of this statement a number of rows, 0 too? Drivers want a 0 for `CREATE TABLE`, where a person wants to read that it is done.
fn counts_rows(sql: &str) -> bool {
    let first = Pieces::new(sql).find(|(piece, _)| *piece == Piece::Word).and_then(|(_, range)| sql.get(range));
    first.is_some_and(|word| ["INSERT", "UPDATE", "DELETE", "MERGE", "WITH"].iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// A duration in the unit a person would use.
fn seconds(took: Duration) -> String {
    if took < Duration::from_secs(1) { format!("{} ms", took.as_millis()) } else { format!("{:.2} s", took.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(affected(None), "done");
        assert_eq!(affected(Some(0)), "0 rows affected");
        assert_eq!(affected(Some(1)), "1 row affected");
        assert!(counts_rows("-- none\n delete FROM t") && !counts_rows("DROP TABLE t") && !counts_rows("SET a = 'update'"));
        assert_eq!(seconds(Duration::from_micros(12_600)), "12 ms");
        assert_eq!(seconds(Duration::from_millis(1_234)), "1.23 s");
    }
}
