//! Every version of every golden table, read through [`PinnedTable`] alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Field, Int64Type, Schema};
use asof_query::scan::{CharComparisons, FILE_ORDINAL, FileRows, PinnedTable, ROW_NUMBER};
use asof_storage::snapshot::ColumnMapping;
use asof_storage::{Snapshot, SnapshotSelector};
use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use roaring::RoaringTreemap;

use crate::golden::{Golden, as_text_where, cases, rows};

fn context() -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3).with_batch_size(16));
    context.add_analyzer_rule(Arc::new(CharComparisons));
    context
}

async fn read(table: &PinnedTable) -> Vec<RecordBatch> {
    let context = context();
    context.read_table(Arc::new(table.clone())).unwrap().collect().await.unwrap()
}

async fn sql(table: &PinnedTable, sql: &str) -> datafusion::error::Result<Vec<RecordBatch>> {
    let context = context();
    context.register_table("t", Arc::new(table.clone()))?;
    context.sql(sql).await?.collect().await
}

fn differences(found: &[String], expected: &[String]) -> String {
    let missing: Vec<_> = expected.iter().filter(|r| !found.contains(r)).take(3).collect();
    let extra: Vec<_> = found.iter().filter(|r| !expected.contains(r)).take(3).collect();
    format!("{} rows for {}; missing {missing:#?}; extra {extra:#?}", found.len(), expected.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_of_every_golden_table_has_the_referees_rows() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for name in cases() {
        let golden = Golden::copy(&name);
        for version in golden.recorded() {
            let table = match golden.pin(version).await {
                Ok(table) => table,
                // Spark reads what lies outside a table, asof refuses it.
                Err(asof_storage::Error::PathOutside { .. }) if name == "malformed/path_escapes" => continue,
                Err(e) => {
                    wrong.push(format!("{name}@{version}: {e}"));
                    continue;
                }
            };
            let schema = datafusion::catalog::TableProvider::schema(&table);
            let expected = golden.expected(version, &schema);
            let mut found = read(&table).await;
            if let Some(first) = expected.first() {
                found = found.iter().map(|batch| as_text_where(batch, first.schema_ref())).collect();
            }
            let (found, expected) = (rows(&found), rows(&expected));
            if found != expected {
                wrong.push(format!("{name}@{version}: {}", differences(&found, &expected)));
            }
            let counted = rows(&sql(&table, "SELECT count(*) FROM t").await.unwrap());
            if counted != [expected.len().to_string()] {
                wrong.push(format!("{name}@{version}: counted {counted:?} for {}", expected.len()));
            }
            // Rows without columns, made and not only counted.
            let summed = rows(&sql(&table, "SELECT coalesce(sum(1), 0) FROM t").await.unwrap());
            if summed != counted {
                wrong.push(format!("{name}@{version}: summed {summed:?} for {counted:?}"));
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 250, "only {checked} versions were checked");
}

/// Spark's spelling of a predicate in DataFusion's (the dialect itself is tested with the engine).
fn spelled(predicate: &str) -> String {
    let mut text = predicate.replace("TIMESTAMP_NTZ'", "arrow_cast(Timestamp(Microsecond, None)'");
    text = text.replace("TIMESTAMP'", "arrow_cast(Timestamp(Microsecond, Some(\"UTC\"))'");
    while let Some(start) = text.find("arrow_cast(Timestamp") {
        let quote = start + text[start..].find('\'').unwrap();
        let end = quote + 1 + text[quote + 1..].find('\'').unwrap();
        let kind = text[start + "arrow_cast(".len()..quote].to_owned();
        let moment = text[quote + 1..end].to_owned();
        text.replace_range(start..=end, &format!("ARROW_CAST('{moment}', '{kind}')"));
    }
    let text =
        text.replace("9999999999999999999999999999.9999999999", "CAST('9999999999999999999999999999.9999999999' AS DECIMAL(38, 10))");
    text.replace("\\n", "\n").replace("\\\\", "\\").replace("c.e", "c['e']").replace("c.d", "c['d']").replace("st.a", "st['a']")
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_return_the_referees_keys() {
    // Spellings of another dialect, which the engine provides.
    const NOT_HERE: [&str; 3] = ["\\u", "unhex", "isnan("];
    let mut wrong = Vec::new();
    let mut checked = 0;
    for name in ["all_types", "stats", "partitions_types", "partitions_string", "type_widening"] {
        let golden = Golden::copy(name);
        let version = *golden.recorded().last().unwrap();
        let table = golden.pin(version).await.unwrap();
        let text = std::fs::read(golden.folder.join("expect/filters.json")).unwrap();
        let filters: serde_json::Value = serde_json::from_slice(&text).unwrap();
        for filter in filters.as_array().unwrap() {
            let predicate = filter["where"].as_str().unwrap();
            if NOT_HERE.iter().any(|skip| predicate.contains(skip)) {
                continue;
            }
            let (key, keys) = filter.as_object().unwrap().iter().find(|(k, _)| *k != "where").unwrap();
            let key = if key == "ids" { "id" } else { key };
            let mut expected: Vec<String> = keys.as_array().unwrap().iter().map(ToString::to_string).collect();
            expected.sort();
            let query = format!("SELECT {key} FROM t WHERE {}", spelled(predicate));
            match sql(&table, &query).await {
                Ok(found) if rows(&found) == expected => {}
                Ok(found) => wrong.push(format!("{name}: {query}: {:?} for {expected:?}", rows(&found))),
                Err(e) => wrong.push(format!("{name}: {query}: {e}")),
            }
            checked += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {checked} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 50, "only {checked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_answers_agree_with_the_rows() {
    for name in ["dv", "dv_inline", "mapping_name", "partitions_types", "stats", "timestamp_ntz", "type_widening", "all_types"] {
        let golden = Golden::copy(name);
        for version in golden.recorded() {
            let table = golden.pin(version).await.unwrap();
            let schema = datafusion::catalog::TableProvider::schema(&table);
            let plain = |f: &&Arc<arrow::datatypes::Field>| !f.data_type().is_nested();
            let aggregates: Vec<String> = schema
                .fields()
                .iter()
                .filter(plain)
                .flat_map(|f| ["min", "max", "count"].map(|function| format!("{function}(\"{}\")", f.name())))
                .collect();
            let query = format!("SELECT {} FROM t", aggregates.join(", "));
            let found = rows(&sql(&table, &query).await.unwrap());
            let context = context();
            let memory = datafusion::datasource::MemTable::try_new(Arc::clone(&schema), vec![golden.expected(version, &schema)]).unwrap();
            context.register_table("t", Arc::new(memory)).unwrap();
            let expected = rows(&context.sql(&query).await.unwrap().collect().await.unwrap());
            assert_eq!(found, expected, "{name}@{version}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_choose_rows() {
    let golden = Golden::copy("dv");
    let plain = golden.pin(15).await.unwrap();
    let table = plain.clone().with_positions();
    let by_file = rows(&sql(&table, &format!("SELECT {FILE_ORDINAL}, count(*) FROM t GROUP BY 1 ORDER BY 1")).await.unwrap());
    assert_eq!(by_file.len(), plain.index.files().count(), "{by_file:?}");
    let all = rows(&sql(&plain, "SELECT * FROM t").await.unwrap());
    let mut together = Vec::new();
    for ordinal in 0..u32::try_from(by_file.len()).unwrap() {
        let only = |read| plain.clone().only(BTreeMap::from([(ordinal, read)]));
        let by_list = rows(&sql(&only(FileRows::All), "SELECT * FROM t").await.unwrap());
        let numbers = format!("SELECT {ROW_NUMBER} FROM t WHERE {FILE_ORDINAL} = {ordinal} AND {ROW_NUMBER} % 2 = 0");
        let numbers = sql(&table, &numbers).await.unwrap();
        let even = numbers.iter().flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec());
        let even: Arc<RoaringTreemap> = Arc::new(even.map(|n| u64::try_from(n).unwrap()).collect());
        let (chosen, others) = (only(FileRows::Only(Arc::clone(&even))), only(FileRows::Except(Arc::clone(&even))));
        assert_eq!(rows(&sql(&chosen, "SELECT count(*) FROM t").await.unwrap()), [even.len().to_string()]);
        let mut halves = rows(&sql(&chosen, "SELECT * FROM t").await.unwrap());
        assert_eq!(halves.len() as u64, even.len());
        halves.extend(rows(&sql(&others, "SELECT * FROM t").await.unwrap()));
        halves.sort();
        assert_eq!(halves, by_list);
        together.extend(by_list);
    }
    together.sort();
    assert_eq!(together, all);
    let numbered = rows(&sql(&table, &format!("SELECT {FILE_ORDINAL}, {ROW_NUMBER} FROM t")).await.unwrap());
    assert_eq!(numbered.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len(), "a row number occurs twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_of_deleted_rows_runs_in_parallel() {
    let golden = Golden::copy("dv");
    for version in golden.recorded() {
        let table = golden.pin(version).await.unwrap();
        let schema = datafusion::catalog::TableProvider::schema(&table);
        let expected = rows(&golden.expected(version, &schema));
        if expected.len() < 3 {
            continue;
        }
        // Such small thresholds split even one file into ranges.
        let config = SessionConfig::new().with_target_partitions(4).with_batch_size(2).with_repartition_file_min_size(1);
        let context = SessionContext::new_with_config(config);
        context.register_table("t", Arc::new(table)).unwrap();
        let frame = context.sql("SELECT * FROM t WHERE true").await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        assert_eq!(plan.name(), "DataSourceExec", "v{version}: nothing runs on top of the scan");
        let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string();
        let found = datafusion::physical_plan::collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
        assert_eq!(rows(&found), expected, "v{version}: {text}");
        let grouped = context.sql("SELECT count(*) FROM (SELECT DISTINCT * FROM t)").await.unwrap().create_physical_plan().await.unwrap();
        let text = datafusion::physical_plan::displayable(grouped.as_ref()).indent(true).to_string();
        assert!(text.contains("file_groups={4 groups"), "v{version}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_and_damaged_files_are_named() {
    #[track_caller]
    fn check(error: DataFusionError, kind: &str, names: &[&str]) {
        let error = asof_query::Error::from(error);
        let debug = format!("{error:?}");
        assert!(debug.contains(kind), "{debug}");
        let text = error.to_string();
        for name in names {
            assert!(text.contains(name), "{text} lacks {name}");
        }
    }
    let golden = Golden::copy("malformed/missing_file");
    check(
        DataFusionError::External(Box::new(golden.pin(2).await.unwrap_err())),
        "FileGone",
        &["out of retention", "version 2", ".parquet"],
    );
    // Gone after the version was pinned.
    let golden = Golden::copy("dv");
    let table = golden.pin(3).await.unwrap();
    let lost = table.index.files().next().unwrap().path;
    std::fs::remove_file(golden.copy.join(&lost)).unwrap();
    check(sql(&table, "SELECT * FROM t").await.unwrap_err(), "FileGone", &["out of retention", "version 3", &lost]);
    let golden = Golden::copy("malformed/truncated_parquet");
    let table = golden.pin(2).await.unwrap();
    check(sql(&table, "SELECT * FROM t").await.unwrap_err(), "Corrupt", &["version 2", ".parquet", "the log says"]);
    let golden = Golden::copy("malformed/dv_checksum");
    let damaged = golden.pin(2).await.unwrap();
    check(sql(&damaged, "SELECT * FROM t").await.unwrap_err(), "Corrupt", &["version 2", ".bin"]);
    let missing = Golden::copy("malformed/dv_missing").pin(2).await.unwrap_err();
    check(DataFusionError::External(Box::new(missing)), "FileGone", &["version 2", ".bin"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_and_partition_filters_open_few_files() {
    let golden = Golden::copy("partitions_string");
    let version = *golden.recorded().last().unwrap();
    let table = golden.pin(version).await.unwrap();
    let files = async |query: &str| {
        let context = context();
        context.register_table("t", Arc::new(table.clone())).unwrap();
        let plan = context.sql(query).await.unwrap().create_physical_plan().await.unwrap();
        let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string();
        (text.matches(".parquet").count(), text)
    };
    let (all, _) = files("SELECT * FROM t").await;
    assert!(all > 10, "{all}");
    let (one, text) = files("SELECT * FROM t WHERE p = 'a b'").await;
    assert_eq!(one, 1, "{text}");
    assert!(!text.contains("FilterExec"), "{text}");
    let (few, text) = files("SELECT * FROM t LIMIT 1").await;
    assert!(few < all, "{text}");
    let none = sql(&table, "SELECT * FROM t WHERE p = 'nowhere'").await.unwrap();
    assert_eq!(rows(&none).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_swapped_their_names_are_told_apart() {
    let golden = Golden::copy("mapping_upgrade");
    let swapped = [("id", "id"), ("extra", "name"), ("name", "extra")];
    let snapshot = golden.table.resolve(&SnapshotSelector::Version(1)).await.unwrap();
    let index = golden.table.index(&snapshot).await.unwrap();
    let plain = PinnedTable::new(Arc::clone(&golden.table), Arc::clone(&snapshot), Arc::clone(&index));
    let named = |(physical, name): (&str, &str)| {
        let field = snapshot.schema.field_with_name(physical).unwrap().clone().with_name(name);
        field.with_metadata([("delta.columnMapping.physicalName".to_owned(), physical.to_owned())].into())
    };
    let fields: Vec<Field> = swapped.into_iter().map(named).collect();
    let renamed = Snapshot {
        table: snapshot.table.clone(),
        name: snapshot.name.clone(),
        version: snapshot.version,
        committed_at: snapshot.committed_at,
        schema: Arc::new(Schema::new(vec![fields[0].clone(), fields[2].clone(), fields[1].clone()])),
        partition_columns: Vec::new(),
        properties: snapshot.properties.clone(),
        column_mapping: ColumnMapping::Name,
        format: snapshot.format.clone(),
    };
    let mapped = PinnedTable::new(Arc::clone(&golden.table), Arc::new(renamed), index);
    let before = rows(&sql(&plain, "SELECT id, name, extra FROM t").await.unwrap());
    let after = rows(&sql(&mapped, "SELECT id, extra, name FROM t").await.unwrap());
    assert_eq!(before, after);
    assert_ne!(before, rows(&sql(&mapped, "SELECT id, name, extra FROM t").await.unwrap()));
}
