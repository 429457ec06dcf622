//! How are the tables searched?
//!
//! A probe costs two cache misses: the line of the directory and the bucket's entries. So probes are processed in
//! groups by three short loops: prefetch the lines; find the buckets in them and prefetch their entries; compare the
//! entries. Each loop hides the misses of the previous one.

use std::mem::MaybeUninit;
use std::ops::Range;

use likewise_core::prefetch::prefetch_read;

use crate::index::table::directory::{ESCAPED, FIRST_WORD};
use crate::index::table::kernel::{Comparison, TableKernel};
use crate::index::table::packed;
use crate::index::table::permutation::Flip;
use crate::index::table::table::Table;
use crate::plan::shape::LINE_WORDS;

/// Lines prefetched before the first is used.
pub(crate) const LINES_AHEAD: usize = 128;
/// Buckets collected before they are compared.
const MAX_BUCKETS: usize = 512;
/// Cache lines of entries prefetched before the first is compared.
const ENTRIES_AHEAD: usize = 192;
/// Cache lines of one bucket prefetched; the processor itself prefetches later ones in order.
const BUCKET_AHEAD: usize = 20;
/// Number of entries from which a bucket is compared in parts.
const LARGE_BUCKET: u32 = 2048;
/// Words per cache line.
pub(crate) const CACHE_LINE_WORDS: usize = 8;

pub(crate) struct Request<'a> {
    pub(crate) tables: &'a [Table],
    /// Radius of each table; `None` if it is not searched.
    pub(crate) radii: &'a [Option<u32>],
    pub(crate) within: u32,
    /// Maximum number of hits of one piece that are kept at once; with more hits, it is searched in smaller pieces.
    pub(crate) most_hits: usize,
    /// Codes, with bits beyond the width cleared.
    pub(crate) queries: &'a [u64],
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Probe {
    pub(crate) prefix: u64,
    pub(crate) query: u32,
    /// Number of bits of the query's prefix that differ from the bucket's.
    pub(crate) errors: u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
}

/// Searches the tables for a range of queries, numbered from 0. Safety: the kernel's instructions, codes of `W` words.
#[inline(always)]
pub(crate) unsafe fn search_range<K: TableKernel, const W: usize>(
    request: &Request<'_>,
    range: Range<usize>,
    hits: &mut Hits,
) {
    let (queries, _) = request.queries.as_chunks::<W>();
    let queries = &queries[range];
    let mut permuted = vec![[0; W]; queries.len()];
    hits.candidates.resize(queries.len(), 0);
    for (index, table) in request.tables.iter().enumerate() {
        if request.radii[index].is_none() {
            continue;
        }
        for (permuted, query) in permuted.iter_mut().zip(queries) {
            // SAFETY: guaranteed by the caller.
            *permuted = unsafe { K::permute(&table.permutation, query) };
        }
        // SAFETY: guaranteed by the caller.
        unsafe { Pass::new(request, index, &permuted, None, hits).run::<K>() };
    }
}

/// The search of one table for all queries of a range.
pub(crate) struct Pass<'a, 'h, const W: usize> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) table: &'a Table,
    index: usize,
    pub(crate) radius: u32,
    pub(crate) queries: &'a [[u64; W]],
    names: Option<&'a [u32]>,
    /// Whether parts of the table are checked when they are first read.
    is_guarded: bool,
    /// The first `num_probes` are initialized. For a single query, initializing all would cost more than the search.
    probes: [MaybeUninit<Probe>; MAX_BUCKETS],
    num_probes: usize,
    /// Cache lines prefetched since probes were last compared.
    num_asked: usize,
    pub(crate) hits: &'h mut Hits,
}

impl<'a, 'h, const W: usize> Pass<'a, 'h, W> {
    /// Prepares the search of one table for permuted codes, which hits identify by `names`, or position.
    #[inline(always)]
    pub(crate) fn new(
        request: &'a Request<'a>,
        index: usize,
        queries: &'a [[u64; W]],
        names: Option<&'a [u32]>,
        hits: &'h mut Hits,
    ) -> Self {
        Pass {
            request,
            table: &request.tables[index],
            index,
            radius: request.radii[index].map_or(0, |radius| radius.min(request.within)),
            queries,
            names,
            is_guarded: request.tables[index].is_guarded(),
            probes: [const { MaybeUninit::uninit() }; MAX_BUCKETS],
            num_probes: 0,
            num_asked: 0,
            hits,
        }
    }
}

// Safety of all: the processor has the kernel's instruction set.
impl<const W: usize> Pass<'_, '_, W> {
    /// Searches for one query after another.
    #[inline(always)]
    pub(crate) unsafe fn run<K: TableKernel>(&mut self) {
        let table = self.table;
        let prefix_shift = table.prefix_shift();
        let directory = &table.directory;
        let lines = directory.lines.as_slice();
        let line_words = match directory.shape.is_unary {
            true => LINE_WORDS,
            false => CACHE_LINE_WORDS,
        };
        let line_shift = directory.shape.line_shift;
        let flips = table.line_flips.within(self.radius);
        let group = (LINES_AHEAD / flips.len()).max(1);
        for first in (0..self.queries.len()).step_by(group) {
            let queries = &self.queries[first..self.queries.len().min(first + group)];
            for flips in flips.chunks(LINES_AHEAD) {
                for code in queries {
                    let prefix = code[0] >> prefix_shift;
                    for flip in flips {
                        let line = ((prefix ^ flip.mask) >> line_shift) as usize;
                        prefetch_read(lines, line * line_words);
                    }
                }
                for (query, code) in (first as u32..).zip(queries) {
                    for flip in flips {
                        let probe = Probe {
                            prefix: code[0] >> prefix_shift ^ flip.mask,
                            query,
                            errors: flip.weight,
                            ..Probe::default()
                        };
                        // SAFETY: guaranteed by the caller.
                        unsafe { self.find_buckets::<K>(probe) };
                    }
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.compare::<K>() };
    }

    /// Finds the buckets of a line within the remaining radius.
    #[inline(always)]
    pub(crate) unsafe fn find_buckets<K: TableKernel>(&mut self, probe: Probe) {
        let directory = &self.table.directory;
        let shape = directory.shape;
        let flips = self.table.bucket_flips.within(self.radius - probe.errors);
        let in_line = (1 << shape.line_shift) - 1;
        // A line has at most 256 buckets.
        if self.num_probes + flips.len() > MAX_BUCKETS || self.num_asked > ENTRIES_AHEAD {
            // SAFETY: guaranteed by the caller.
            unsafe { self.compare::<K>() };
        }
        if !shape.is_unary {
            let starts = directory.lines.as_u32();
            for flip in flips {
                let prefix = (probe.prefix ^ flip.mask) as usize;
                if self.is_guarded && !directory.is_good_line(prefix as u64) {
                    self.hits.is_damaged = true;
                    return;
                }
                let start = starts[prefix];
                let len = starts[prefix + 1].wrapping_sub(start);
                self.push(probe, *flip, start, len);
            }
            return;
        }
        if self.is_guarded && !directory.is_good_line(probe.prefix) {
            self.hits.is_damaged = true;
            return;
        }
        let (lines, _) = directory.lines.as_slice().as_chunks::<LINE_WORDS>();
        let words = &lines[(probe.prefix >> shape.line_shift) as usize];
        if words[LINE_WORDS - 1] & ESCAPED != 0 {
            for flip in flips {
                let bucket = ((probe.prefix ^ flip.mask) & in_line) as usize;
                self.hits.is_damaged |= !directory.is_good_escape(words, bucket);
                let (start, len) = directory.escaped_bucket(words, bucket);
                self.push(probe, *flip, start as u32, len as u32);
            }
            return;
        }
        let base = (words[0] & !FIRST_WORD) as u32;
        // SAFETY: as above.
        let line = unsafe { K::read_line(words) };
        for flip in flips {
            let bucket = ((probe.prefix ^ flip.mask) & in_line) as u32;
            // SAFETY: as above.
            let (before, len) = unsafe { K::bucket(&line, words, bucket) };
            self.push(probe, *flip, base.wrapping_add(before), len);
        }
    }

    /// Prefetches the entries of a bucket and keeps it; the next overwrites an empty one, without a branch.
    #[inline(always)]
    fn push(&mut self, probe: Probe, flip: Flip, start: u32, len: u32) {
        let table = self.table;
        if start as usize + len as usize > table.num_entries {
            self.hits.is_damaged = true;
            return;
        }
        // Also for empty buckets: a branch would save less than its mispredictions cost.
        if self.is_guarded && !table.are_good_residuals(start as usize, len as usize) {
            self.hits.is_damaged = true;
            return;
        }
        let width = table.residual_bits as usize;
        let is_there = usize::from(len > 0);
        // Empty buckets prefetch data that is certainly in the caches.
        let first = start as usize * width / 64 * is_there;
        let num_words = len as usize * width / 64;
        let entries = table.residuals.as_slice();
        prefetch_read(entries, first);
        prefetch_read(entries, first + num_words.min(CACHE_LINE_WORDS));
        self.num_asked += is_there;
        if num_words > CACHE_LINE_WORDS {
            let num_lines = num_words.div_ceil(CACHE_LINE_WORDS).min(BUCKET_AHEAD);
            for line in 2..=num_lines {
                prefetch_read(entries, first + line * CACHE_LINE_WORDS);
            }
            self.num_asked += num_lines;
        }
        self.probes[self.num_probes].write(Probe {
            prefix: probe.prefix ^ flip.mask,
            query: probe.query,
            errors: probe.errors + flip.weight,
            start,
            len,
        });
        self.num_probes += is_there;
    }

    #[inline(always)]
    fn probe(&self, place: usize) -> Probe {
        // SAFETY: `push` writes a place before `num_probes` passes it, and every caller stays below `num_probes`.
        unsafe { self.probes[place].assume_init() }
    }

    #[inline(always)]
    pub(crate) unsafe fn compare<K: TableKernel>(&mut self) {
        if self.num_probes == 0 {
            return;
        }
        // Probes of one query are consecutive.
        let mut query = self.probe(0).query;
        let mut counted = self.hits.num_candidates;
        for i in 0..self.num_probes {
            let probe = self.probe(i);
            if probe.query != query {
                self.count(query, counted);
                query = probe.query;
                counted = self.hits.num_candidates;
            }
            let (start, end) = (
                probe.start as usize,
                probe.start as usize + probe.len as usize,
            );
            if probe.len >= LARGE_BUCKET {
                // SAFETY: guaranteed by the caller.
                unsafe { self.refine::<K>(&probe, start, end) };
            } else {
                // SAFETY: guaranteed by the caller.
                unsafe { self.compare_entries::<K>(&probe, start, end) };
            }
        }
        self.count(query, counted);
        self.num_probes = 0;
        self.num_asked = 0;
    }

    /// Adds the comparisons since `counted` to the count of a query.
    #[inline(always)]
    fn count(&mut self, query: u32, counted: u64) {
        let num = u32::try_from(self.hits.num_candidates - counted).unwrap_or(u32::MAX);
        let name = self.name(query);
        if let Some(count) = self.hits.candidates.get_mut(name as usize) {
            *count = count.saturating_add(num);
        }
    }

    #[inline(always)]
    fn name(&self, query: u32) -> u32 {
        self.names.map_or(query, |names| names[query as usize])
    }

    #[inline(always)]
    pub(crate) unsafe fn compare_entries<K: TableKernel>(
        &mut self,
        probe: &Probe,
        start: usize,
        end: usize,
    ) {
        let table = self.table;
        let width = table.residual_bits as usize;
        let first_bit = start * width;
        let comparison = Comparison {
            unpacking: &table.unpacking[first_bit % 8],
            query: self.queries[probe.query as usize][0],
            mask: u64::MAX >> (64 - table.prefix_shift()),
            limit: self.request.within - probe.errors,
        };
        let base = table.residuals.as_slice().as_ptr().cast::<u8>();
        let len = end - start;
        self.hits.num_candidates += len as u64;
        let mut done = 0;
        while done < len {
            let offset = first_bit / 8 + done / 8 * width;
            // SAFETY: the entries exist, and 64 bytes of padding follow the last one.
            let near = unsafe { K::near8(base.add(offset), &comparison, len - done) };
            if near != 0 {
                self.take_entries(probe, start + done, near);
            }
            done += 8;
        }
    }

    /// Keeps the entries whose first word is near, if their other words are too and this table owns them.
    #[inline(never)]
    fn take_entries(&mut self, probe: &Probe, first: usize, mut near: u32) {
        while near != 0 {
            let rank = first + near.trailing_zeros() as usize;
            near &= near - 1;
            self.take_entry(probe, rank);
        }
    }

    fn take_entry(&mut self, probe: &Probe, rank: usize) {
        if self.is_guarded && !self.table.are_good_rest(rank, 1, W) {
            self.hits.is_damaged = true;
            return;
        }
        let entry: [u64; W] = self.table.entry(probe.prefix, rank);
        let query = &self.queries[probe.query as usize];
        let differing: [u64; W] = std::array::from_fn(|w| entry[w] ^ query[w]);
        let distance: u32 = differing.iter().map(|word| word.count_ones()).sum();
        if distance > self.request.within {
            return;
        }
        let mut errors = [0; 4];
        errors[..W].copy_from_slice(&self.table.permutation.invert(&differing));
        let mut keys = self.request.tables[..=self.index]
            .iter()
            .zip(self.request.radii);
        // The first table whose radius covers the errors owns the pair. This table may have found it by chance, through
        // the bits of the key after the prefix.
        let owner = keys.position(|(table, radius)| {
            radius.is_some_and(|radius| table.key.num_errors(&errors) <= radius)
        });
        if owner != Some(self.index) {
            return;
        }
        let name = self.name(probe.query);
        if self.index == 0 {
            self.hits.first.push(FirstHit {
                query: name,
                distance,
                rank: rank as u32,
                prefix: probe.prefix,
            });
        } else {
            self.hits.other.push(OtherHit {
                query: name,
                distance,
            });
            let code = self.table.permutation.invert(&entry);
            self.hits.codes.extend_from_slice(&code);
        }
    }
}

#[derive(Default)]
pub(crate) struct Hits {
    /// Entries of the first table.
    pub(crate) first: Vec<FirstHit>,
    pub(crate) other: Vec<OtherHit>,
    /// Codes of the latter, `W` words each.
    pub(crate) codes: Vec<u64>,
    pub(crate) num_candidates: u64,
    /// The same for each query.
    pub(crate) candidates: Vec<u32>,
    /// Whether there are too many hits to keep at once.
    pub(crate) is_crowded: bool,
    /// Whether a directory referred to entries that do not exist.
    pub(crate) is_damaged: bool,
}

impl Hits {
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.other.len()
    }

    pub(crate) fn clear(&mut self) {
        self.first.clear();
        self.other.clear();
        self.codes.clear();
        self.num_candidates = 0;
        self.candidates.clear();
        self.is_crowded = false;
        self.is_damaged = false;
    }
}

/// An entry of the first table.
#[derive(Clone, Copy)]
pub(crate) struct FirstHit {
    pub(crate) query: u32,
    pub(crate) distance: u32,
    pub(crate) rank: u32,
    pub(crate) prefix: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct OtherHit {
    pub(crate) query: u32,
    pub(crate) distance: u32,
}

/// Number of entries of a part that is compared at once.
const SMALL_PART: usize = 512;

// Safety: the processor has the kernel's instruction set.
impl<const W: usize> Pass<'_, '_, W> {
    /// Compares a large bucket in parts: sorted entries between two that begin alike do so too, so a part is skipped if
    /// these bits differ too much, and otherwise divided at the next bit.
    #[inline(always)]
    pub(crate) unsafe fn refine<K: TableKernel>(
        &mut self,
        probe: &Probe,
        start: usize,
        end: usize,
    ) {
        let table = self.table;
        let query = self.queries[probe.query as usize][0];
        let residuals = table.residuals.as_slice();
        let mask = u64::MAX >> (64 - table.prefix_shift());
        let residual = |rank: usize| packed::get(residuals, table.residual_bits, rank) & mask;
        let left = self.request.within - probe.errors;
        let mut waiting = vec![(start, end)];
        while let Some((low, high)) = waiting.pop() {
            if high - low < SMALL_PART {
                // SAFETY: guaranteed by the caller; the part is inside the bucket.
                unsafe { self.compare_entries::<K>(probe, low, high) };
                continue;
            }
            let (first, last) = (residual(low), residual(high - 1));
            let num_open = 64 - (first ^ last).leading_zeros();
            let shared = !(u64::MAX.checked_shr(64 - num_open).unwrap_or(0));
            if ((first ^ query) & mask & shared).count_ones() > left {
                continue;
            }
            if num_open == 0 {
                // Codes of several words that agree in the first one.
                // SAFETY: as above.
                unsafe { self.compare_entries::<K>(probe, low, high) };
                continue;
            }
            let bit = num_open - 1;
            let (mut below, mut above) = (low, high);
            while below < above {
                let middle = below.midpoint(above);
                match residual(middle) >> bit & 1 {
                    0 => below = middle + 1,
                    _ => above = middle,
                }
            }
            if low < below && below < high {
                waiting.push((low, below));
                waiting.push((below, high));
            } else {
                // Only a damaged table is out of order.
                self.hits.is_damaged = true;
            }
        }
    }
}
