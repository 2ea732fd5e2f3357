//! The program `asof`: ask a server from the command line, from a script, or at a shell.
//!
//! Results go to stdout (or `--output`), everything else to stderr. It ends with 0, with 1 when the server refused a statement or
//! could not be reached or a result could not be written, with 2 when it was called wrongly, and with 130 when it was interrupted.

mod args;
mod failure;
mod output;
mod runner;
mod shell;
mod spinner;

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use asof_client::script::{Open, Script};
use asof_client::{Address, Connection};
use clap::Parser;

use args::Args;
use failure::{Failure, Source};
use output::Target;
use runner::{Runner, Settings};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::Output(error).report(&Source::none()),
    };
    match run(&runtime, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

/// A text to run, and where it came from.
struct Input {
    source: Source<'static>,
    text: String,
}

fn run(runtime: &tokio::runtime::Runtime, args: &Args) -> Result<(), ExitCode> {
    let nowhere = Source::none();
    let address: Address = args.uri.parse().map_err(|error| Failure::from(error).report(&nowhere))?;
    let inputs = inputs(args).map_err(|failure| failure.report(&nowhere))?;
    let interactive = inputs.is_empty();
    let connection = runtime.block_on(Connection::connect_to(&address)).map_err(|error| Failure::from(error).report(&nowhere))?;
    let target = Target::open(args.output.as_deref()).map_err(|failure| failure.report(&nowhere))?;
    let mut runner = Runner::new(connection, target, Settings::new(args, interactive));
    let ended = if interactive {
        shell::run(runtime, &mut runner).map_err(|failure| failure.report(&nowhere))
    } else {
        inputs.iter().try_for_each(|input| script(runtime, &mut runner, input))
    };
    let finished = runner.target.finish(ended.is_ok()).map_err(|failure| failure.report(&nowhere));
    // The answers are already shown; a session that cannot be closed ends on the server by itself.
    let _ = runtime.block_on(runner.connection.close());
    ended.and(finished)
}

/// What to run: commands first, then files, or else standard input when nobody types at it.
fn inputs(args: &Args) -> Result<Vec<Input>, Failure> {
    let commands = args.command.iter().map(|text| Ok(Input { source: Source::command(), text: text.clone() }));
    let files = args.file.iter().map(|path| {
        let text = if path.as_os_str() == "-" { io::read_to_string(io::stdin()) } else { fs::read_to_string(path) };
        let name = path.display().to_string();
        text.map(|text| Input { source: Source::file(&name), text }).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))
    });
    let mut inputs = commands.chain(files).collect::<Result<Vec<_>, _>>()?;
    if inputs.is_empty() && !io::stdin().is_terminal() {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| Failure::Usage(format!("cannot read standard input: {error}")))?;
        inputs.push(Input { source: Source::file("<stdin>"), text });
    }
    Ok(inputs)
}

/// Runs the statements of a text up to the first that fails.
fn script(runtime: &tokio::runtime::Runtime, runner: &mut Runner, input: &Input) -> Result<(), ExitCode> {
    let script = Script::cut(&input.text);
    if script.open == Some(Open::Comment) {
        let failure =
            Failure::Usage("the text ends inside a comment: /* without its */ would hide what follows; nothing was run".to_owned());
        return Err(failure.report(&input.source));
    }
    script.all().try_for_each(|statement| {
        runtime.block_on(runner.interruptible(statement.text)).map(drop).map_err(|failure| failure.report(&input.source.at(statement)))
    })
}
