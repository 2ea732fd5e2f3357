//! From rows to data files.
//!
//! Streams of a physical plan become Parquet files under the table: each batch is brought to the table's columns and types
//! ([`assign`]), held against the table's constraints ([`rules`]), split by partition values ([`partition`]) and encoded
//! ([`encode`]), one encoder for each stream of the plan; rows of a change go to the table's change data feed too ([`feed`]). What comes out are [`Staged`] files: written, synced, with statistics
//! ([`statistics`]), and not yet part of the table; they go again unless a commit takes them.
//!
//! Invariants: no row that breaks a constraint reaches a file; a failed or cancelled statement leaves no files behind (as far as the
//! process lives); a file's log path decodes once to its path in the store.

pub mod assign;
mod encode;
mod feed;
pub mod layout;
pub mod partition;
pub mod rules;
mod staged;
pub mod statistics;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use asof_storage::object::TableStore;
use asof_storage::snapshot::ColumnMapping;
use asof_storage::transaction::NewFile;
use asof_storage::{Env, Snapshot, TableFormat};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _, Partitioning, PhysicalExpr, execute_stream_partitioned};
use datafusion::sql::sqlparser::ast;
use futures::StreamExt as _;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use tokio::task::JoinSet;

pub use rules::Rules;
pub use staged::{Discard, Staged, Staging};

use crate::error::{Error, Result};
use crate::plan::Planner;

/// Bytes of a data file unless the table says otherwise.
const FILE_SIZE: usize = 128 << 20;

/// The table that is written to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name, for messages.
    pub name: String,
    /// Its folder.
    pub store: TableStore,
    /// Its columns, as in `Snapshot::schema`.
    pub schema: SchemaRef,
    /// Its partition columns, logical names.
    pub partition_columns: Vec<String>,
    /// How columns are found in files.
    pub mapping: ColumnMapping,
    /// Its properties.
    pub properties: BTreeMap<String, String>,
    /// Ids and time.
    pub env: Env,
    /// Folder of the files within the table: empty, or ending in a slash.
    pub folder: &'static str,
}

impl Target {
    /// A table at one version.
    ///
    /// # Errors
    /// `Unsupported` naming a column whose type asof cannot write.
    pub fn of(table: &dyn TableFormat, snapshot: &Snapshot, env: &Env) -> Result<Self> {
        layout::file_schema(&snapshot.schema, &snapshot.partition_columns, snapshot.column_mapping)?;
        Ok(Self {
            name: table.name().to_owned(),
            store: table.store().clone(),
            schema: Arc::clone(&snapshot.schema),
            partition_columns: snapshot.partition_columns.clone(),
            mapping: snapshot.column_mapping,
            properties: snapshot.properties.clone(),
            env: env.clone(),
            folder: "",
        })
    }

    fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// Bytes of a data file: `delta.targetFileSize`, else 128 MB.
    #[must_use]
    pub fn file_size(&self) -> usize {
        self.property("delta.targetFileSize").and_then(byte_size).unwrap_or(FILE_SIZE)
    }

    /// Columns that get statistics.
    #[must_use]
    pub fn indexed(&self) -> statistics::Indexed {
        statistics::Indexed::from_properties(
            self.property("delta.dataSkippingStatsColumns"),
            self.property("delta.dataSkippingNumIndexedCols"),
        )
    }

    /// Codec and what it adds to a file's name: `delta.parquet.compression.codec`, else zstd.
    ///
    /// # Errors
    /// `Invalid` for a codec nobody knows.
    pub fn compression(&self) -> Result<(Compression, &'static str)> {
        let codec = self.property("delta.parquet.compression.codec").unwrap_or("zstd");
        Ok(match codec.to_ascii_lowercase().as_str() {
            "zstd" => (Compression::ZSTD(ZstdLevel::default()), ".zstd"),
            "snappy" => (Compression::SNAPPY, ".snappy"),
            "gzip" => (Compression::GZIP(GzipLevel::default()), ".gz"),
            "lz4" | "lz4_raw" => (Compression::LZ4_RAW, ".lz4raw"),
            "none" | "uncompressed" => (Compression::UNCOMPRESSED, ""),
            other => {
                let message = format!("delta.parquet.compression.codec is {other:?}: known are zstd, snappy, gzip, lz4, uncompressed");
                return Err(Error::Invalid { message, location: None });
            }
        })
    }
}

/// `134217728`, `128mb`, `1 GB` → bytes.
fn byte_size(text: &str) -> Option<usize> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text.get(..digits)?.parse().ok()?;
    let shift = match text.get(digits..)?.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return None,
    };
    number.checked_shl(shift).filter(|bytes| *bytes > 0)
}

/// Rows to write: a plan's streams, what they go through, and where they go.
pub struct Source {
    through: Through,
    streams: Vec<SendableRecordBatchStream>,
}

/// What rows of a source go through, and where they go.
#[derive(Debug)]
struct Through {
    rules: Rules,
    into_table: bool,
    /// They go to the table's change data feed, as changes of this type.
    change: Option<&'static str>,
}

impl Source {
    /// Plan a query as a source.
    ///
    /// # Errors
    /// What planning gives.
    pub async fn plan(planner: &Planner, query: &ast::Query, target: &Target, rules: Rules) -> Result<Self> {
        let plan = planner.physical(&planner.logical(query).await?).await?;
        Self::new(planner, plan, target, rules)
    }

    /// Start a plan; rows of one partition of the table come in one stream, so that each stream writes few files.
    ///
    /// # Errors
    /// What starting the plan gives.
    pub fn new(planner: &Planner, plan: Arc<dyn ExecutionPlan>, target: &Target, rules: Rules) -> Result<Self> {
        let streams = plan.output_partitioning().partition_count();
        let plan = match rules.partition_sources(target) {
            Some(columns) if streams > 1 && !columns.is_empty() => {
                let schema = plan.schema();
                let keys = columns.into_iter().map(|at| Arc::new(Column::new(schema.field(at).name(), at)) as Arc<dyn PhysicalExpr>);
                Arc::new(RepartitionExec::try_new(plan, Partitioning::Hash(keys.collect(), streams))?)
            }
            _ => plan,
        };
        let streams = execute_stream_partitioned(plan, planner.task())?;
        Ok(Self { through: Through { rules, into_table: true, change: None }, streams })
    }

    /// Its rows go to the change data feed as well, as changes of this type.
    #[must_use]
    pub fn for_feed_too(mut self, change: &'static str) -> Self {
        self.through.change = Some(change);
        self
    }

    /// Its rows go to the change data feed, as changes of this type, and not into the table.
    #[must_use]
    pub fn for_feed_alone(mut self, change: &'static str) -> Self {
        self.through.into_table = false;
        self.for_feed_too(change)
    }
}

/// Encode sources into staged files: one task and one encoder for each stream number.
///
/// # Errors
/// What the streams give; a broken constraint; a value that does not fit its column; the store's. Nothing stays behind.
pub async fn write(target: Target, sources: Vec<Source>) -> Result<Staged> {
    let staging = Staging::new(target.store.clone());
    let mut staged = Staged::begin(staging.clone());
    let feed = match sources.iter().any(|source| source.through.change.is_some()) {
        true => Some(Arc::new(encode::Layout::new(feed::target(&target), staging.clone())?)),
        false => None,
    };
    let layouts = Layouts { table: Arc::new(encode::Layout::new(target, staging.clone())?), feed };
    let mut tasks = JoinSet::new();
    for (number, streams) in by_number(sources).into_iter().enumerate() {
        tasks.spawn(encode_streams(layouts.clone(), streams, number));
    }
    match gather(&mut tasks).await {
        Ok(done) => {
            for encoded in done {
                staged.files.extend(encoded.files);
                staged.changes.extend(encoded.changes);
                staged.rows += encoded.rows;
            }
            staging.sync().await?;
            Ok(staged)
        }
        Err(error) => {
            // Every encoder must have stopped before its files are removed.
            tasks.shutdown().await;
            staged.discard().await;
            Err(error)
        }
    }
}

/// Where rows go: the table's files, and those of its change data feed.
#[derive(Clone)]
struct Layouts {
    table: Arc<encode::Layout>,
    feed: Option<Arc<encode::Layout>>,
}

/// What one encoder wrote.
struct Encoded {
    number: usize,
    files: Vec<NewFile>,
    changes: Vec<NewFile>,
    /// Rows in the table's files.
    rows: i64,
}

type RoutedStream = (Arc<Through>, SendableRecordBatchStream);

/// The streams that share an encoder: each source's stream of the same number.
fn by_number(sources: Vec<Source>) -> Vec<Vec<RoutedStream>> {
    let mut numbered: Vec<Vec<RoutedStream>> = Vec::new();
    for source in sources {
        let through = Arc::new(source.through);
        for (number, stream) in source.streams.into_iter().enumerate() {
            if numbered.len() <= number {
                numbered.push(vec![]);
            }
            numbered[number].push((Arc::clone(&through), stream));
        }
    }
    numbered
}

async fn gather(tasks: &mut JoinSet<Result<Encoded>>) -> Result<Vec<Encoded>> {
    let mut done = BTreeMap::new();
    while let Some(task) = tasks.join_next().await {
        let encoded = task.map_err(|e| Error::Internal(format!("an encoder ended: {e}")))??;
        done.insert(encoded.number, encoded);
    }
    Ok(done.into_values().collect())
}

async fn encode_streams(layouts: Layouts, streams: Vec<RoutedStream>, number: usize) -> Result<Encoded> {
    let mut table = encode::Encoder::new(layouts.table, number)?;
    let mut feed = layouts.feed.map(|layout| encode::Encoder::new(layout, number)).transpose()?;
    let mut rows = 0;
    for (through, mut stream) in streams {
        while let Some(batch) = stream.next().await {
            let batch = through.rules.apply(&batch?)?;
            if through.into_table {
                rows += i64::try_from(batch.num_rows()).unwrap_or(i64::MAX);
                table.write(&batch).await?;
            }
            if let (Some(feed), Some(change)) = (&mut feed, through.change) {
                feed.write(&feed::rows(&batch, change)?).await?;
            }
        }
    }
    let changes = match feed {
        Some(feed) => feed.finish().await?,
        None => vec![],
    };
    Ok(Encoded { number, files: table.finish().await?, changes, rows })
}

#[cfg(test)]
mod tests {
    use super::byte_size;

    #[test]
    fn sizes_of_files() {
        let check = |text: &str, expect: Option<usize>| assert_eq!(byte_size(text), expect, "{text:?}");
        check("134217728", Some(128 << 20));
        check("128mb", Some(128 << 20));
        check("1 GB", Some(1 << 30));
        check("0", None);
        check("many", None);
    }
}
