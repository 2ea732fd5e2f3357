//! What a line that begins with `\` asks for.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::output::{Expanded, Format};

/// What `\?` shows.
pub const HELP: &str = "\
\\?                     this help
\\q                     leave (also Ctrl-D)
\\d                     tables            \\dn  schemas            \\dv  views
\\d TABLE               columns of a table
\\history TABLE         who changed it, when, and how
\\x [on|off|auto]       rows one below the other
\\timing [on|off]       show how long a statement took
\\rows N                show at most N rows of a table, 0 for all
\\format FORMAT         table, csv, json, arrow or parquet
\\o [FILE]              write rows to a file; without a name, to the screen again
\\i FILE                run a file
\\c [URI]               connect anew
Statements end with `;`. Tab completes, Ctrl-R searches the history, Ctrl-C cancels.
A table as it was:      SELECT * FROM t VERSION AS OF 3;
                       SELECT * FROM t TIMESTAMP AS OF '2026-01-08 12:00:00';
";

/// A command of the shell's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Quit,
    /// A short hand for this statement.
    Statement(String),
    Expanded(Expanded),
    /// The other way round without a choice.
    Timing(Option<bool>),
    Rows(usize),
    Format(Format),
    Output(Option<PathBuf>),
    Include(String),
    Connect(Option<String>),
}

impl Command {
    /// Reads a line; the error says what would have been right.
    pub fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim_end_matches([';', ' ']);
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let argument = (!rest.is_empty()).then_some(rest);
        let needed = |what: &str| argument.map(str::to_owned).ok_or_else(|| format!("{name} needs {what}; \\? is help"));
        Ok(match name {
            "\\?" | "\\h" | "\\help" => Self::Help,
            "\\q" | "\\quit" | "\\exit" => Self::Quit,
            "\\d" | "\\dt" => Self::Statement(argument.map_or_else(|| "SHOW TABLES".into(), |table| format!("DESCRIBE {table}"))),
            "\\dn" => Self::Statement("SHOW SCHEMAS".into()),
            "\\dv" => Self::Statement("SHOW VIEWS".into()),
            "\\history" => Self::Statement(format!("DESCRIBE HISTORY {}", needed("a table")?)),
            "\\x" => Self::Expanded(match argument {
                None | Some("on") => Expanded::On,
                Some("off") => Expanded::Off,
                Some("auto") => Expanded::Auto,
                Some(other) => return Err(format!("\\x takes on, off or auto, not `{other}`")),
            }),
            "\\timing" => Self::Timing(match argument {
                None => None,
                Some("on") => Some(true),
                Some("off") => Some(false),
                Some(other) => return Err(format!("\\timing takes on or off, not `{other}`")),
            }),
            "\\rows" => Self::Rows(needed("a number")?.parse().map_err(|_| format!("`{rest}` is no number of rows"))?),
            "\\format" => Self::Format(
                Format::from_str(&needed("a format")?, true)
                    .map_err(|_| format!("`{rest}` is no format; they are table, csv, json, arrow and parquet"))?,
            ),
            "\\o" => Self::Output(argument.map(PathBuf::from)),
            "\\i" => Self::Include(needed("a file")?),
            "\\c" | "\\connect" => Self::Connect(argument.map(str::to_owned)),
            _ => return Err(format!("there is no command {name}; \\? is help")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let check = |line: &str, expect: Result<Command, &str>| match (Command::parse(line), expect) {
            (Ok(got), Ok(expect)) => assert_eq!(got, expect, "{line}"),
            (Err(got), Err(expect)) => assert!(got.contains(expect), "{line}: {got}"),
            (got, expect) => panic!("{line}: {got:?}, not {expect:?}"),
        };
        check("\\?", Ok(Command::Help));
        check("\\q;", Ok(Command::Quit));
        check("\\d", Ok(Command::Statement("SHOW TABLES".into())));
        check("\\d  main.t ;", Ok(Command::Statement("DESCRIBE main.t".into())));
        check("\\history t", Ok(Command::Statement("DESCRIBE HISTORY t".into())));
        check("\\history", Err("needs a table"));
        check("\\x", Ok(Command::Expanded(Expanded::On)));
        check("\\x auto", Ok(Command::Expanded(Expanded::Auto)));
        check("\\x maybe", Err("not `maybe`"));
        check("\\timing", Ok(Command::Timing(None)));
        check("\\timing off", Ok(Command::Timing(Some(false))));
        check("\\rows 0", Ok(Command::Rows(0)));
        check("\\rows x", Err("no number"));
        check("\\format JSON", Ok(Command::Format(Format::Json)));
        check("\\format xml", Err("parquet"));
        check("\\o", Ok(Command::Output(None)));
        check("\\o a b.csv", Ok(Command::Output(Some("a b.csv".into()))));
        check("\\c", Ok(Command::Connect(None)));
        check("\\nonsense", Err("no command \\nonsense"));
    }
}
