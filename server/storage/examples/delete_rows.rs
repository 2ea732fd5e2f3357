//! Deletes rows of a Delta table by deletion vectors, as a writer with the kernel's own vector writer would: data for benchmarks.
//!
//! `cargo run -p asof-storage --example delete_rows <table> <table's final place> <one of how many rows>`. The table has one commit, without
//! vectors; the second commit is made here. Vectors are named by their final place, since a vector's path is absolute.
#![expect(clippy::unwrap_used, reason = "it stops at the first surprise")]

use std::fs;
use std::path::Path;

use delta_kernel::actions::deletion_vector_writer::{KernelDeletionVector, StreamingDeletionVectorWriter};
use serde_json::{Value, json};
use url::Url;

const BITMAPS: &str = "vectors.bin";

/// Rows scattered by a fixed rule, about one of `of`.
fn is_deleted(row: u64, of: u64) -> bool {
    ((row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) & 0xffff) * of < 0x1_0000
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (folder, place, of) = (Path::new(&arguments[1]), Path::new(&arguments[2]), arguments[3].parse::<u64>().unwrap());
    let url = Url::from_file_path(place.join(BITMAPS)).unwrap();
    let first = fs::read_to_string(folder.join("_delta_log/00000000000000000000.json")).unwrap();
    let mut log = vec![
        json!({"commitInfo": {"timestamp": 0, "operation": "DELETE", "operationParameters": {}}}),
        json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors", "appendOnly", "invariants"]}}),
    ];
    let mut bytes = Vec::new();
    let mut vectors = StreamingDeletionVectorWriter::new(&mut bytes);
    for action in first.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let Some(add) = action.get("add") else { continue };
        let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap()).unwrap();
        let rows = stats["numRecords"].as_u64().unwrap();
        let mut vector = KernelDeletionVector::new();
        vector.add_deleted_row_indexes((0..rows).filter(|row| is_deleted(*row, of)));
        let at = vectors.write_deletion_vector(vector).unwrap();
        log.push(json!({"remove": {"path": add["path"], "deletionTimestamp": 0, "dataChange": true}}));
        let mut again = add.clone();
        again["deletionVector"] = json!({"storageType": "p", "pathOrInlineDv": url.as_str(), "offset": at.offset,
            "sizeInBytes": at.size_in_bytes, "cardinality": at.cardinality});
        log.push(json!({"add": again}));
    }
    vectors.finalize().unwrap();
    fs::write(folder.join(BITMAPS), bytes).unwrap();
    let lines: Vec<String> = log.iter().map(Value::to_string).collect();
    fs::write(folder.join("_delta_log/00000000000000000001.json"), lines.join("\n")).unwrap();
}
