//! Names over real folders, sessions under a clock that the test turns.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod sessions;
mod warehouse;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use asof_storage::{Clock, Entropy, Env, Micros};

/// A clock that stands until it is turned, and ids that count.
#[derive(Debug, Default)]
pub struct Fixed {
    now: AtomicI64,
    ids: AtomicU64,
}

impl Fixed {
    pub fn env() -> (Env, Arc<Self>) {
        let fixed = Arc::new(Self { now: AtomicI64::new(1_700_000_000_000_000), ids: AtomicU64::default() });
        (Env { clock: Arc::clone(&fixed) as Arc<dyn Clock>, entropy: Arc::clone(&fixed) as Arc<dyn Entropy> }, fixed)
    }

    pub fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for Fixed {
    fn now(&self) -> Micros {
        Micros(self.now.load(Ordering::Relaxed))
    }
}

impl Entropy for Fixed {
    fn uuid(&self) -> uuid::Uuid {
        uuid::Uuid::from_u64_pair(7, self.ids.fetch_add(1, Ordering::Relaxed))
    }

    fn number(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }
}
