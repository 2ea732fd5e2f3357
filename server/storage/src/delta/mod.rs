//! Delta Lake, over delta_kernel.
//!
//! The kernel reads logs and checkpoints; it neither rebases nor restores, sees one log listing at a time and gives up where an intact older
//! version could be read. So listing, times, features, conflict checks and commits are ours, and everything of the kernel stays
//! behind this module.
//!
//! A version is read in three steps: the [`log`] as listed says how it can be rebuilt; its protocol and metadata (from the kernel's replay, or
//! from the version before and one commit file) make a [`Snapshot`](crate::Snapshot); its files make a [`FileIndex`](crate::FileIndex) ([`index`]): by
//! steps from a version known already ([`advance`]), from a checkpoint ([`parts`]), or from the kernel's replay where that is not plain.
//!
//! A version is written in two: a change is staged (data files and deletion vectors on disk, actions made, what the table does not allow
//! refused), then the commit loop gives it a version.

pub mod actions;
mod advance;
mod cache;
mod checkpoint;
mod commit;
mod features;
mod files;
mod history;
mod index;
mod kernel;
mod load;
mod log;
mod metadata;
mod parts;
mod restore;
mod schema;
mod select;
mod shape;
mod stage;
mod statistics;
mod table;
mod vacuum;
mod values;
mod view;
mod widening;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

pub use cache::{IndexMetrics, index_metrics};
pub use metadata::with_column_mapping;
pub use schema::field_text;
pub use table::DeltaTable;
pub use widening::widened;

use crate::index::{Chunk, FileIndex};

/// What Delta keeps of a version: protocol, metadata, and the log as it was listed when the version was resolved.
#[derive(Debug)]
pub struct DeltaSnapshot {
    /// The protocol.
    pub protocol: actions::Protocol,
    /// The metadata, as in the log.
    pub metadata: actions::Metadata,
    log: Arc<log::Listing>,
    shape: Arc<shape::IndexShape>,
}

impl DeltaSnapshot {
    /// The columns of its index.
    pub(crate) fn index_schema(&self) -> SchemaRef {
        Arc::clone(self.shape.schema())
    }

    /// An index of one file with these partition values (by physical names, as in the log) and statistics (JSON text), for judging a file that
    /// another commit adds.
    ///
    /// # Errors
    /// A partition value that its column does not take.
    pub fn index_of(&self, partition_values: &BTreeMap<String, Option<String>>, stats: Option<&str>) -> Result<FileIndex, String> {
        let mut builder = files::ChunkBuilder::new(&self.shape);
        builder.push(&files::Entry {
            path: "",
            size: 0,
            modification_time: 0,
            stats,
            deletion_vector: None,
            partition_values: partition_values.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect(),
        })?;
        Ok(FileIndex::new(0, vec![Chunk { rows: Arc::new(builder.finish()?), live: None }]))
    }

    /// The names of the table's features, in order; those of the old numbered protocols spelled out.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        features::all(&self.protocol).into_iter().collect()
    }
}
