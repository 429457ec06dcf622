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

use super::hits::{Hits, OtherHit};
use super::pass::{Pass, Request};
use super::regions::{Regions, is_worth_dealing};
use crate::index::table::kernel::TableKernel;
use crate::index::table::sort::sort;
use crate::index::table::table::Table;

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
    let Some(table) = request.tables.first() else {
        return;
    };
    // Hits of the other tables are looked up in the first one, also in its order.
    let (codes, _) = hits.codes.as_chunks::<W>();
    permuted.clear();
    permuted.extend(codes.iter().map(|code| {
        // SAFETY: as above.
        unsafe { K::permute(&table.permutation, code) }
    }));
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
