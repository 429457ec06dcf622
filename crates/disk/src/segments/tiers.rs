//! Which rows are to be built into a segment next?

use std::ops::Range;

/// Rows of the smallest segment that is worth its files.
pub const MIN_ROWS: u32 = 1 << 14;
/// A segment of a tier is about so many times larger than one of the tier below. Each search asks every segment, each row is built again once a
/// tier: with four there are about half as many segments as with eight, for one more building of each row.
pub const RATIO: u32 = 4;

/// Rows that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The rows that it covers.
    pub rows: Range<u32>,
    /// Rows that it holds.
    pub num_held: u32,
    /// Those of them that are not gone.
    pub num_live: u32,
    /// Whether it is a segment; else its rows are in memory.
    pub is_built: bool,
}

impl Piece {
    /// Whether as many of its rows are gone as are not, so that it takes twice the space that it needs.
    fn is_worn(&self) -> bool {
        self.is_built && self.num_held > 0 && self.num_held - self.num_live >= self.num_live
    }
}

/// The rows of the segment to build next, where one is due; it takes the place of the pieces inside.
///
/// `pieces` ascend, none of them overlapping; between them all rows are gone. Rows that no segment holds are due where they lie before a segment or
/// there are `min_rows` of them at the end; with them go the segments before that are less than [`RATIO`] times as long as what is joined so far and
/// hold as many tiers. So a row is built again a logarithmic number of times, and there are fewer than [`RATIO`] segments of a tier. What counts is
/// how many rows are not gone.
pub fn next_build(pieces: &[Piece], min_rows: u32) -> Option<Range<u32>> {
    let min_rows = min_rows.max(1);
    let first = pieces.iter().position(|piece| !piece.is_built)?;
    let num = pieces[first..]
        .iter()
        .take_while(|piece| !piece.is_built)
        .count();
    let (rest, behind) = pieces[first..].split_at(num);
    let held: u32 = rest.iter().map(|piece| piece.num_held).sum();
    if behind.is_empty() && held < min_rows {
        return None;
    }
    let live = rest.iter().map(|piece| piece.num_live).sum();
    let rows = rest[0].rows.start..rest[num - 1].rows.end;
    Some(join(&pieces[..first], rows, live, min_rows))
}

/// The rows of the first segment half of whose rows are gone.
pub fn next_worn(pieces: &[Piece]) -> Option<Range<u32>> {
    let worn = pieces.iter().find(|piece| piece.is_worn())?;
    Some(worn.rows.clone())
}

/// Takes in the last segments where there are as many of one tier as the ratio, itself included, tier by tier.
fn join(before: &[Piece], mut rows: Range<u32>, num_live: u32, min_rows: u32) -> Range<u32> {
    let (mut left, mut num_live) = (before.len(), num_live);
    loop {
        let tier = tier_of(num_live, min_rows);
        let num_same = before[..left]
            .iter()
            .rev()
            .take_while(|other| tier_of(other.num_live, min_rows) <= tier)
            .count();
        if num_same + 1 < RATIO as usize {
            return rows;
        }
        let joined = &before[left - num_same..left];
        num_live += joined.iter().map(|piece| piece.num_live).sum::<u32>();
        left -= num_same;
        rows.start = before[left].rows.start;
    }
}

fn tier_of(num_rows: u32, min_rows: u32) -> u32 {
    (num_rows / min_rows).max(1).ilog(RATIO)
}
