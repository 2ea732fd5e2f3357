//! A real `asofd` over a warehouse of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
}

/// `ASOFD`, or the program beside this test's folder (`target/debug`).
fn program() -> PathBuf {
    match std::env::var_os("ASOFD") {
        Some(path) => path.into(),
        None => std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("asofd"),
    }
}

impl Server {
    /// Start one and wait until it says that it listens.
    pub fn start(warehouse: &Path) -> Self {
        let program = program();
        let mut child = Command::new(&program)
            .args(["serve", "--listen", "127.0.0.1:0", "--warehouse"])
            .arg(warehouse)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}: build it with cargo build --bins", program.display()));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("asofd listening on ").unwrap_or_else(|| panic!("not ready: {line:?}")).to_owned();
        Self { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
