//! Checkpoints, written after the answer.
//!
//! A checkpoint only makes reading faster, so its failure never fails the statement that caused it: it is logged, and the next one due tries again.
//! One at a time for each table. The kernel refuses to write them for tables with features that it does not write; those go without.

use std::sync::Arc;

use super::log::{Checkpoint, LOG, Listing, head};
use super::table::Inner;
use crate::error::Result;
use crate::snapshot::Version;

impl Inner {
    /// Writes a checkpoint of a version in the background.
    pub(super) fn start_checkpoint(self: &Arc<Self>, version: Version) {
        let table = Arc::clone(self);
        let work = async move {
            let _one_at_a_time = table.checkpointing.lock().await;
            match table.write_checkpoint(version).await {
                Ok(()) => tracing::debug!(table = %table.name, version, "wrote a checkpoint"),
                Err(error) => tracing::warn!(table = %table.name, version, %error, "no checkpoint was written; the commit stands"),
            }
        };
        let mut background = self.background.lock();
        background.retain(|task| !task.is_finished());
        background.push(tokio::spawn(work));
    }

    async fn write_checkpoint(&self, version: Version) -> Result<()> {
        let log = self.observe().await?;
        self.replayed(&log, version, |replay| replay.checkpoint()).await?;
        let path = self.store.child(&format!("{LOG}/{version:020}.checkpoint.parquet"))?;
        let hint = self.store.child(&format!("{LOG}/_last_checkpoint"))?;
        let written = head(&self.store, &path).await?;
        if let Some(meta) = written {
            self.store.sync(&[path, hint]).await?;
            self.learn_checkpoint(&log, Checkpoint { version, parts: vec![meta] }).await;
        }
        Ok(())
    }

    /// Lets later reads start from the new checkpoint.
    async fn learn_checkpoint(&self, seen: &Listing, checkpoint: Checkpoint) {
        let mut known = self.log.lock().await;
        if let Some(log) = known.as_ref().filter(|l| l.incarnation == seen.incarnation) {
            let mut grown = log.as_ref().clone();
            grown.checkpoints.retain(|c| c.version != checkpoint.version);
            grown.checkpoints.push(checkpoint);
            grown.checkpoints.sort_by_key(|c| c.version);
            *known = Some(Arc::new(grown));
        }
    }
}
