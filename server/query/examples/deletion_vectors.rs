//! What deletion vectors cost a scan: a table of which 1% of the rows are deleted by vectors, beside one that never held those rows.
//!
//! `cargo run --release -p asof-query --example deletion_vectors [million rows]`. Prints medians and their ratio for each query; exits
//! with 1 when a ratio is above 1.2 or the answers differ. The vectors are written by delta_kernel.
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, BooleanArray, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::util::pretty::pretty_format_batches;
use asof_query::scan::PinnedTable;
use asof_storage::delta::DeltaTable;
use asof_storage::object::TableStore;
use asof_storage::{Env, SnapshotSelector, TableFormat, TableId};
use datafusion::prelude::{SessionConfig, SessionContext};
use delta_kernel::actions::deletion_vector_writer::{KernelDeletionVector, StreamingDeletionVectorWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use url::Url;

const FILES: u64 = 8;
const ROUNDS: usize = 9;
const MOST: f64 = 1.2;

const QUERIES: [&str; 5] = [
    "SELECT count(id), sum(id), sum(k) FROM t",
    "SELECT k % 10, count(*), sum(price), min(day) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT count(name), max(name), sum(price) FROM t",
    "SELECT count(*), sum(price) FROM t WHERE k < 1000",
    "SELECT id, name FROM t ORDER BY price DESC, id LIMIT 10",
];

/// Rows scattered by a fixed rule, about one of a hundred.
fn is_deleted(row: u64) -> bool {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff < 655
}

fn batch(first: u64, rows: u64) -> RecordBatch {
    let all = || first..first + rows;
    let mixed = |row: u64| row.wrapping_mul(0xd134_2543_de82_ef95) >> 20;
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(all().map(|r| r as i64).collect::<Int64Array>())),
        ("k", Arc::new(all().map(|r| (mixed(r) % 100_000) as i32).collect::<Int32Array>())),
        ("price", Arc::new(all().map(|r| (mixed(r) % 10_000_000) as f64 / 100.0).collect::<Float64Array>())),
        ("name", Arc::new(all().map(|r| Some(format!("customer#{:09}", mixed(r) % 200_000))).collect::<StringArray>())),
        ("day", Arc::new(Date32Array::from_iter_values(all().map(|r| (r / 100_000) as i32)))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A table of `rows` rows; the deleted ones are there and hidden by vectors, or were never there.
fn write_table(folder: &Path, rows: u64, with_vectors: bool) {
    fs::create_dir_all(folder.join("_delta_log")).unwrap();
    let per_file = rows / FILES;
    let mut log = vec![
        r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}"#.to_owned(),
        concat!(
            r#"{"metaData":{"id":"5fba94ed-9794-4965-ba6e-6ee3c0d22af9","format":{"provider":"parquet","options":{}},"#,
            r#""schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},"#,
            r#"{\"name\":\"k\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{}},{\"name\":\"price\",\"type\":\"double\",\"nullable\":true,\"metadata\":{}},"#,
            r#"{\"name\":\"name\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}},{\"name\":\"day\",\"type\":\"date\",\"nullable\":true,\"metadata\":{}}]}","#,
            r#""partitionColumns":[],"configuration":{"delta.enableDeletionVectors":"true"},"createdTime":0}}"#
        )
        .to_owned(),
    ];
    let bitmaps = folder.join("vectors.bin");
    let mut bytes = Vec::new();
    let mut vectors = StreamingDeletionVectorWriter::new(&mut bytes);
    for file in 0..FILES {
        let name = format!("part-{file:05}.parquet");
        let first = file * per_file;
        let written = write_file(&folder.join(&name), first, per_file, with_vectors);
        let size = fs::metadata(folder.join(&name)).unwrap().len();
        let vector = if with_vectors {
            let mut vector = KernelDeletionVector::new();
            vector.add_deleted_row_indexes((0..per_file).filter(|row| is_deleted(first + row)));
            let at = vectors.write_deletion_vector(vector).unwrap();
            let path = Url::from_file_path(&bitmaps).unwrap();
            format!(
                r#","deletionVector":{{"storageType":"p","pathOrInlineDv":"{path}","offset":{},"sizeInBytes":{},"cardinality":{}}}"#,
                at.offset, at.size_in_bytes, at.cardinality
            )
        } else {
            String::new()
        };
        log.push(format!(
            r#"{{"add":{{"path":"{name}","partitionValues":{{}},"size":{size},"modificationTime":0,"dataChange":true,"stats":"{{\"numRecords\":{written}}}"{vector}}}}}"#
        ));
    }
    vectors.finalize().unwrap();
    fs::write(bitmaps, bytes).unwrap();
    fs::write(folder.join("_delta_log/00000000000000000000.json"), log.join("\n")).unwrap();
}

fn write_file(path: &Path, first: u64, rows: u64, all: bool) -> usize {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch(0, 1).schema(), Some(properties)).unwrap();
    let mut written = 0;
    let step = 100_000;
    for start in (first..first + rows).step_by(step) {
        let batch = batch(start, (first + rows - start).min(step as u64));
        let kept: BooleanArray = (start..start + batch.num_rows() as u64).map(|row| Some(all || !is_deleted(row))).collect();
        let batch = filter_record_batch(&batch, &kept).unwrap();
        written += batch.num_rows();
        writer.write(&batch).unwrap();
    }
    writer.close().unwrap();
    written
}

async fn open(folder: &Path) -> SessionContext {
    let id = TableId::new(Url::from_directory_path(folder).unwrap());
    let store = TableStore::local(id.location().clone()).unwrap();
    let table: Arc<dyn TableFormat> = Arc::new(DeltaTable::open(id, "t".to_owned(), store, Env::system()));
    let snapshot = table.resolve(&SnapshotSelector::Latest).await.unwrap();
    let index = table.index(&snapshot).await.unwrap();
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(cores));
    context.register_table("t", Arc::new(PinnedTable::new(table, snapshot, index))).unwrap();
    context
}

async fn run(context: &SessionContext, query: &str) -> (Duration, String) {
    let start = Instant::now();
    let rows = context.sql(query).await.unwrap().collect().await.unwrap();
    (start.elapsed(), pretty_format_batches(&rows).unwrap().to_string())
}

#[tokio::main]
async fn main() -> ExitCode {
    let rows = std::env::args().nth(1).map_or(4.0, |n| n.parse::<f64>().unwrap()) * 1e6;
    let scratch = tempfile::tempdir().unwrap();
    let (with, without) = (scratch.path().join("with"), scratch.path().join("without"));
    write_table(&with, rows as u64, true);
    write_table(&without, rows as u64, false);
    let (with, without) = (open(&with).await, open(&without).await);
    let mut out = std::io::stdout();
    let mut good = true;
    writeln!(out, "{:>10} {:>10} {:>6}  query", "vectors", "none", "ratio").unwrap();
    for query in QUERIES {
        let (mut slow, mut fast) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let ((a, left), (b, right)) = (run(&with, query).await, run(&without, query).await);
            good &= left == right;
            // The first round reads footers and vectors.
            if round > 0 {
                slow.push(a);
                fast.push(b);
            }
        }
        slow.sort();
        fast.sort();
        let (slow, fast) = (slow[ROUNDS / 2].as_secs_f64() * 1e3, fast[ROUNDS / 2].as_secs_f64() * 1e3);
        good &= slow / fast <= MOST;
        writeln!(out, "{slow:>7.1} ms {fast:>7.1} ms {:>6.2}  {query}", slow / fast).unwrap();
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
