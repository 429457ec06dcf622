//! Which rows are to be built into a segment next?

use std::ops::Range;

/// Rows of the smallest segment that is worth its files.
pub const MIN_ROWS: u32 = 1 << 14;
/// A segment of a tier is about so many times larger than one of the tier below. Each search asks every segment, each row is built again once a
/// tier: with four there are about half as many segments as with eight, for one more building of each row.
pub const RATIO: u32 = 4;

/// The rows of the segment to build next, where one is due; it takes the place of the live segments inside.
///
/// `live` are the rows of the live segments, ascending, none of them overlapping. `num_rows` is how many rows the store has. The rows of the first
/// hole are due where they lie between segments or there are `min_rows` of them at the end; with them go the segments before that are less than
/// [`RATIO`] times as long as what is joined so far and hold as many tiers. So a row is built again a logarithmic number of times, and
/// there are fewer than [`RATIO`] segments of a tier.
pub fn next_build(live: &[Range<u32>], num_rows: u32, min_rows: u32) -> Option<Range<u32>> {
    let min_rows = min_rows.max(1);
    let mut end = 0;
    for (i, rows) in live.iter().enumerate() {
        if rows.start > end {
            return Some(join(&live[..i], end..rows.start, min_rows));
        }
        end = end.max(rows.end);
    }
    let is_due = num_rows.saturating_sub(end) >= min_rows;
    is_due.then(|| join(live, end..num_rows, min_rows))
}

/// Takes in the last segments where there are as many of one tier as the ratio, itself included, tier by tier.
fn join(before: &[Range<u32>], mut rows: Range<u32>, min_rows: u32) -> Range<u32> {
    let mut left = before.len();
    loop {
        let tier = tier_of(rows.len(), min_rows);
        let num_same = before[..left]
            .iter()
            .rev()
            .take_while(|other| tier_of(other.len(), min_rows) <= tier)
            .count();
        if num_same + 1 < RATIO as usize {
            return rows;
        }
        left -= num_same;
        rows.start = before[left].start;
    }
}

fn tier_of(num_rows: usize, min_rows: u32) -> u32 {
    (num_rows as u64 / u64::from(min_rows))
        .max(1)
        .ilog(u64::from(RATIO))
}
