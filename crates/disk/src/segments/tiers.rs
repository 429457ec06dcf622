//! Which rows are built into a segment next?

use std::ops::Range;

use likewise_core::isa::Isa;
use likewise_core::parallel::Run;

use super::layout::{BandPlan, HammingPlan};

/// Minimum number of rows for which a segment is worth its files.
pub const MIN_ROWS: u32 = 1 << 14;
/// Size ratio of successive tiers: a search visits every segment, and each row is rebuilt once per tier.
pub const RATIO: u32 = 4;

/// A run of rows that are stored together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub rows: Range<u32>,
    pub num_held: u32,
    /// Number of these rows that are not gone.
    pub num_live: u32,
    /// Whether it is a segment; otherwise its rows are in memory.
    pub is_built: bool,
}

impl Piece {
    /// Whether at least half of its rows are gone, so that it takes twice the space that it needs.
    fn is_worn(&self) -> bool {
        self.is_built && self.num_held > 0 && self.num_held - self.num_live >= self.num_live
    }
}

/// Returns the rows of the next segment to build, if one is due; it replaces the pieces inside. Rows in no segment are
/// due before a segment, or if there are `min_rows` at the end; they are joined with preceding segments of the same or
/// a lower tier if these number at least [`RATIO`] with it, and so on, so there are fewer per tier.
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

/// Returns the rows of the first segment of which at least half is gone.
pub fn next_worn(pieces: &[Piece]) -> Option<Range<u32>> {
    let worn = pieces.iter().find(|piece| piece.is_worn())?;
    Some(worn.rows.clone())
}

/// Extends `rows` by the last segments, tier by tier, while a tier has [`RATIO`] of them, including the new one.
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

/// The tables that a recipe requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPlan {
    /// How fingerprints are searched, if they are.
    pub hamming: Option<HammingPlan>,
    /// How signatures are searched, if they are.
    pub bands: Option<BandPlan>,
}

#[derive(Clone, Copy)]
pub struct Building<'a> {
    pub isa: Isa,
    pub run: Run<'a>,
    /// Approximate memory limit, in bytes. One table (16 bytes per row, about 40 for fingerprints) is always allowed.
    pub memory_bytes: usize,
}

/// Bytes per row of a table while it is sorted and packed.
const TABLE_BYTES: usize = 16;
/// Bytes per fingerprint while its tables are built, in addition to its words.
const HAMMING_BYTES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    Ids,
    Groups,
    Classes,
    Hamming,
    Band(u32),
}

/// Tables that are built in one pass.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) jobs: Vec<Job>,
}

/// Divides the tables into few passes, each with at most `memory_bytes` of tables or a single one, bands in order.
pub(super) fn passes(plan: &SegmentPlan, num_rows: usize, memory_bytes: usize) -> Vec<Pass> {
    let bands = plan.bands.map_or(0, |bands| bands.bands);
    let jobs = [Job::Ids, Job::Groups, Job::Classes]
        .into_iter()
        .chain(plan.hamming.map(|_| Job::Hamming))
        .chain((0..bands).map(Job::Band));
    let mut passes: Vec<Pass> = Vec::new();
    let mut bytes = 0;
    for job in jobs {
        let more = num_rows
            * match (job, plan.hamming) {
                (Job::Hamming, Some(hamming)) => {
                    HAMMING_BYTES + 8 * hamming.bits.div_ceil(64) as usize
                }
                _ => TABLE_BYTES,
            };
        match passes.last_mut() {
            Some(pass) if bytes + more <= memory_bytes => {
                pass.jobs.push(job);
                bytes += more;
            }
            _ => {
                passes.push(Pass { jobs: vec![job] });
                bytes = more;
            }
        }
    }
    passes
}
