//! Deleted rows as a selection of those that are left, and wanted rows as a selection of them.
//!
//! DataFusion wants a selection that covers exactly the rows of the file; it then splits it per row group, so that ranges of one
//! file are still read in parallel and pages are still pruned.

use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use roaring::RoaringTreemap;

/// The rows of a file of `rows` rows that `deleted` leaves; positions at or beyond its end mean nothing.
pub(super) fn left(deleted: &RoaringTreemap, rows: u64) -> ParquetRowSelection {
    selection(deleted, rows, true)
}

/// The `wanted` rows of a file of `rows` rows.
pub(super) fn wanted(wanted: &RoaringTreemap, rows: u64) -> ParquetRowSelection {
    selection(wanted, rows, false)
}

fn selection(named: &RoaringTreemap, rows: u64, skipped: bool) -> ParquetRowSelection {
    let selector = |rows: u64, skip| RowSelector { row_count: usize::try_from(rows).unwrap_or(usize::MAX), skip };
    let mut selectors: Vec<RowSelector> = Vec::new();
    let mut next = 0;
    for row in named.iter().take_while(|row| *row < rows) {
        if row > next {
            selectors.push(selector(row - next, !skipped));
        }
        match selectors.last_mut() {
            Some(last) if last.skip == skipped => last.row_count += 1,
            _ => selectors.push(selector(1, skipped)),
        }
        next = row + 1;
    }
    if next < rows {
        selectors.push(selector(rows - next, !skipped));
    }
    ParquetRowSelection::new(RowSelection::from(selectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(named: &[u64], rows: u64, expect: &[(bool, usize)]) {
        let named = named.iter().copied().collect();
        let found = |selection: ParquetRowSelection, flip| {
            let selectors: Vec<RowSelector> = selection.into_inner().into();
            selectors.iter().map(|s| (s.skip == flip, s.row_count)).collect::<Vec<_>>()
        };
        assert_eq!(found(left(&named, rows), false), expect);
        assert_eq!(found(wanted(&named, rows), true), expect);
    }

    #[test]
    fn selections_cover_the_file_exactly() {
        check(&[], 5, &[(true, 5)]);
        check(&[0, 1, 4], 5, &[(false, 2), (true, 2), (false, 1)]);
        check(&[2], 5, &[(true, 2), (false, 1), (true, 2)]);
        check(&[0, 1, 2], 3, &[(false, 3)]);
    }

    #[test]
    fn positions_beyond_the_file_mean_nothing() {
        check(&[1, 5, 6, 1 << 40], 5, &[(true, 1), (false, 1), (true, 3)]);
        check(&[7], 0, &[]);
    }
}
