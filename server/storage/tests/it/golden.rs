//! Every storage-level expectation of every golden table: which versions read, their schemas and numbers of rows, selectors by version and by
//! time, errors, the history, and that an index by steps equals one from scratch (S6).

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asof_storage::deletes;
use asof_storage::{Commit, Error, FileIndex, HistoryRange, Micros, Snapshot, SnapshotSelector, TableFormat};
use serde_json::{Value, json};

use crate::support::{Case, cases, open};

/// Versions that Spark cannot read and asof can, on purpose: the reason is in the design's list of differences.
fn reads_beyond_spark(case: &str, version: i64) -> bool {
    match case {
        "future_reader" => version < 3,
        "malformed/truncated_commit" => version < 4,
        "malformed/version_gap" => version < 2,
        // The footer is for whoever opens the file; storage sees files, not their insides.
        "malformed/truncated_parquet" => version >= 2,
        _ => false,
    }
}

/// Versions that Spark reads and asof refuses, on purpose.
fn refuses_beyond_spark(case: &str, version: i64) -> bool {
    matches!((case, version), ("malformed/path_escapes", 4))
}

/// Spark's DDL of a field.
fn ddl(field: &Field) -> String {
    let name = field.name();
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let name = if plain { name.clone() } else { format!("`{name}`") };
    let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
    let default = field.metadata().get("CURRENT_DEFAULT").map(|d| format!(" DEFAULT {d}")).unwrap_or_default();
    let comment = field.metadata().get("comment").map(|c| format!(" COMMENT '{c}'")).unwrap_or_default();
    format!("{name} {}{not_null}{default}{comment}", kind(field))
}

fn kind(field: &Field) -> String {
    if field.metadata().get("asof.type").is_some_and(|t| t == "variant") {
        return "VARIANT".to_owned();
    }
    match field.data_type() {
        DataType::Utf8 => "STRING".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Int32 => "INT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Float32 => "FLOAT".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Binary => "BINARY".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP_NTZ".to_owned(),
        DataType::Decimal128(p, s) => format!("DECIMAL({p},{s})"),
        DataType::List(e) => format!("ARRAY<{}>", kind(e)),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(kv) => format!("MAP<{}, {}>", kind(&kv[0]), kind(&kv[1])),
            other => panic!("{other}"),
        },
        DataType::Struct(fields) => {
            let inner: Vec<String> = fields.iter().map(|f| ddl(f).replacen(' ', ": ", 1)).collect();
            format!("STRUCT<{}>", inner.join(", "))
        }
        other => panic!("{other}"),
    }
}

fn schema(snapshot: &Snapshot) -> String {
    snapshot.schema.fields().iter().map(|f| ddl(f)).collect::<Vec<_>>().join(",")
}

/// Rows − deleted rows, where all files have statistics.
fn count(index: &FileIndex) -> Option<i64> {
    index.files().map(|f| Some(f.rows? - f.deletion_vector.map_or(0, |v| v.cardinality))).sum()
}

/// Reads a version as far as storage goes.
async fn read(table: &dyn TableFormat, selector: &SnapshotSelector) -> Result<(std::sync::Arc<Snapshot>, Option<i64>), Error> {
    let snapshot = table.resolve(selector).await?;
    let index = table.index(&snapshot).await?;
    for file in index.files() {
        if let Some(vector) = &file.deletion_vector {
            let rows = deletes::load(table.store(), &snapshot, vector).await?;
            assert!(rows.max().is_none_or(|last| file.rows.is_none_or(|n| last < n as u64)));
        }
    }
    Ok((snapshot, count(&index)))
}

async fn check_versions(case: &Case, wrong: &mut Vec<String>) {
    let table = case.table();
    for expected in case.json["versions"].as_array().unwrap() {
        let version = expected["version"].as_i64().unwrap();
        let mut readable = expected["readable"].as_bool().unwrap();
        readable = (readable || reads_beyond_spark(&case.name, version)) && !refuses_beyond_spark(&case.name, version);
        let here = format!("{} version {version}", case.name);
        match read(&table, &SnapshotSelector::Version(version)).await {
            Err(error) if readable => wrong.push(format!("{here}: {error}")),
            Err(_) => {}
            Ok(_) if !readable => wrong.push(format!("{here}: read, but should not")),
            Ok((snapshot, rows)) => {
                let rows = rows.map(Value::from);
                if let Some(rows) = rows.filter(|r| expected["rows"].is_i64() && *r != expected["rows"]) {
                    wrong.push(format!("{here}: {rows} rows, not {}", expected["rows"]));
                }
                if let Some(ddl) = expected["schema"].as_str().filter(|ddl| *ddl != schema(&snapshot)) {
                    wrong.push(format!("{here}: schema\n  {}\nnot\n  {ddl}", schema(&snapshot)));
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions() {
    let mut wrong = Vec::new();
    for name in cases() {
        check_versions(&Case::copy(&name), &mut wrong).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A moment as the selectors spell plain ones; the session's zone is UTC.
fn moment(text: &str) -> Option<Micros> {
    if let Ok(t) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(Micros(t.timestamp_micros()));
    }
    let formats = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M"];
    let naive = formats.iter().find_map(|f| chrono::NaiveDateTime::parse_from_str(text, f).ok());
    let naive = naive.or_else(|| chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0));
    naive.map(|t| Micros(t.and_utc().timestamp_micros()))
}

fn selector(sql: &str) -> Option<SnapshotSelector> {
    let rest = sql.strip_prefix("FOR ").unwrap_or(sql);
    let rest = rest.strip_prefix("SYSTEM_").unwrap_or(rest);
    if let Some(version) = rest.strip_prefix("VERSION AS OF ") {
        return version.parse().ok().map(SnapshotSelector::Version);
    }
    let text = rest.strip_prefix("TIMESTAMP AS OF ").or_else(|| rest.strip_prefix("TIME AS OF "))?;
    moment(text.strip_prefix('\'')?.strip_suffix('\'')?).map(SnapshotSelector::Timestamp)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selectors() {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for name in cases() {
        let case = Case::copy(&name);
        let table = case.table();
        for expected in case.json["selectors"].as_array().unwrap() {
            let sql = expected["sql"].as_str().unwrap();
            let Some(selector) = selector(sql) else { continue };
            tried += 1;
            match table.resolve(&selector).await {
                Ok(snapshot) if expected["version"] == snapshot.version => {}
                Ok(snapshot) => wrong.push(format!("{name} {sql}: version {}, not {}", snapshot.version, expected["version"])),
                Err(error) => wrong.push(format!("{name} {sql}: {error}")),
            }
        }
    }
    assert!(tried > 120, "only {tried} selectors were understood");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The errors storage is to blame for: selectors, and reads of the whole table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors() {
    let mut wrong = Vec::new();
    for name in cases() {
        let case = Case::copy(&name);
        let table = case.table();
        for expected in case.json["errors"].as_array().unwrap() {
            let sql = expected["sql"].as_str().unwrap();
            let why = expected["why"].as_str().unwrap();
            let selector = match sql.strip_prefix("SELECT * FROM {t}") {
                Some("") => Some(SnapshotSelector::Latest),
                Some(rest) => selector(rest.trim()),
                None => selector(sql),
            };
            let Some(selector) = selector else { continue };
            let answered = matches!((name.as_str(), sql), ("malformed/corrupt_checkpoint" | "malformed/truncated_parquet", _))
                || name == "malformed/zero_byte_commit"
                || (why.starts_with("after the last") && matches!(selector, SnapshotSelector::Timestamp(_)));
            match (read(&table, &selector).await, answered) {
                (Ok(_), true) | (Err(_), false) => {}
                (Ok((snapshot, _)), false) => wrong.push(format!("{name} {sql}: version {} answered; {why}", snapshot.version)),
                (Err(error), true) => wrong.push(format!("{name} {sql}: {error}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[track_caller]
fn says(error: &Error, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// The words of errors: what was asked, what exists, which file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_name_what_matters() {
    let cases: [(&str, SnapshotSelector, &[&str]); 20] = [
        ("cleaned_log", SnapshotSelector::Version(29), &["version 29", "version 30 (2026-01-02T06:00:00Z)", "version 42"]),
        ("cleaned_log", SnapshotSelector::Version(43), &["version 43", "version 30", "version 42"]),
        ("selectors", SnapshotSelector::Version(-1), &["-1", "version 0", "version 3"]),
        (
            "selectors",
            SnapshotSelector::Timestamp(moment("2026-05-03 23:59:59.999999").unwrap()),
            &["2026-05-03T23:59:59.999999Z", "2026-05-04T00:00:00Z"],
        ),
        (
            "selectors",
            SnapshotSelector::Timestamp(moment("2030-01-01").unwrap()),
            &["future", "2030-01-01", "version 3 (2026-05-07T23:59:59.999Z)"],
        ),
        ("ict", SnapshotSelector::Timestamp(moment("2020-01-01").unwrap()), &["version 0 (2026-11-30T21:50:58.620Z)"]),
        ("no_json_before_checkpoint", SnapshotSelector::Version(9), &["version 11", "version 13"]),
        ("future_reader", SnapshotSelector::Latest, &["futureReader", "read"]),
        ("malformed/garbage_commit", SnapshotSelector::Latest, &["version 2", "00000000000000000002.json", "line 2"]),
        ("malformed/truncated_commit", SnapshotSelector::Latest, &["00000000000000000004.json", "cut off"]),
        ("malformed/version_gap", SnapshotSelector::Latest, &["version 2 is missing", "version 4"]),
        ("malformed/version_gap", SnapshotSelector::Version(2), &["version 2 is missing"]),
        ("malformed/no_metadata", SnapshotSelector::Latest, &["metaData is missing"]),
        ("malformed/zero_byte_first_commit", SnapshotSelector::Latest, &["00000000000000000000.json", "protocol and metaData"]),
        ("malformed/path_escapes", SnapshotSelector::Latest, &["../../secret.parquet", "outside", "version 4"]),
        ("malformed/path_absolute", SnapshotSelector::Latest, &["file:///etc/hostname", "outside"]),
        ("malformed/missing_file", SnapshotSelector::Latest, &["part-00000-4d78c747-39a4-4eb3-8811-31650eda817a-c000.snappy.parquet"]),
        (
            "malformed/percent_once",
            SnapshotSelector::Latest,
            &["p=a%2Fb/part-00000-82e65dba-1aa6-4a95-85b3-d3da737c4f35.c000.snappy.parquet"],
        ),
        ("malformed/dv_checksum", SnapshotSelector::Latest, &["deletion_vector_2a80bb9c-4934-4152-a98f-cdbd88db254b.bin", "checksum"]),
        ("malformed/dv_missing", SnapshotSelector::Latest, &["deletion_vector_c64ad98f-97be-41da-a896-ffcf2cda3e76.bin", "gone"]),
    ];
    for (name, selector, words) in cases {
        let case = Case::copy(name);
        match read(&case.table(), &selector).await {
            Ok(_) => panic!("{name} {selector:?} was read"),
            Err(error) => says(&error, words),
        }
    }
}

/// A commit as DESCRIBE HISTORY's JSON, without `readable`.
fn as_json(commit: &Commit) -> Value {
    json!({
        "version": commit.version,
        "timestamp": chrono::DateTime::from_timestamp_micros(commit.timestamp.0).unwrap().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        "userId": commit.user_id, "userName": commit.user_name, "operation": commit.operation,
        "operationParameters": commit.operation_parameters, "job": commit.job, "notebook": commit.notebook,
        "clusterId": commit.cluster_id, "readVersion": commit.read_version, "isolationLevel": commit.isolation_level,
        "isBlindAppend": commit.is_blind_append, "operationMetrics": commit.operation_metrics,
        "userMetadata": commit.user_metadata, "engineInfo": commit.engine_info,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history() {
    let mut wrong = Vec::new();
    for name in cases() {
        let case = Case::copy(&name);
        let Ok(commits) = case.table().history(HistoryRange::default()).await else {
            wrong.push(format!("{name}: no history"));
            continue;
        };
        let readable: BTreeMap<i64, bool> = commits.iter().map(|c| (c.version, c.readable)).collect();
        for expected in case.json["versions"].as_array().unwrap() {
            let version = expected["version"].as_i64().unwrap();
            let spark = expected["readable"].as_bool().unwrap();
            let ours = (spark || reads_beyond_spark(&name, version)) && !refuses_beyond_spark(&name, version);
            // A checksum is not looked at, and a file that lost its end is not whole.
            let ours = (ours || name == "malformed/dv_checksum") && !(name == "malformed/truncated_parquet" && version >= 2);
            if readable.get(&version).is_some_and(|r| *r != ours) {
                wrong.push(format!("{name} version {version}: readable is {}", readable[&version]));
            }
        }
        let Some(Value::Array(expected)) = case.expect("history.json") else { continue };
        if expected.len() != commits.len() {
            wrong.push(format!("{name}: {} commits, not {}", commits.len(), expected.len()));
        }
        for (ours, spark) in commits.iter().map(as_json).zip(&expected) {
            for (key, value) in spark.as_object().unwrap() {
                if ours[key] != *value {
                    wrong.push(format!("{name} version {} {key}: {} not {value}", spark["version"], ours[key]));
                }
            }
        }
        let limited = case.table().history(HistoryRange { limit: Some(2) }).await.unwrap();
        assert_eq!(limited.as_slice(), &commits[..commits.len().min(2)], "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// All that an index says of a version, one line a file.
fn lines(index: &FileIndex) -> BTreeSet<String> {
    let options = FormatOptions::new().with_null("NULL");
    let line = |chunk: &asof_storage::index::Chunk, row: usize| {
        let text = |c: &ArrayRef| ArrayFormatter::try_new(c.as_ref(), &options).unwrap().value(row).to_string();
        chunk.rows.columns().iter().map(text).collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<String> = index.chunks().iter().flat_map(|c| c.live_rows().map(|r| line(c, r))).collect();
    assert_eq!(lines.len(), index.len());
    lines.into_iter().collect()
}

/// S6: an index by steps equals one from scratch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_by_steps() {
    let mut compared = 0;
    for name in cases().into_iter().filter(|n| !n.starts_with("malformed")) {
        let case = Case::copy(&name);
        let stepping = case.table();
        let last = stepping.resolve(&SnapshotSelector::Latest).await.map_or(-1, |s| s.version);
        for version in (0..=last).filter(|v| last < 60 || v % 7 != 3) {
            let Ok(snapshot) = stepping.resolve(&SnapshotSelector::Version(version)).await else { continue };
            let Ok(by_steps) = stepping.index(&snapshot).await else { continue };
            // Sampled on long logs: opening anew reads much.
            if last < 60 || version % 10 == 0 {
                let fresh = open(&case.path(""));
                let snapshot = fresh.resolve(&SnapshotSelector::Version(version)).await.unwrap();
                let from_scratch = fresh.index(&snapshot).await.unwrap();
                assert_eq!(lines(&by_steps), lines(&from_scratch), "{name} version {version}");
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "only {compared} compared");
}
