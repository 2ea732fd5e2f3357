//! The corpus of sqllogictest files in `integration/slt`: one set of answers for both ways to the engine.
//!
//! Both runners give [`run`] a database and get every file's first difference back. Values are spelled once, here, so that the answers
//! are the same: NULL is `NULL`, an empty text `(empty)`, a moment `2026-05-06T12:30:15.250Z`, floats as Rust prints them.
//!
//! The warehouse a runner offers holds the tables of [`GOLDEN`] in the schema `golden`; each file makes and drops a schema of its own.

use std::path::{Path, PathBuf};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, MakeConnection, Runner};

/// The golden tables the files read.
pub const GOLDEN: [&str; 8] =
    ["selectors", "skewed_mtimes", "seed_001a_cities", "replace", "mapping_name", "dv", "partitions_string", "vacuumed"];

/// Files of the corpus, sorted.
///
/// # Errors
/// What the file system says.
pub fn files() -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crate::folder()?.join("slt"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "slt") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A warehouse for the corpus: [`GOLDEN`] in schema `golden`.
///
/// # Errors
/// What the file system says.
pub fn fill(warehouse: &Path) -> std::io::Result<()> {
    for case in GOLDEN {
        crate::golden::copy(case, warehouse, "golden")?;
    }
    Ok(())
}

/// Runs every file, each on connections of its own; the differences, one text for each file that has one.
pub async fn run<D, C, F>(files: &[PathBuf], mut connect: C) -> Vec<String>
where
    D: AsyncDB<ColumnType = DefaultColumnType>,
    C: FnMut() -> F,
    F: MakeConnection<Conn = D>,
{
    let mut differences = Vec::new();
    for file in files {
        let mut runner = Runner::new(connect());
        if let Err(error) = runner.run_file_async(file).await {
            differences.push(error.display(false).to_string());
        }
        runner.shutdown_async().await;
    }
    differences
}

/// What a statement with rows gave, as sqllogictest wants it.
///
/// # Errors
/// A value that cannot be printed.
pub fn rows(schema: &Schema, batches: &[RecordBatch]) -> Result<DBOutput<DefaultColumnType>, ArrowError> {
    let types = schema.fields().iter().map(|field| column_type(field.data_type())).collect();
    let mut rows = Vec::new();
    for batch in batches {
        let options = FormatOptions::new().with_null("NULL");
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let values = columns.iter().zip(batch.columns());
            rows.push(values.map(|(formatter, array)| spell(formatter, array, row)).collect::<Result<Vec<_>, _>>()?);
        }
    }
    Ok(DBOutput::Rows { types, rows })
}

fn spell(formatter: &ArrayFormatter<'_>, array: &dyn Array, row: usize) -> Result<String, ArrowError> {
    let text = formatter.value(row).try_to_string()?;
    Ok(if text.is_empty() && array.is_valid(row) { "(empty)".into() } else { text })
}

fn column_type(data_type: &DataType) -> DefaultColumnType {
    if data_type.is_integer() {
        DefaultColumnType::Integer
    } else if data_type.is_floating() || data_type.is_decimal() {
        DefaultColumnType::FloatingPoint
    } else if matches!(data_type, DataType::Utf8) {
        DefaultColumnType::Text
    } else {
        DefaultColumnType::Any
    }
}
