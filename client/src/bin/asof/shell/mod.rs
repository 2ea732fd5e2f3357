//! The shell: a person types statements and looks at what they give.
//!
//! A statement ends with `;` and may take many lines. A line that begins with `\` is a command of the shell's own. An error is told
//! and forgotten; Ctrl-C cancels a statement that runs, or the line that is typed, and Ctrl-D leaves.

mod command;
mod completion;
mod editor;

use std::io::{self, Write};

use asof_client::Connection;
use asof_client::script::Script;
use reedline::{FileBackedHistory, Reedline, Signal};

use crate::failure::{Failure, Source};
use crate::output::Target;
use crate::runner::Runner;
use command::{Command, HELP};
use completion::Names;
use editor::{ShellPrompt, reedline};

/// Whether the shell goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Prompt,
    Leave,
}

/// Reads and runs until the person leaves.
pub fn run(runtime: &tokio::runtime::Runtime, runner: &mut Runner) -> Result<(), Failure> {
    let mut shell = Shell { runtime, runner, names: Names::default() };
    shell.greet()?;
    shell.learn_names();
    let mut line_editor: Reedline = reedline(&shell.names, history());
    loop {
        match line_editor.read_line(&ShellPrompt).map_err(|error| Failure::Output(io::Error::other(error)))? {
            Signal::Success(text) if shell.take(&text) == Next::Leave => return Ok(()),
            Signal::CtrlD => return Ok(()),
            _ => {}
        }
    }
}

/// Where lines that were typed are kept; a shell without one works too.
fn history() -> Option<FileBackedHistory> {
    let path = std::env::var_os("ASOF_HISTORY").map(Into::into).or_else(|| Some(dirs::data_dir()?.join("asof").join("history")))?;
    FileBackedHistory::with_file(10_000, path).ok()
}

struct Shell<'a> {
    runtime: &'a tokio::runtime::Runtime,
    runner: &'a mut Runner,
    names: Names,
}

impl Shell<'_> {
    fn greet(&self) -> io::Result<()> {
        let server = self.runner.connection.server();
        let who = format!("{} {}", server.name, server.version);
        let address = self.runner.connection.address();
        writeln!(io::stdout(), "{} at {address}. Statements end with `;`, \\? is help, \\q leaves.", who.trim())
    }

    /// Asks for table names, for completion. Not knowing them is no reason to disturb.
    fn learn_names(&self) {
        let (connection, names) = (self.runner.connection.clone(), self.names.clone());
        self.runtime.spawn(async move {
            if let Ok(tables) = connection.tables().await {
                names.replace(&tables);
            }
        });
    }

    /// Takes what was typed: a command, or statements.
    fn take(&mut self, text: &str) -> Next {
        if text.trim_start().starts_with('\\') {
            return match Command::parse(text.trim()) {
                Ok(Command::Quit) => Next::Leave,
                Ok(command) => self.heed(self::describe, |shell| shell.obey(command)),
                Err(words) => self.heed(self::describe, |_| Err(Failure::Usage(words))),
            };
        }
        for statement in Script::cut(text).all() {
            let mut failed = false;
            self.heed(
                |failure| {
                    failed = true;
                    failure.describe(&Source::command().at(statement), true)
                },
                |shell| shell.statement(statement.text),
            );
            if failed {
                break; // what follows may need what failed
            }
        }
        Next::Prompt
    }

    /// Does something, and tells why it did not work.
    fn heed(&mut self, tell: impl FnOnce(&Failure) -> String, what: impl FnOnce(&mut Self) -> Result<(), Failure>) -> Next {
        if let Err(failure) = what(self) {
            // A shell whose terminal is gone learns it from the next prompt.
            let _ = io::stderr().write_all(tell(&failure).as_bytes());
        }
        Next::Prompt
    }

    fn statement(&mut self, sql: &str) -> Result<(), Failure> {
        let gave_rows = self.runtime.block_on(self.runner.interruptible(sql))?;
        if !gave_rows {
            self.learn_names(); // it may have made or dropped a table
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) -> Result<(), Failure> {
        let settings = &mut self.runner.settings;
        match command {
            Command::Quit => Ok(()),
            Command::Help => Ok(io::stdout().write_all(HELP.as_bytes())?),
            Command::Statement(sql) => self.statement(&sql),
            Command::Expanded(choice) => {
                settings.layout.expanded = choice;
                Ok(())
            }
            Command::Timing(choice) => {
                settings.timing = choice.unwrap_or(!settings.timing);
                Ok(())
            }
            Command::Rows(most) => {
                settings.layout.max_rows = (most > 0).then_some(most);
                Ok(())
            }
            Command::Format(format) => {
                settings.format = format;
                Ok(())
            }
            Command::Output(path) => {
                self.runner.target.finish(true)?;
                self.runner.target = Target::open(path.as_deref())?;
                Ok(())
            }
            Command::Include(path) => self.include(&path),
            Command::Connect(address) => self.connect(address),
        }
    }

    fn include(&mut self, path: &str) -> Result<(), Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::Usage(format!("cannot read {path}: {error}")))?;
        for statement in Script::cut(&text).all() {
            if let Err(failure) = self.statement(statement.text) {
                let _ = io::stderr().write_all(failure.describe(&Source::file(path).at(statement), true).as_bytes());
                break;
            }
        }
        Ok(())
    }

    /// A new session: at another address, or at the same one after it was lost.
    fn connect(&mut self, address: Option<String>) -> Result<(), Failure> {
        let address = address.unwrap_or_else(|| self.runner.connection.address().to_owned());
        let connection = self.runtime.block_on(Connection::connect(&address))?;
        let former = std::mem::replace(&mut self.runner.connection, connection);
        // It may well be the reason for connecting anew that the former session is gone.
        let _ = self.runtime.block_on(former.close());
        self.learn_names();
        Ok(self.greet()?)
    }
}

fn describe(failure: &Failure) -> String {
    failure.describe(&Source::none(), true)
}
