//! Streams that are being made, so that one can be cancelled by its ticket, and so that the log says how each ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// The streams of a server by ticket id. One ticket may be read by several clients at once.
#[derive(Clone, Debug, Default)]
pub struct Running {
    streams: Arc<Mutex<HashMap<String, Vec<CancellationToken>>>>,
}

/// One stream's place among the running; leaves when dropped.
#[derive(Debug)]
pub struct Entry {
    running: Running,
    id: String,
    principal: String,
    token: CancellationToken,
    started: Instant,
    ended: bool,
}

impl Running {
    /// A stream begins. The token says when it is to end early.
    pub fn enter(&self, id: &str, principal: &str) -> (CancellationToken, Entry) {
        let token = CancellationToken::new();
        self.streams.lock().entry(id.to_owned()).or_default().push(token.clone());
        let entry = Entry {
            running: self.clone(),
            id: id.to_owned(),
            principal: principal.to_owned(),
            token: token.clone(),
            started: Instant::now(),
            ended: false,
        };
        (token, entry)
    }

    /// Ends the streams of a ticket; `false` when none is running.
    pub fn cancel(&self, id: &str) -> bool {
        match self.streams.lock().get(id) {
            Some(tokens) => {
                tokens.iter().for_each(CancellationToken::cancel);
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
            Err(Error::Cancelled(by)) => tracing::info!(principal = self.principal, ticket = self.id, by, ms, "query cancelled"),
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
        self.token.cancel();
        let mut streams = self.running.streams.lock();
        if let Some(tokens) = streams.get_mut(&self.id) {
            tokens.retain(|token| !token.is_cancelled());
            if tokens.is_empty() {
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
        let (first, entry) = running.enter("t", "anonymous");
        let (second, mut other) = running.enter("t", "anonymous");
        assert!(!running.cancel("u"));
        other.ended(&Ok(3));
        drop(other);
        assert!(second.is_cancelled() && !first.is_cancelled());
        assert_eq!(running.len(), 1);
        assert!(running.cancel("t"));
        assert!(first.is_cancelled());
        drop(entry);
        assert!(running.is_empty());
        assert!(!running.cancel("t"));
    }
}
