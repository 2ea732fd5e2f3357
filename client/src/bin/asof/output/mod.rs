//! Rows, written: to the screen or a file, as a table, CSV, JSON lines, Arrow or Parquet.

mod columnar;
mod table;
mod text;

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::failure::Failure;

pub use table::{Expanded, Layout};

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// With a header; NULL is an empty field.
    Csv,
    /// One object on each line; NULL is null.
    Json,
    /// Arrow IPC: a stream on stdout and in files that end in .arrows, else an Arrow file.
    Arrow,
    /// Parquet, compressed with zstd.
    Parquet,
}

/// Whether a writer wants more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Yes.
    More,
    /// No; the rest may be cancelled.
    Enough,
}

/// What was shown of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Rows.
    pub rows: usize,
    /// There are more.
    pub cut: bool,
    /// Columns that were left out, being NULL in every row, since there was no room.
    pub left_out: Vec<String>,
}

impl Shown {
    fn all(rows: usize) -> Self {
        Self { rows, ..Self::default() }
    }

    /// A line about it.
    pub fn summary(&self) -> String {
        let rows = match (self.cut, self.rows) {
            (true, rows) => format!("the first {rows} rows, of more"),
            (false, 1) => "1 row".to_owned(),
            (false, rows) => format!("{rows} rows"),
        };
        if self.left_out.is_empty() { rows } else { format!("{rows}, NULL throughout: {}", self.left_out.join(", ")) }
    }
}

/// Writes the batches of one result.
pub trait ResultWriter {
    /// Writes a batch, or keeps it until [`finish`](Self::finish).
    fn write(&mut self, batch: &RecordBatch) -> Result<Flow, Failure>;
    /// Writes what is left, once.
    fn finish(&mut self) -> Result<Shown, Failure>;
}

/// A place rows can be written to.
type Sink = dyn Write + Send;

/// Where rows go: stdout, or a file that gets its name when all is well.
pub struct Target {
    sink: Box<Sink>,
    file: Option<PathBuf>,
    /// Results begun.
    results: usize,
}

impl Target {
    /// stdout, or this file.
    pub fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let sink: Box<Sink> = match path {
            None => Box::new(BufWriter::new(io::stdout())),
            Some(path) => {
                let partial = partial(path);
                let file =
                    File::create(&partial).map_err(|error| Failure::Usage(format!("cannot write to {}: {error}", path.display())))?;
                Box::new(BufWriter::new(file))
            }
        };
        Ok(Self { sink, file: path.map(Path::to_path_buf), results: 0 })
    }

    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a person sees it.
    pub fn is_terminal(&self) -> bool {
        !self.is_file() && io::stdout().is_terminal()
    }

    /// Begins a result.
    pub fn begin<'a>(&'a mut self, format: Format, schema: &SchemaRef, layout: &Layout) -> Result<Box<dyn ResultWriter + 'a>, Failure> {
        self.results += 1;
        if self.results > 1 && self.is_file() && matches!(format, Format::Arrow | Format::Parquet) {
            return Err(Failure::Usage(
                "an Arrow or Parquet file holds one result, and this is the second; run one statement for a file".into(),
            ));
        }
        let terminal = self.is_terminal();
        let stream = self.file.as_ref().is_none_or(|path| path.extension().is_some_and(|ending| ending == "arrows"));
        let sink = &mut *self.sink;
        Ok(match format {
            Format::Table => Box::new(table::TableWriter::new(sink, schema, layout, terminal)),
            Format::Csv => Box::new(text::CsvWriter::new(sink, schema)?),
            Format::Json => Box::new(text::JsonWriter::new(sink)),
            Format::Arrow if stream => Box::new(columnar::ArrowStream::new(sink, schema)?),
            Format::Arrow => Box::new(columnar::ArrowFile::new(sink, schema)?),
            Format::Parquet => Box::new(columnar::Parquet::new(sink, schema)?),
        })
    }

    /// Ends it: the file gets its name if all is well, else it is removed.
    pub fn finish(&mut self, well: bool) -> Result<(), Failure> {
        self.sink.flush()?;
        match self.file.take() {
            None => {}
            Some(path) if well => fs::rename(partial(&path), &path)?,
            Some(path) => fs::remove_file(partial(&path))?,
        }
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// What a file is called until it is whole.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries() {
        let check = |shown: Shown, expect: &str| assert_eq!(shown.summary(), expect);
        check(Shown::all(0), "0 rows");
        check(Shown::all(1), "1 row");
        check(Shown { rows: 1000, cut: true, left_out: vec![] }, "the first 1000 rows, of more");
        check(Shown { rows: 2, cut: false, left_out: vec!["a".into(), "b".into()] }, "2 rows, NULL throughout: a, b");
    }
}
