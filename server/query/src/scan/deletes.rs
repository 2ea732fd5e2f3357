//! Deleted rows as a selection of those that are left.
//!
//! DataFusion wants a selection that covers exactly the rows of the file; it then splits it per row group, so that ranges of one
//! file are still read in parallel and pages are still pruned.

use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use roaring::RoaringTreemap;

/// The rows of a file of `rows` rows that `deleted` leaves; positions at or beyond its end mean nothing.
pub(super) fn left(deleted: &RoaringTreemap, rows: u64) -> ParquetRowSelection {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let mut selectors: Vec<RowSelector> = Vec::new();
    let mut next = 0;
    for row in deleted.iter().take_while(|row| *row < rows) {
        if row > next {
            selectors.push(RowSelector::select(size(row - next)));
        }
        match selectors.last_mut() {
            Some(last) if last.skip => last.row_count += 1,
            _ => selectors.push(RowSelector::skip(1)),
        }
        next = row + 1;
    }
    if next < rows {
        selectors.push(RowSelector::select(size(rows - next)));
    }
    ParquetRowSelection::new(RowSelection::from(selectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(deleted: &[u64], rows: u64, expect: &[(bool, usize)]) {
        let selection: Vec<RowSelector> = left(&deleted.iter().copied().collect(), rows).into_inner().into();
        let found: Vec<_> = selection.iter().map(|s| (!s.skip, s.row_count)).collect();
        assert_eq!(found, expect);
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
