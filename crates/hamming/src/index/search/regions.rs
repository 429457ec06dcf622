//! In what order are the places of a table visited that many queries need?
//!
//! Neighbors of one query within the radius are scattered over a table, and those of many queries access each part of
//! it many times. So the probes are first distributed by region, a part of the table that fits in the cache of a core:
//! a region is then fetched from memory once for all queries. A distributed probe is a query and the number of a flip.
//!
//! At the wide radii of real data, this doubles the rate of a sorted batch again.

use std::sync::atomic::{AtomicBool, Ordering};

use super::pass::{CACHE_LINE_WORDS, LINES_AHEAD, Pass, Probe};
use crate::index::table::directory::LINE_WORDS;
use crate::index::table::kernel::TableKernel;
use crate::index::table::table::Table;
use likewise_core::prefetch::prefetch_read;

/// Size of a region in bytes: the private cache of a core holds several.
const REGION_BYTES: usize = 128 << 10;
/// Maximum number of regions, as bits: this many write positions stay in that cache.
const MAX_REGION_BITS: u32 = 12;
/// Maximum number of probes that are distributed at once, unless one query has more; they take 8 bytes each.
const MAX_PROBES: usize = 1 << 21;
/// Minimum number of probes per region that is worth distributing.
const MIN_PROBES_A_REGION: usize = 8;

/// The probes of some queries, by region.
#[derive(Default)]
pub(crate) struct Regions {
    /// End of each region's probes.
    ends: Vec<u32>,
    /// Query in the upper 32 bits, number of the flip in the lower.
    probes: Vec<u64>,
}

/// Number of low bits of a line number that do not affect its region.
fn region_shift(table: &Table) -> u32 {
    let shape = table.directory.shape;
    let line_bits = shape.prefix_bits - shape.line_shift;
    let num_regions = (table.num_bytes() / REGION_BYTES).max(1).ilog2();
    line_bits - num_regions.min(MAX_REGION_BITS).min(line_bits)
}

/// Whether `num_queries` queries with the probes of this radius are worth distributing.
pub(crate) fn is_worth_dealing(table: &Table, num_queries: usize, radius: u32) -> bool {
    let num_flips = table.line_flips.within(radius).len();
    let shape = table.directory.shape;
    let num_regions = 1_usize << (shape.prefix_bits - shape.line_shift - region_shift(table));
    num_flips > 1 && num_queries * num_flips >= MIN_PROBES_A_REGION * num_regions
}

// Safety of all: the processor has the kernel's instruction set.
impl<const W: usize> Pass<'_, '_, W> {
    /// Makes the probes of all queries, region by region, until there are too many hits or `cancel` is set.
    #[inline(always)]
    pub(crate) unsafe fn run_by_region<K: TableKernel>(
        &mut self,
        regions: &mut Regions,
        cancel: &AtomicBool,
    ) {
        let num_flips = self.table.line_flips.within(self.radius).len();
        let at_once = (MAX_PROBES / num_flips).max(1);
        for first in (0..self.queries.len()).step_by(at_once) {
            let end = self.queries.len().min(first + at_once);
            regions.deal(self.table, self.queries, first..end, self.radius);
            let mut from = 0;
            for place in 0..regions.ends.len() {
                let to = regions.ends[place] as usize;
                // SAFETY: guaranteed by the caller.
                unsafe { self.run_region::<K>(&regions.probes[from..to]) };
                self.hits.is_crowded = self.hits.len() > self.request.most_hits;
                if self.hits.is_crowded || cancel.load(Ordering::Relaxed) {
                    return;
                }
                from = to;
            }
        }
    }

    #[inline(always)]
    unsafe fn run_region<K: TableKernel>(&mut self, probes: &[u64]) {
        let table = self.table;
        let shape = table.directory.shape;
        let prefix_shift = table.prefix_shift();
        let lines = table.directory.lines.as_slice();
        let line_words = match shape.is_unary {
            true => LINE_WORDS,
            false => CACHE_LINE_WORDS,
        };
        let flips = table.line_flips.within(self.radius);
        let mut group = [Probe::default(); LINES_AHEAD];
        for probes in probes.chunks(LINES_AHEAD) {
            for (slot, probe) in group.iter_mut().zip(probes) {
                let query = (probe >> 32) as u32;
                let flip = flips[*probe as u32 as usize];
                let prefix = self.queries[query as usize][0] >> prefix_shift ^ flip.mask;
                *slot = Probe {
                    prefix,
                    query,
                    errors: flip.weight,
                    ..Probe::default()
                };
                prefetch_read(lines, (prefix >> shape.line_shift) as usize * line_words);
            }
            for probe in &group[..probes.len()] {
                // SAFETY: guaranteed by the caller.
                unsafe { self.find_buckets::<K>(*probe) };
            }
        }
        // SAFETY: as above.
        unsafe { self.compare::<K>() };
    }
}

impl Regions {
    /// Distributes the probes of the queries of a range, keeping their order within each region.
    fn deal<const W: usize>(
        &mut self,
        table: &Table,
        queries: &[[u64; W]],
        range: std::ops::Range<usize>,
        radius: u32,
    ) {
        let shape = table.directory.shape;
        let flips = table.line_flips.within(radius);
        let shift = shape.line_shift + region_shift(table);
        let prefix_shift = table.prefix_shift();
        let num_regions = 1 << (shape.prefix_bits - shift);
        self.ends.clear();
        self.ends.resize(num_regions, 0);
        for query in &queries[range.clone()] {
            let prefix = query[0] >> prefix_shift;
            for flip in flips {
                self.ends[((prefix ^ flip.mask) >> shift) as usize] += 1;
            }
        }
        let mut total = 0;
        for end in &mut self.ends {
            // Holds the start of the region, and its end once everything is written.
            total += std::mem::replace(end, total);
        }
        self.probes.clear();
        self.probes.resize(range.len() * flips.len(), 0);
        for (position, query) in (range.start as u64..).zip(&queries[range]) {
            let prefix = query[0] >> prefix_shift;
            for (number, flip) in (0_u64..).zip(flips) {
                let next = &mut self.ends[((prefix ^ flip.mask) >> shift) as usize];
                self.probes[*next as usize] = position << 32 | number;
                *next += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fingerprints;
    use crate::index::{Building, Segment};
    use crate::plan::{Key, SearchPlan};
    use likewise_core::hash::mix64;
    use likewise_core::isa::Isa;

    #[test]
    fn each_probe_is_dealt_to_the_region_of_its_line() {
        let cancel = AtomicBool::new(false);
        let building = Building {
            isa: Isa::best(),
            threads: 1,
            memory_bytes: 1 << 24,
            with_rows: true,
            cancel: &cancel,
        };
        let words: Vec<u64> = (0..150_000).map(mix64).collect();
        let keys = vec![Key::of_bits(0..32, 2), Key::of_bits(32..64, 0)];
        let plan = SearchPlan::new(64, 3, keys).unwrap();
        let fingerprints = Fingerprints {
            words: &words,
            bits: 64,
        };
        let segment = Segment::build(fingerprints, None, plan, building).unwrap();
        let table = &segment.tables[0];
        let queries: Vec<[u64; 1]> = (0..50).map(|i| [mix64(i + 7)]).collect();
        let mut regions = Regions::default();
        regions.deal(table, &queries, 10..50, 2);
        let flips = table.line_flips.within(2);
        assert!(regions.ends.len() > 1 && flips.len() > 1);
        assert_eq!(regions.probes.len(), 40 * flips.len());
        let shape = table.directory.shape;
        let lines_a_region = 1 << (shape.prefix_bits - shape.line_shift);
        let lines_a_region = lines_a_region / regions.ends.len() as u64;
        let mut from = 0;
        for (region, &end) in (0..).zip(&regions.ends) {
            for probe in &regions.probes[from..end as usize] {
                let prefix = queries[(probe >> 32) as usize][0] >> table.prefix_shift();
                let line = (prefix ^ flips[*probe as u32 as usize].mask) >> shape.line_shift;
                assert_eq!(line / lines_a_region, region);
            }
            from = end as usize;
        }
        regions.probes.sort_unstable();
        regions.probes.dedup();
        assert_eq!(regions.probes.len(), 40 * flips.len());
        assert!(is_worth_dealing(table, 50, 2) && !is_worth_dealing(table, 50, 0));
    }
}
