//! Divides the rows of a batch, to find those that the database does not accept.

use std::ops::Range;

use crate::fault::Fault;
use crate::rows::Rows;

/// Removes the rows that caused `fault` from part number `at`, or halves the part.
pub(crate) fn split(rows: &mut Rows, parts: &mut Vec<Range<usize>>, at: usize, mut fault: Fault) {
    let part = parts[at].clone();
    let mut known = std::mem::take(&mut fault.rows);
    known.retain(|row| part.contains(row));
    if known.is_empty() && part.len() == 1 {
        known.push(part.start);
    }
    let mut finer = Vec::with_capacity(known.len() + 1);
    if known.is_empty() {
        let middle = part.start + part.len() / 2;
        finer.extend([part.start..middle, middle..part.end]);
    } else {
        let mut start = part.start;
        for row in known {
            rows.refuse(row, fault.clone());
            finer.push(start..row);
            start = row + 1;
        }
        finer.push(start..part.end);
    }
    parts.splice(at..=at, finer.into_iter().filter(|part| !part.is_empty()));
}

/// Returns a range in two halves. The half that is stored first is the last element.
pub(crate) fn halves(range: Range<usize>) -> [Range<usize>; 2] {
    let middle = range.start + range.len() / 2;
    [middle..range.end, range.start..middle]
}

/// Returns a range in the parts before, at and after `row`. The part that is stored first is the last element.
pub(crate) fn around(range: Range<usize>, row: usize) -> Vec<Range<usize>> {
    let parts = [row + 1..range.end, row..row + 1, range.start..row];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}
