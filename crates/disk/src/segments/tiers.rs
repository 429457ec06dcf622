//! Which rows are to be built into a segment next?

use std::ops::Range;

/// Rows of the smallest segment that is worth its files.
pub const MIN_ROWS: u32 = 1 << 14;
/// A segment of a tier is about so many times larger than one of the tier below.
pub const RATIO: u32 = 8;

/// The rows of the segment to build next, where one is due; it takes the place of the live segments inside.
///
/// `live` are the rows of the live segments, ascending, one behind the other from row 0 as far as they go: of those behind a hole none counts.
/// `num_rows` is how many rows the store has. What no segment holds becomes one as soon as it is `min_rows` long; with it go the
/// segments before it that are less than [`RATIO`] times as long as what would be joined, so that a row is built again a
/// logarithmic number of times and there are at most about [`RATIO`] segments of a tier.
pub fn next_build(live: &[Range<u32>], num_rows: u32, min_rows: u32) -> Option<Range<u32>> {
    let _ = (live, num_rows, min_rows);
    todo!()
}
