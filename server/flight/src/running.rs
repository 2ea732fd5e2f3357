//! Streams that are being made, so that one can be cancelled by its ticket, and so that the log says how each ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use asof_query::{Error as QueryError, Interrupt, Reason};
use parking_lot::Mutex;

use crate::error::{Error, Result};

/// The streams of a server by ticket id. One ticket may be read by several clients at once.
#[derive(Clone, Debug, Default)]
pub struct Running {
    streams: Arc<Mutex<HashMap<String, Vec<Interrupt>>>>,
}

/// One stream's place among the running; leaves when dropped.
#[derive(Debug)]
pub struct Entry {
    running: Running,
    id: String,
    principal: String,
    interrupt: Interrupt,
    started: Instant,
    ended: bool,
}

impl Running {
    /// A stream begins, which the interrupt ends early.
    pub fn enter(&self, id: &str, principal: &str, interrupt: &Interrupt) -> Entry {
        self.streams.lock().entry(id.to_owned()).or_default().push(interrupt.clone());
        Entry {
            running: self.clone(),
            id: id.to_owned(),
            principal: principal.to_owned(),
            interrupt: interrupt.clone(),
            started: Instant::now(),
            ended: false,
        }
    }

    /// Ends the streams of a ticket; `false` when none is running.
    pub fn cancel(&self, id: &str) -> bool {
        match self.streams.lock().get(id) {
            Some(interrupts) => {
                interrupts.iter().for_each(|interrupt| interrupt.raise(Reason::Asked));
                true
            }
            None => false,
        }
    }

    /// How many streams there are.
    pub fn len(&self) -> usize {
        self.streams.lock().values().map(Vec::len).sum()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Entry {
    /// Says how the stream ended; one that never says was dropped by its client.
    pub fn ended(&mut self, how: &Result<u64>) {
        self.ended = true;
        let ms = self.started.elapsed().as_millis();
        match how {
            Ok(rows) => tracing::info!(principal = self.principal, ticket = self.id, rows, ms, "query ran"),
            Err(Error::Query(QueryError::Cancelled(by))) => {
                tracing::info!(principal = self.principal, ticket = self.id, by, ms, "query cancelled");
            }
            Err(error) => tracing::info!(principal = self.principal, ticket = self.id, %error, ms, "query failed"),
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.ended {
            let ms = self.started.elapsed().as_millis();
            tracing::info!(principal = self.principal, ticket = self.id, ms, "query cancelled: the client is gone");
        }
        let mut streams = self.running.streams.lock();
        if let Some(interrupts) = streams.get_mut(&self.id) {
            interrupts.retain(|interrupt| !interrupt.is(&self.interrupt));
            if interrupts.is_empty() {
                streams.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_s_streams_are_cancelled_together_and_leave_one_by_one() {
        let running = Running::default();
        let (first, second, left) = (Interrupt::new(), Interrupt::new(), Interrupt::new());
        let entry = running.enter("t", "anonymous", &first);
        let another = running.enter("t", "anonymous", &second);
        let mut ended = running.enter("t", "anonymous", &left);
        assert!(!running.cancel("u"));
        ended.ended(&Ok(3));
        drop(ended);
        assert_eq!(running.len(), 2);
        assert!(running.cancel("t"));
        assert!(first.reason() == Some(Reason::Asked) && second.reason() == Some(Reason::Asked) && left.reason().is_none());
        drop(another);
        drop(entry);
        assert!(running.is_empty());
        assert!(!running.cancel("t"));
    }
}
