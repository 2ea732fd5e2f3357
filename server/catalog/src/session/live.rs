//! All live sessions of a server.
//!
//! A client that never sends its key back makes a session with each request. Such sessions hold nothing, so when there are too many the
//! oldest of them go; when even that does not help, a request gets a transient one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use asof_storage::Env;
use parking_lot::Mutex;

use super::{Naming, Session, SessionKey};
use crate::error::{Error, Result};

/// Most sessions at one time.
const MOST: usize = 100_000;

/// All live sessions of a server.
#[derive(Debug)]
pub struct Sessions {
    env: Env,
    ttl: Duration,
    home: (String, String),
    most: usize,
    live: Mutex<HashMap<SessionKey, Arc<Session>>>,
}

impl Sessions {
    /// None yet. `ttl`: how long one lives after its last use; `catalog` and `schema`: where each starts.
    pub fn new(env: Env, ttl: Duration, catalog: &str, schema: &str) -> Self {
        Self { env, ttl, home: (catalog.to_owned(), schema.to_owned()), most: MOST, live: Mutex::default() }
    }

    /// The same with another limit than 100,000 sessions.
    #[must_use]
    pub fn with_most(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// A new session for a principal (`anonymous`), whose key the client is told.
    pub fn open(&self, principal: &str) -> Arc<Session> {
        self.add(principal, true)
    }

    /// A new session for a request that came without a key: until the key comes back, nothing can be set in it.
    pub fn offer(&self, principal: &str) -> Arc<Session> {
        self.add(principal, false)
    }

    fn add(&self, principal: &str, kept: bool) -> Arc<Session> {
        let mut live = self.live.lock();
        if live.len() >= self.most {
            self.make_room(&mut live);
        }
        if live.len() >= self.most {
            tracing::warn!(sessions = live.len(), "too many sessions: this request's ends with it");
            return self.transient(principal);
        }
        let session = Session::new(self.env.clone(), principal, self.home.clone(), self.at_home(), true, kept);
        live.insert(session.key().clone(), Arc::clone(&session));
        session
    }

    /// By key, touched; `NoSession` when unknown or expired. The client has it, then: it may set things from now on.
    ///
    /// # Errors
    /// `NoSession`.
    pub fn get(&self, key: &SessionKey) -> Result<Arc<Session>> {
        let session = self.look_up(key)?;
        session.confirm();
        Ok(session)
    }

    /// By key, touched, where the client showed something of the session's (a handle) and not its key.
    ///
    /// # Errors
    /// `NoSession`.
    pub fn look_up(&self, key: &SessionKey) -> Result<Arc<Session>> {
        let now = self.env.clock.now();
        let mut live = self.live.lock();
        let session = live.get(key).cloned().ok_or(Error::NoSession)?;
        // The map and this function hold one each; more means that a statement of it is running.
        if session.idle(now) > self.ttl && Arc::strong_count(&session) <= 2 {
            live.remove(key);
            return Err(Error::NoSession);
        }
        session.touch(now);
        Ok(session)
    }

    /// Release it and all it holds; idempotent. `false` when there was none.
    pub fn close(&self, key: &SessionKey) -> bool {
        self.live.lock().remove(key).is_some()
    }

    /// A session of its own for a request that carries none and gets none: reads work, `SET` does not stay.
    pub fn transient(&self, principal: &str) -> Arc<Session> {
        self.restore(principal, self.at_home())
    }

    /// A transient session that understands texts as another one did: from a ticket.
    pub fn restore(&self, principal: &str, naming: Naming) -> Arc<Session> {
        Session::new(self.env.clone(), principal, self.home.clone(), naming, false, false)
    }

    /// Drop the expired; how many. A session with a statement running is in use.
    pub fn sweep(&self) -> usize {
        let mut live = self.live.lock();
        let before = live.len();
        self.drop_expired(&mut live);
        before - live.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.live.lock().len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn at_home(&self) -> Naming {
        let (catalog, schema) = self.home.clone();
        Naming { catalog, schema, ..Naming::default() }
    }

    fn drop_expired(&self, live: &mut HashMap<SessionKey, Arc<Session>>) {
        let now = self.env.clock.now();
        live.retain(|_, session| {
            if Arc::strong_count(session) > 1 {
                session.touch(now);
            }
            session.idle(now) <= self.ttl
        });
    }

    /// Drops the expired; when that is not enough, a tenth of all, oldest first, of those that hold nothing.
    fn make_room(&self, live: &mut HashMap<SessionKey, Arc<Session>>) {
        self.drop_expired(live);
        if live.len() < self.most {
            return;
        }
        let now = self.env.clock.now();
        let mut pristine: Vec<(Duration, SessionKey)> = live
            .values()
            .filter(|session| Arc::strong_count(session) == 1 && session.is_pristine())
            .map(|session| (session.idle(now), session.key().clone()))
            .collect();
        pristine.sort_by_key(|(idle, _)| std::cmp::Reverse(*idle));
        for (_, key) in pristine.into_iter().take(self.most / 10 + 1) {
            live.remove(&key);
        }
    }
}
