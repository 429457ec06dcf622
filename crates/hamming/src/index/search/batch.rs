//! How is a large batch of queries searched?
//!
//! Queries in arbitrary order access a table at scattered places, and every access misses the caches. In the order of
//! the table's own prefixes, they traverse directory and entries from start to end: neighbors share cache lines, pages
//! and buckets, and flipping a bit of the prefix moves all of them to another place that they traverse in order. So the
//! queries are sorted separately for each table, and at the end the results are brought back into the original order.
//!
//! From 1e7 fingerprints on, this answers two to three times as many queries per second. Small batches, and tables that
//! fit in the caches, are searched query by query. Matches are the same either way, and each piece keeps at most a
//! fixed number of hits.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use likewise_core::prefetch::prefetch_read;

use super::pass::{CACHE_LINE_WORDS, Hits, LINES_AHEAD, OtherHit, Pass, Probe, Request};
use crate::index::table::builder::sort;
use crate::index::table::kernel::TableKernel;
use crate::index::table::table::Table;
use crate::plan::shape::LINE_WORDS;

/// Maximum number of queries that are sorted together; their codes and numbers take 40 bytes each.
const MAX_SORTED: usize = 1 << 20;
/// Bytes between neighbors in a table that are close enough, since more queries would leave the caches.
const BYTES_A_QUERY: usize = 256;
/// Number of queries from which sorting is worth its few nanoseconds per query.
const MIN_SORTED: usize = 1 << 12;
/// Size of a table in bytes from which queries miss the caches of a core.
const UNCACHED_BYTES: usize = 1 << 20;
/// Maximum number of queries of an unsorted piece.
pub(crate) const UNSORTED_LEN: usize = 2048;
/// Queries searched between two checks of `cancel`.
const BLOCK: usize = 2048;
/// Maximum number of hits of a piece that are kept at once: 100 MB.
const MANY_HITS: usize = 1 << 22;
/// The same per query, for a piece of many queries.
const HITS_A_QUERY: usize = 16;
/// Maximum number of bits of a prefix by which queries are sorted.
const MAX_KEY_BITS: u32 = 32;

/// How a batch of queries is divided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pieces {
    /// Number of queries per piece.
    pub(crate) len: usize,
    pub(crate) are_sorted: bool,
}

impl Pieces {
    /// Returns pieces for `threads` threads and a table of `table_bytes` bytes, sorted if that pays.
    pub(crate) fn choose(num_queries: usize, threads: usize, table_bytes: usize) -> Self {
        let threads = threads.max(1);
        if table_bytes < UNCACHED_BYTES || num_queries.div_ceil(threads) < MIN_SORTED {
            // Several pieces per thread only if threads share the work.
            let num_pieces = if threads == 1 { 1 } else { 4 * threads };
            return Pieces {
                len: num_queries.div_ceil(num_pieces).clamp(64, UNSORTED_LEN),
                are_sorted: false,
            };
        }
        let most = (table_bytes / BYTES_A_QUERY).clamp(MIN_SORTED, MAX_SORTED);
        let num_pieces = num_queries.div_ceil(threads * most) * threads;
        Pieces {
            len: num_queries.div_ceil(num_pieces),
            are_sorted: true,
        }
    }
}

/// Returns how many hits are kept at once for a piece of `num_queries` queries.
pub(crate) fn most_hits(num_queries: usize) -> usize {
    MANY_HITS.max(HITS_A_QUERY * num_queries)
}

/// Searches the tables, each in its own order, until there are too many hits (`hits.is_crowded`), or `cancel` is set.
/// Safety: the kernel's instruction set, and codes of `W` words.
#[inline(always)]
pub(crate) unsafe fn search_sorted<K: TableKernel, const W: usize>(
    request: &Request<'_>,
    range: Range<usize>,
    cancel: &AtomicBool,
    hits: &mut Hits,
) {
    let (queries, _) = request.queries.as_chunks::<W>();
    let queries = &queries[range];
    hits.candidates.resize(queries.len(), 0);
    let mut permuted = vec![[0; W]; queries.len()];
    let mut sorted = permuted.clone();
    let mut order = Order::default();
    let mut regions = Regions::default();
    for (index, table) in request.tables.iter().enumerate() {
        if request.radii[index].is_none() {
            continue;
        }
        for (permuted, query) in permuted.iter_mut().zip(queries) {
            // SAFETY: guaranteed by the caller.
            *permuted = unsafe { K::permute(&table.permutation, query) };
        }
        order.sort(table, &permuted);
        for (sorted, &name) in sorted.iter_mut().zip(&order.names) {
            *sorted = permuted[name as usize];
        }
        let radius = request.radii[index].map_or(0, |radius| radius.min(request.within));
        if is_worth_dealing(table, sorted.len(), radius) {
            let mut pass = Pass::new(request, index, &sorted, Some(&order.names), hits);
            // SAFETY: as above.
            unsafe { pass.run_by_region::<K>(&mut regions, cancel) };
            if hits.is_crowded || cancel.load(Ordering::Relaxed) {
                return;
            }
            continue;
        }
        for (sorted, names) in sorted.chunks(BLOCK).zip(order.names.chunks(BLOCK)) {
            hits.is_crowded = hits.len() > request.most_hits;
            if hits.is_crowded || cancel.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: as above.
            unsafe { Pass::new(request, index, sorted, Some(names), hits).run::<K>() };
        }
    }
    if let Some(table) = request.tables.first() {
        // SAFETY: as above.
        unsafe { sort_other::<K, W>(table, &mut order, hits) };
    }
}

/// Puts the hits of the other tables in the order of the first one, where they are looked up. Safety: as
/// [`search_sorted`].
#[inline(always)]
unsafe fn sort_other<K: TableKernel, const W: usize>(
    table: &Table,
    order: &mut Order,
    hits: &mut Hits,
) {
    let (codes, _) = hits.codes.as_chunks::<W>();
    let mut permuted = Vec::with_capacity(codes.len());
    for code in codes {
        // SAFETY: guaranteed by the caller.
        permuted.push(unsafe { K::permute(&table.permutation, code) });
    }
    order.sort(table, &permuted);
    let in_order = order.names.iter().map(|&name| name as usize);
    let codes: Vec<u64> = in_order.clone().flat_map(|i| codes[i]).collect();
    let other: Vec<OtherHit> = in_order.map(|i| hits.other[i]).collect();
    hits.codes = codes;
    hits.other = other;
}

/// An order of codes by the prefixes of a table.
#[derive(Default)]
struct Order {
    /// Positions of the codes, sorted.
    names: Vec<u32>,
    /// Prefix, then position.
    entries: Vec<[u64; 1]>,
    scratch: Vec<[u64; 1]>,
}

impl Order {
    fn sort<const W: usize>(&mut self, table: &Table, permuted: &[[u64; W]]) {
        let prefix_bits = table.directory.shape.prefix_bits;
        let key_bits = prefix_bits.min(MAX_KEY_BITS);
        let shift = table.prefix_shift() + prefix_bits - key_bits;
        self.entries.clear();
        self.entries
            .extend((0..).zip(permuted).map(|(position, code)| {
                let key = code[0] >> shift;
                [key << 32 | position]
            }));
        self.scratch.clear();
        self.scratch.resize(permuted.len(), [0]);
        sort(&mut self.entries, &mut self.scratch, 32 + key_bits);
        self.names.clear();
        self.names
            .extend(self.entries.iter().map(|&[entry]| entry as u32));
    }
}

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
    use likewise_core::parallel::Run;

    #[test]
    fn each_probe_is_dealt_to_the_region_of_its_line() {
        let cancel = AtomicBool::new(false);
        let building = Building {
            isa: Isa::best(),
            run: Run::alone(&cancel),
            memory_bytes: 1 << 24,
            with_rows: true,
        };
        let words: Vec<u64> = (0..150_000).map(mix64).collect();
        let keys = vec![Key::of_bits(0..32, 2), Key::of_bits(32..64, 0)];
        let plan = SearchPlan::new(64, 3, keys).unwrap();
        let fingerprints = Fingerprints::new(&words, 64);
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
