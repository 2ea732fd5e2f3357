//! The golden Delta tables of `integration/golden`: copies of them, and the referee's answers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use asof_query::scan::PinnedTable;
use asof_storage::delta::DeltaTable;
use asof_storage::object::TableStore;
use asof_storage::{Env, SnapshotSelector, TableFormat, TableId};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use serde_json::Value;
use tempfile::TempDir;
use url::Url;

/// A copy of a case's table.
pub struct Golden {
    pub case: Value,
    pub folder: PathBuf,
    /// Where the copy lies.
    pub copy: PathBuf,
    pub table: Arc<dyn TableFormat>,
    _scratch: TempDir,
}

pub fn root() -> PathBuf {
    PathBuf::from("../../integration/golden/delta")
}

/// Names of all cases; those of `malformed` with that before them.
pub fn cases() -> Vec<String> {
    let has_case = |path: &Path| path.join("case.json").is_file();
    let below = |prefix: &str| {
        let folders = fs::read_dir(root().join(prefix)).unwrap().map(|e| e.unwrap().path()).filter(|p| has_case(p));
        let name = |p: PathBuf| Path::new(prefix).join(p.file_name().unwrap()).to_str().unwrap().to_owned();
        folders.map(name).collect::<Vec<_>>()
    };
    let mut cases = below("");
    cases.extend(below("malformed"));
    cases.sort();
    cases
}

impl Golden {
    /// A fresh copy, with the modification times that the case asks for.
    pub fn copy(name: &str) -> Self {
        let folder = root().join(name);
        let case: Value = serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let copy = scratch.path().join("warehouse").join("t");
        copy_folder(&folder.join("table"), &copy);
        for (path, ms) in case["mtimes"].as_object().into_iter().flatten() {
            let time = SystemTime::UNIX_EPOCH + Duration::from_millis(ms.as_u64().unwrap());
            if let Ok(file) = File::options().write(true).open(copy.join(path)) {
                file.set_modified(time).unwrap();
            }
        }
        let id = TableId::new(Url::from_directory_path(&copy).unwrap());
        let store = TableStore::local(id.location().clone()).unwrap();
        let table = Arc::new(DeltaTable::open(id, name.to_owned(), store, Env::system()));
        Self { case, folder, copy, table, _scratch: scratch }
    }

    /// Versions that the referee can read and whose rows are recorded.
    pub fn recorded(&self) -> Vec<i64> {
        let versions = self.case["versions"].as_array().unwrap().iter().map(|v| v["version"].as_i64().unwrap());
        versions.filter(|v| self.expect_path(*v).is_file()).collect()
    }

    fn expect_path(&self, version: i64) -> PathBuf {
        self.folder.join(format!("expect/v{version}.parquet"))
    }

    /// That version, pinned.
    pub async fn pin(&self, version: i64) -> Result<PinnedTable, asof_storage::Error> {
        let snapshot = self.table.resolve(&SnapshotSelector::Version(version)).await?;
        let index = self.table.index(&snapshot).await?;
        Ok(PinnedTable::new(Arc::clone(&self.table), snapshot, index))
    }

    /// The referee's rows, in the given schema.
    pub fn expected(&self, version: i64, schema: &SchemaRef) -> Vec<RecordBatch> {
        let file = File::open(self.expect_path(version)).unwrap();
        let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).unwrap();
        let coarse = Arc::new(Schema::new(found.schema().fields().iter().map(|f| microseconds(f)).collect::<Vec<_>>()));
        let options = ArrowReaderOptions::new().with_schema(coarse);
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap().build().unwrap();
        reader.map(|batch| conform(&batch.unwrap(), schema)).collect()
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// INT96 holds more years than nanoseconds do.
fn microseconds(field: &Field) -> Field {
    let of = |f: &Arc<Field>| Arc::new(microseconds(f));
    let data_type = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect()),
        DataType::List(inner) => DataType::List(of(inner)),
        DataType::Map(inner, sorted) => DataType::Map(of(inner), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

fn conform(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
    let wanted: Vec<_> = schema.fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, wanted, "columns");
    // The referee prints a nested column that holds variants as one text.
    let as_text = |c: &ArrayRef, f: &Field| c.data_type() == &DataType::Utf8 && f.data_type().is_nested();
    let column = |(c, f): (&ArrayRef, &Arc<Field>)| match as_text(c, f) {
        true => (f.as_ref().clone().with_data_type(DataType::Utf8), Arc::clone(c)),
        false => (f.as_ref().clone(), cast(c, f.data_type()).unwrap()),
    };
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = batch.columns().iter().zip(schema.fields()).map(column).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// `batch` with those nested columns as text that `expected` has as text; their leaves are JSON already.
pub fn as_text_where(batch: &RecordBatch, expected: &Schema) -> RecordBatch {
    let text = |array: &ArrayRef| -> ArrayRef {
        Arc::new((0..array.len()).map(|row| (!array.is_null(row)).then(|| json_of(array, row))).collect::<StringArray>())
    };
    let columns = batch.columns().iter().zip(expected.fields());
    let columns = columns.map(|(c, f)| if c.data_type().is_nested() && f.data_type() == &DataType::Utf8 { text(c) } else { Arc::clone(c) });
    RecordBatch::try_new(Arc::new(expected.clone()), columns.collect()).unwrap()
}

fn json_of(array: &ArrayRef, row: usize) -> String {
    match array.data_type() {
        DataType::Struct(fields) => {
            let children = fields.iter().zip(array.as_struct().columns()).filter(|(_, c)| !c.is_null(row));
            let pairs: Vec<_> = children.map(|(f, c)| format!("\"{}\":{}", f.name(), json_of(c, row))).collect();
            format!("{{{}}}", pairs.join(","))
        }
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(row);
            let items: Vec<_> = (0..values.len()).map(|i| json_of(&values, i)).collect();
            format!("[{}]", items.join(","))
        }
        _ => array.as_string::<i32>().value(row).to_owned(),
    }
}

/// Rows as sorted text: equal multisets of rows give equal lists.
pub fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows: Vec<String> = batches.iter().flat_map(rows_of).collect();
    rows.sort();
    rows
}

fn rows_of(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("NULL");
    let formatters: Vec<_> = batch.columns().iter().map(|c: &ArrayRef| ArrayFormatter::try_new(c, &options).unwrap()).collect();
    let row = |i: usize| formatters.iter().map(|f| f.value(i).to_string()).collect::<Vec<_>>().join(" | ");
    (0..batch.num_rows()).map(row).collect()
}
