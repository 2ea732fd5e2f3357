//! The server.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use asof_flight::config::{Config, ConfigError, Settings};
use asof_flight::server::{ServeError, Server};
use asof_flight::telemetry;
use asof_storage::Env;
use clap::{Args, Parser, Subcommand};
use tokio::runtime::{Builder, Runtime};

/// Batches are allocated and freed on several threads all the time, which this allocator does without asking the kernel each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Stack of a thread that plans: plans are trees, and are walked by recursion. Only what is touched takes memory.
const PLANNING_STACK: usize = 64 << 20;
/// Threads that serve sockets: they only move encoded messages.
const WIRE_THREADS: usize = 2;

/// A SQL server for lakehouse tables in which every query says which moment it reads.
#[derive(Debug, Parser)]
#[command(name = "asofd", version)]
struct Asofd {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a warehouse over Arrow Flight SQL
    Serve(Box<Serve>),
}

#[derive(Args, Debug)]
struct Serve {
    /// A TOML file with the same settings, words joined by underscores
    #[arg(long, env = "ASOF_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

fn main() -> ExitCode {
    let Asofd { command: Command::Serve(serve) } = Asofd::parse();
    let config = match configured(*serve) {
        Ok(config) => config,
        Err(error) => {
            say(std::io::stderr(), &format!("asofd: {error}"));
            return ExitCode::from(2);
        }
    };
    match run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(std::io::stderr(), &format!("asofd: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn configured(serve: Serve) -> Result<Config, ConfigError> {
    let file = serve.config.as_deref().map(Settings::from_file).transpose()?.unwrap_or_default();
    let config = serve.settings.or(file).complete()?;
    telemetry::start(&config)?;
    Ok(config)
}

fn run(config: &Config) -> Result<(), Box<dyn std::error::Error>> {
    let cpu = runtime("cpu", config.cpu_threads)?;
    let wire = runtime("wire", WIRE_THREADS)?;
    let served = wire.block_on(serve(config, cpu.handle().clone()));
    // What still runs was given its time; a blocking read of a stuck disk must not keep the process.
    wire.shutdown_background();
    cpu.shutdown_background();
    Ok(served?)
}

async fn serve(config: &Config, cpu: tokio::runtime::Handle) -> Result<(), ServeError> {
    let stop = stopped();
    let server = Server::open(config, Env::system(), cpu).await?;
    tracing::info!(address = %server.address(), warehouse = config.warehouse, catalog = config.catalog, "serving");
    say(std::io::stdout(), &format!("asofd listening on {}", server.address()));
    server.serve(stop).await?;
    tracing::info!(indexes = ?asof_storage::delta::index_metrics(), "ended");
    Ok(())
}

fn runtime(name: &'static str, threads: usize) -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(threads).thread_name(name).thread_stack_size(PLANNING_STACK).enable_all().build()
}

/// SIGTERM or Ctrl-C. Heard from now on, not only when awaited: a signal at startup counts.
#[cfg(unix)]
fn stopped() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
    async move {
        let waits = signals.into_iter().flatten().map(|mut signal| Box::pin(async move { signal.recv().await }));
        futures::future::select_all(waits).await;
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
async fn stopped() {
    tokio::signal::ctrl_c().await.ok();
}

/// One line; nobody may be listening.
fn say(mut to: impl Write, line: &str) {
    writeln!(to, "{line}").and_then(|()| to.flush()).ok();
}
