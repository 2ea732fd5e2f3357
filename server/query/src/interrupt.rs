//! Ending a statement before it is done.
//!
//! Dropping a future stops it where it next waits, and a task's abortion where its poll returns. A join whose filter lets nothing pass
//! does neither for minutes: so whoever runs a statement holds an [`Interrupt`], and work that may go on for long looks at it
//! ([`crate::plan::guard`]).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// Why a statement ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nobody waits for it any more.
    Gone,
    /// Its client asked for it.
    Asked,
    /// The session's `statement_timeout` is over.
    Timeout(Duration),
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Gone => Self::Cancelled("the client is gone".to_owned()),
            Reason::Asked => Self::Cancelled("by CancelFlightInfo".to_owned()),
            Reason::Timeout(limit) => Self::Timeout(limit),
        }
    }
}

/// One statement's: raised at most once. Clones are the same interrupt.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    raised: CancellationToken,
    reason: Arc<OnceLock<Reason>>,
}

impl Interrupt {
    /// Not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the statement; the first reason stays.
    pub fn raise(&self, reason: Reason) {
        self.reason.get_or_init(|| reason);
        self.raised.cancel();
    }

    /// Why it was raised, if it was.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.reason.get().copied()
    }

    /// Goes on unless raised.
    ///
    /// # Errors
    /// `Cancelled`, `Timeout`.
    pub fn check(&self) -> Result<()> {
        self.reason().map_or(Ok(()), |reason| Err(reason.into()))
    }

    /// Waits until it is raised.
    pub async fn wait(&self) -> Reason {
        self.raised.cancelled().await;
        self.reason().unwrap_or(Reason::Gone)
    }

    /// Whether both are the same interrupt.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.reason, &other.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays() {
        let interrupt = Interrupt::new();
        let other = interrupt.clone();
        assert!(other.check().is_ok() && other.is(&interrupt) && !other.is(&Interrupt::new()));
        interrupt.raise(Reason::Asked);
        interrupt.raise(Reason::Gone);
        assert_eq!(other.wait().await, Reason::Asked);
        assert!(matches!(other.check(), Err(Error::Cancelled(_))));
    }
}
