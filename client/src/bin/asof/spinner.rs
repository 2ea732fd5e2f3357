//! A sign of life while the server works, on stderr, and only where somebody looks at it.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// A statement that is answered sooner shows none.
const DELAY: Duration = Duration::from_millis(400);
const TICK: Duration = Duration::from_millis(100);

/// Turns while work is waited for; gone when dropped.
#[derive(Debug)]
pub struct Spinner {
    started: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// For work that began at this moment.
    pub fn new(started: Instant, wanted: bool) -> Self {
        Self { started, wanted, bar: None }
    }

    /// Waits for work, turning when it takes long.
    pub async fn watch<T>(&mut self, work: impl Future<Output = T>) -> T {
        if !self.wanted || self.bar.is_some() {
            return work.await;
        }
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(DELAY.saturating_sub(self.started.elapsed())) => self.show(),
        }
        work.await
    }

    /// Says how many rows have come.
    pub fn rows(&self, rows: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{rows} rows"));
        }
    }

    /// Goes, since something else will be written.
    pub fn clear(&mut self) {
        self.wanted = false;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn show(&mut self) {
        let bar = ProgressBar::new_spinner().with_elapsed(self.started.elapsed());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg} (Ctrl-C cancels)") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.clear();
    }
}
