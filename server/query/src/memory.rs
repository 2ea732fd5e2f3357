//! A statement's share of the memory that all statements have together.
//!
//! Bytes are taken from both: what would go over the statement's limit is refused as if the server's memory were full, so that sorts, joins
//! and aggregates spill; one that cannot spill fails, and the others go on.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;

/// A statement's pool within the server's.
#[derive(Debug)]
pub(crate) struct StatementPool {
    own: FairSpillPool,
    shared: Arc<dyn MemoryPool>,
    limit: usize,
}

impl StatementPool {
    /// The server's runtime for one statement, which takes no more than `limit` bytes.
    pub(crate) fn within(runtime: &RuntimeEnv, limit: usize) -> RuntimeEnv {
        let pool = Self { own: FairSpillPool::new(limit), shared: Arc::clone(&runtime.memory_pool), limit };
        RuntimeEnv { memory_pool: Arc::new(pool), ..runtime.clone() }
    }

    fn explained(&self, error: DataFusionError) -> DataFusionError {
        match error {
            // Of this kind it must stay: it is what makes operators spill.
            DataFusionError::ResourcesExhausted(text) => {
                DataFusionError::ResourcesExhausted(format!("{text} (a statement may take {} bytes: statement_memory_limit)", self.limit))
            }
            other => other,
        }
    }
}

impl fmt::Display for StatementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({} of {} bytes)", self.name(), self.own.reserved(), self.limit)
    }
}

impl MemoryPool for StatementPool {
    fn name(&self) -> &'static str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.own.register(consumer);
        self.shared.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.own.unregister(consumer);
        self.shared.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.shared.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.shared.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.own.try_grow(reservation, additional).map_err(|e| self.explained(e))?;
        self.shared.try_grow(reservation, additional).inspect_err(|_| self.own.shrink(reservation, additional))
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    #[test]
    fn a_statement_takes_from_both_limits() {
        let shared: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(1000));
        let server = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&shared)).build().unwrap();
        let pools = [StatementPool::within(&server, 700).memory_pool, StatementPool::within(&server, 700).memory_pool];
        let [a, b] = pools.each_ref().map(|pool| MemoryConsumer::new("sort").register(pool));
        a.try_grow(600).unwrap();
        let refused = a.try_grow(101).unwrap_err().to_string();
        assert!(refused.contains("statement_memory_limit"), "{refused}");
        let refused = b.try_grow(500).unwrap_err().to_string();
        assert!(!refused.contains("statement_memory_limit"), "{refused}");
        assert_eq!((pools[0].reserved(), pools[1].reserved(), shared.reserved()), (600, 0, 600));
        b.try_grow(400).unwrap();
        drop(a);
        b.try_grow(300).unwrap();
        drop(b);
        assert_eq!(shared.reserved(), 0);
    }
}
