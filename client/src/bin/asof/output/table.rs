//! Rows as a table that a person reads.
//!
//! Numbers stand to the right, NULL is told from the text `NULL` by its colour, and characters that would move the cursor or change
//! its colour are shown, not obeyed: a table's content must not rule the terminal. A table that is too wide first loses the columns
//! that are NULL in every row (and says which), then its cells are wrapped, and one that would be wrapped to shreds is shown row by
//! row instead.

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

use super::{Flow, ResultWriter, Shown, Sink};
use crate::failure::Failure;

/// A table this many times wider than the screen is shown row by row.
const SHREDDED: usize = 2;

/// Columns of the screen that a table's column takes beside its content.
const BORDER: usize = 3;

/// Whether rows are shown one below the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expanded {
    /// When a table would be much too wide.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How tables are laid out.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Columns of the screen; the terminal's when `None`.
    pub width: Option<u16>,
    /// Rows to show; all when `None`.
    pub max_rows: Option<usize>,
    /// Rows one below the other.
    pub expanded: Expanded,
}

/// Keeps rows until all are there, then lays them out.
pub struct TableWriter<'a> {
    sink: &'a mut Sink,
    layout: Layout,
    terminal: bool,
    names: Vec<String>,
    numeric: Vec<bool>,
    /// Cells by row; `None` is NULL.
    rows: Vec<Vec<Option<String>>>,
    cut: bool,
}

impl<'a> TableWriter<'a> {
    pub fn new(sink: &'a mut Sink, schema: &SchemaRef, layout: &Layout, terminal: bool) -> Self {
        let names = schema.fields().iter().map(|field| readable(field.name())).collect();
        let numeric = schema.fields().iter().map(|field| is_number(field.data_type())).collect();
        Self { sink, layout: layout.clone(), terminal, names, numeric, rows: Vec::new(), cut: false }
    }

    /// The columns of the screen there are, when that matters.
    fn room(&self) -> Option<usize> {
        self.layout.width.or_else(|| if self.terminal { Table::new().width() } else { None }).map(usize::from)
    }

    /// A table of these columns.
    fn table(&self, columns: &[usize]) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
        if !self.terminal {
            table.force_no_tty();
        }
        table.set_header(columns.iter().filter_map(|at| self.names.get(*at)).map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
        for row in &self.rows {
            table.add_row(columns.iter().filter_map(|at| row.get(*at)).map(cell));
        }
        for (column, at) in table.column_iter_mut().zip(columns) {
            if self.numeric.get(*at) == Some(&true) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    /// Columns that are NULL in every row.
    fn empty_columns(&self) -> Vec<usize> {
        let is_empty = |at: &usize| self.rows.iter().all(|row| row.get(*at).is_some_and(Option::is_none));
        if self.rows.is_empty() { Vec::new() } else { (0..self.names.len()).filter(is_empty).collect() }
    }

    /// The text, and the columns that were left out of it.
    fn lay_out(&self) -> (String, Vec<String>) {
        let all: Vec<_> = (0..self.names.len()).collect();
        if self.layout.expanded == Expanded::On {
            return (self.expanded(&all), Vec::new());
        }
        let whole = self.table(&all);
        let Some(room) = self.room().filter(|room| natural_width(&whole) > *room) else { return (whole.to_string(), Vec::new()) };
        let empty = self.empty_columns();
        let kept: Vec<_> = all.into_iter().filter(|at| !empty.contains(at)).collect();
        let left_out = empty.iter().filter_map(|at| self.names.get(*at).cloned()).collect();
        let mut table = self.table(&kept);
        let shredded = natural_width(&table) > room.saturating_mul(SHREDDED);
        if shredded && self.layout.expanded == Expanded::Auto {
            return (self.expanded(&kept), left_out);
        }
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::try_from(room).unwrap_or(u16::MAX));
        (table.to_string(), left_out)
    }

    /// Row by row, a line for each column.
    fn expanded(&self, columns: &[usize]) -> String {
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut table = Table::new();
            table.load_preset(presets::UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
            table.set_style(comfy_table::TableComponent::VerticalLines, '│');
            table.remove_style(comfy_table::TableComponent::HorizontalLines);
            if !self.terminal {
                table.force_no_tty();
            }
            if let Some(room) = self.room() {
                table.set_width(u16::try_from(room).unwrap_or(u16::MAX));
            }
            for at in columns {
                if let (Some(name), Some(value)) = (self.names.get(*at), row.get(*at)) {
                    table.add_row([Cell::new(name).add_attribute(Attribute::Bold), cell(value)]);
                }
            }
            let separator = if number == 0 { "" } else { "\n" };
            text.push_str(&format!("{separator}row {}\n{table}", number + 1));
        }
        text
    }
}

impl ResultWriter for TableWriter<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<Flow, Failure> {
        let room = self.layout.max_rows.map_or(batch.num_rows(), |most| most.saturating_sub(self.rows.len()));
        self.cut = room < batch.num_rows();
        let rows = room.min(batch.num_rows());
        self.rows.extend(cells(&batch.slice(0, rows))?);
        Ok(if self.cut { Flow::Enough } else { Flow::More })
    }

    fn finish(&mut self) -> Result<Shown, Failure> {
        let (text, left_out) = if self.names.is_empty() { (String::new(), Vec::new()) } else { self.lay_out() };
        if !text.is_empty() {
            writeln!(self.sink, "{text}")?;
        }
        Ok(Shown { rows: self.rows.len(), cut: self.cut, left_out })
    }
}

/// A batch's cells by row.
fn cells(batch: &RecordBatch) -> Result<Vec<Vec<Option<String>>>, ArrowError> {
    let options = FormatOptions::default()
        .with_null("NULL")
        .with_display_error(true)
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
    let columns = batch.columns();
    let formatters = columns.iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<Result<Vec<_>, _>>()?;
    // The type Null has no bits of its own that say NULL.
    let nulls: Vec<_> = columns.iter().map(Array::logical_nulls).collect();
    let cell = |row| {
        nulls.iter().zip(&formatters).map(move |(nulls, formatter)| {
            let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            valid.then(|| readable(&formatter.value(row).to_string()))
        })
    };
    Ok((0..batch.num_rows()).map(|row| cell(row).collect()).collect())
}

fn cell(value: &Option<String>) -> Cell {
    match value {
        Some(text) => Cell::new(text),
        None => Cell::new("NULL").add_attribute(Attribute::Dim),
    }
}

/// A text with its control characters made visible; line ends stay, a table can show them.
fn readable(text: &str) -> String {
    if !text.contains(|c: char| c.is_control() && c != '\n') {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => shown.push(c),
            '\t' => shown.push_str("    "),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// The columns of the screen a table wants.
fn natural_width(table: &Table) -> usize {
    table.column_max_content_widths().into_iter().map(|width| usize::from(width) + BORDER).sum::<usize>() + 1
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, NullArray, StringArray, TimestampMicrosecondArray};

    use super::*;

    fn shown(columns: Vec<(&str, ArrayRef)>, layout: &Layout) -> (String, Shown) {
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap();
        let mut sink = Vec::new();
        let mut writer = TableWriter::new(&mut sink, &batch.schema(), layout, false);
        writer.write(&batch).unwrap();
        let shown = writer.finish().unwrap();
        (String::from_utf8(sink).unwrap(), shown)
    }

    #[test]
    fn a_small_table() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("name", Arc::new(StringArray::from(vec![Some("a\tb"), None, Some("\x1b[31mred")]))),
            ("n", Arc::new(Int64Array::from(vec![Some(5), Some(-12), None]))),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_767_744_000_000_000), None, Some(1)]).with_timezone("UTC"))),
        ];
        let (text, shown) = shown(columns, &Layout::default());
        let expect = [
            "┌───────────────┬──────┬──────────────────────────────────┐",
            "│ name          ┆    n ┆ at                               │",
            "╞═══════════════╪══════╪══════════════════════════════════╡",
            "│ a    b        ┆    5 ┆ 2026-01-07 00:00:00+00:00        │",
            "│ NULL          ┆  -12 ┆ NULL                             │",
            "│ \\u{1b}[31mred ┆ NULL ┆ 1970-01-01 00:00:00.000001+00:00 │",
            "└───────────────┴──────┴──────────────────────────────────┘",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expect, "{text}");
        assert_eq!(shown, Shown::all(3));
    }

    #[test]
    fn rows_beyond_the_limit_are_not_shown() {
        let columns: Vec<(&str, ArrayRef)> = vec![("n", Arc::new(Int64Array::from_iter_values(0..10)))];
        let (text, shown) = shown(columns, &Layout { max_rows: Some(3), ..Layout::default() });
        assert_eq!(shown, Shown { rows: 3, cut: true, left_out: vec![] });
        assert!(text.contains(" 2 ") && !text.contains(" 3 "), "{text}");
    }

    #[test]
    fn what_is_null_throughout_makes_room() {
        let columns = || -> Vec<(&str, ArrayRef)> {
            vec![("n", Arc::new(Int64Array::from(vec![1]))), ("nothing_to_see_here", Arc::new(NullArray::new(1)))]
        };
        let (wide, all) = shown(columns(), &Layout { width: Some(40), ..Layout::default() });
        assert!(wide.contains("nothing"), "{wide}");
        assert!(all.left_out.is_empty());
        let (narrow, some) = shown(columns(), &Layout { width: Some(20), ..Layout::default() });
        assert!(!narrow.contains("nothing"), "{narrow}");
        assert_eq!(some.left_out, ["nothing_to_see_here"]);
    }

    #[test]
    fn a_much_too_wide_table_is_shown_row_by_row() {
        let long = "x".repeat(300);
        let columns = || -> Vec<(&str, ArrayRef)> { vec![("a", Arc::new(StringArray::from(vec![long.as_str(), "y"])))] };
        let (auto, _) = shown(columns(), &Layout { width: Some(40), ..Layout::default() });
        assert!(auto.starts_with("row 1\n") && auto.contains("\nrow 2\n"), "{auto}");
        let (off, _) = shown(columns(), &Layout { width: Some(40), expanded: Expanded::Off, ..Layout::default() });
        assert!(off.lines().all(|line| line.chars().count() <= 40) && !off.contains("row 1"), "{off}");
    }
}
