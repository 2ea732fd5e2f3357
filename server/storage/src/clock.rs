//! The only source of time, randomness and ids, so that tests can rule them.

use std::fmt::Debug;
use std::sync::Arc;

use uuid::Uuid;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub i64);

impl Micros {
    /// From milliseconds since the epoch, the unit of Delta's log.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1000))
    }

    /// Milliseconds since the epoch, rounded down.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }
}

/// RFC 3339 in UTC with as many decimals as needed: `2026-01-01T03:00:00Z`, `…00.123Z`.
impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match chrono::DateTime::from_timestamp_micros(self.0) {
            Some(t) => f.write_str(&t.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)),
            None => write!(f, "{} µs since 1970", self.0),
        }
    }
}

/// Wall-clock time.
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Micros;
}

/// Randomness and ids.
pub trait Entropy: Debug + Send + Sync {
    /// A new random (v4) id.
    fn uuid(&self) -> Uuid;
    /// A uniformly random number, for jitter.
    fn number(&self) -> u64;
}

/// What a component needs from outside to be deterministic in tests.
#[derive(Clone, Debug)]
pub struct Env {
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// Randomness and ids.
    pub entropy: Arc<dyn Entropy>,
}

impl Env {
    /// The machine's own clock and randomness.
    #[must_use]
    pub fn system() -> Self {
        Self { clock: Arc::new(System), entropy: Arc::new(System) }
    }
}

/// The machine's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

#[expect(clippy::disallowed_methods, reason = "the one door through which real time and randomness come in")]
impl Clock for System {
    fn now(&self) -> Micros {
        Micros(chrono::Utc::now().timestamp_micros())
    }
}

#[expect(clippy::disallowed_methods, reason = "the one door through which real time and randomness come in")]
impl Entropy for System {
    fn uuid(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn number(&self) -> u64 {
        let (high, _) = Uuid::new_v4().as_u64_pair();
        high
    }
}
