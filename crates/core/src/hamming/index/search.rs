//! How are the tables searched?
//!
//! A probe costs two cache misses, the line of the directory and the bucket's entries. Both are asked for long before they are used: probes
//! wait in two rings, and so many of them are under way at any time.

use std::ops::Range;

use super::directory::{ESCAPED, FIRST_WORD, LINE_WORDS};
use super::kernel::{Comparison, TableKernel};
use super::table::Table;
use crate::prefetch::prefetch_read;

/// Probes between asking for a line, and for entries, and using them.
const AHEAD: usize = 64;

/// What is searched for.
pub(super) struct Request<'a> {
    pub(super) tables: &'a [Table],
    /// Radius of each table; `None`: not asked.
    pub(super) radii: &'a [Option<u32>],
    pub(super) within: u32,
    /// Codes, bits beyond the width cleared.
    pub(super) queries: &'a [u64],
}

/// Entries found.
#[derive(Default)]
pub(super) struct Hits {
    /// In the first table.
    pub(super) first: Vec<FirstHit>,
    /// In the others.
    pub(super) other: Vec<OtherHit>,
    /// Codes of those, `W` words each.
    pub(super) codes: Vec<u64>,
    /// Entries compared.
    pub(super) num_candidates: u64,
    /// Whether a directory named entries that are not there.
    pub(super) is_damaged: bool,
}

impl Hits {
    /// Forgets all, for the next piece of work.
    pub(super) fn clear(&mut self) {
        self.first.clear();
        self.other.clear();
        self.codes.clear();
        self.num_candidates = 0;
        self.is_damaged = false;
    }
}

/// An entry of the first table.
#[derive(Clone, Copy)]
pub(super) struct FirstHit {
    pub(super) query: u32,
    pub(super) distance: u32,
    pub(super) rank: u32,
    pub(super) prefix: u64,
}

/// An entry of another table.
#[derive(Clone, Copy)]
pub(super) struct OtherHit {
    pub(super) query: u32,
    pub(super) distance: u32,
}

#[derive(Clone, Copy, Default)]
struct LineProbe {
    prefix: u64,
    query: u32,
    errors: u32,
}

#[derive(Clone, Copy, Default)]
struct BucketProbe {
    prefix: u64,
    query: u32,
    errors: u32,
    start: u32,
    len: u32,
}

/// Searches the tables for the queries of a range; hits name them from 0 on.
///
/// # Safety
/// The processor has the kernel's instruction set; the codes have `W` words.
#[inline(always)]
pub(super) unsafe fn search_range<K: TableKernel, const W: usize>(
    request: &Request<'_>,
    range: Range<usize>,
    hits: &mut Hits,
) {
    let (queries, _) = request.queries.as_chunks::<W>();
    let queries = &queries[range];
    let mut permuted = vec![[0; W]; queries.len()];
    for (index, table) in request.tables.iter().enumerate() {
        let Some(radius) = request.radii[index] else {
            continue;
        };
        for (permuted, query) in permuted.iter_mut().zip(queries) {
            // SAFETY: passed on from the caller.
            *permuted = unsafe { K::permute(&table.permutation, query) };
        }
        let mut pass = Pass {
            request,
            table,
            index,
            radius: radius.min(request.within),
            queries: &permuted,
            lines: [LineProbe::default(); AHEAD],
            lines_in: 0,
            lines_out: 0,
            buckets: [BucketProbe::default(); AHEAD],
            buckets_in: 0,
            buckets_out: 0,
            hits,
        };
        // SAFETY: passed on from the caller.
        unsafe { pass.run::<K>() };
    }
}

/// One table being searched for all queries of a range.
struct Pass<'a, 'h, const W: usize> {
    request: &'a Request<'a>,
    table: &'a Table,
    index: usize,
    radius: u32,
    queries: &'a [[u64; W]],
    lines: [LineProbe; AHEAD],
    lines_in: usize,
    lines_out: usize,
    buckets: [BucketProbe; AHEAD],
    buckets_in: usize,
    buckets_out: usize,
    hits: &'h mut Hits,
}

// Safety of all: the processor has the kernel's instruction set.
impl<const W: usize> Pass<'_, '_, W> {
    #[inline(always)]
    unsafe fn run<K: TableKernel>(&mut self) {
        let table = self.table;
        let shift = table.prefix_shift();
        let max_weight = self.radius.min(table.line_flips.max_weight());
        for (query, code) in (0..).zip(self.queries) {
            let prefix = code[0] >> shift;
            for errors in 0..=max_weight {
                for flip in table.line_flips.of_weight(errors) {
                    let probe = LineProbe {
                        prefix: prefix ^ flip,
                        query,
                        errors,
                    };
                    // SAFETY: passed on from the caller.
                    unsafe { self.push_line::<K>(probe) };
                }
            }
        }
        while self.lines_out < self.lines_in {
            // SAFETY: as above.
            unsafe { self.take_line::<K>() };
        }
        while self.buckets_out < self.buckets_in {
            // SAFETY: as above.
            unsafe { self.take_bucket::<K>() };
        }
    }

    #[inline(always)]
    unsafe fn push_line<K: TableKernel>(&mut self, probe: LineProbe) {
        let directory = &self.table.directory;
        let line = (probe.prefix >> directory.shape.line_shift) as usize;
        prefetch_read(directory.lines.as_slice(), line * LINE_WORDS);
        if self.lines_in - self.lines_out == AHEAD {
            // SAFETY: passed on from the caller.
            unsafe { self.take_line::<K>() };
        }
        self.lines[self.lines_in % AHEAD] = probe;
        self.lines_in += 1;
    }

    /// Finds the buckets of the oldest line.
    #[inline(always)]
    unsafe fn take_line<K: TableKernel>(&mut self) {
        let probe = self.lines[self.lines_out % AHEAD];
        self.lines_out += 1;
        let directory = &self.table.directory;
        let shape = directory.shape;
        let in_line = (1 << shape.line_shift) - 1;
        let max_weight = (self.radius - probe.errors).min(self.table.bucket_flips.max_weight());
        if !shape.is_unary {
            let starts = directory.lines.as_u32();
            for weight in 0..=max_weight {
                for flip in self.table.bucket_flips.of_weight(weight) {
                    let prefix = probe.prefix ^ flip;
                    let start = starts[prefix as usize];
                    let len = starts[prefix as usize + 1].wrapping_sub(start);
                    // SAFETY: passed on from the caller.
                    unsafe { self.push_bucket::<K>(probe, prefix, weight, start, len) };
                }
            }
            return;
        }
        let (lines, _) = directory.lines.as_slice().as_chunks::<LINE_WORDS>();
        let words = &lines[(probe.prefix >> shape.line_shift) as usize];
        if words[LINE_WORDS - 1] & ESCAPED != 0 {
            for weight in 0..=max_weight {
                for flip in self.table.bucket_flips.of_weight(weight) {
                    let prefix = probe.prefix ^ flip;
                    let (start, len) = directory.escaped_bucket(words, (prefix & in_line) as usize);
                    // SAFETY: passed on from the caller.
                    unsafe {
                        self.push_bucket::<K>(probe, prefix, weight, start as u32, len as u32);
                    }
                }
            }
            return;
        }
        let base = (words[0] & !FIRST_WORD) as u32;
        // SAFETY: as above.
        let line = unsafe { K::read_line(words) };
        for weight in 0..=max_weight {
            for flip in self.table.bucket_flips.of_weight(weight) {
                let prefix = probe.prefix ^ flip;
                // SAFETY: as above.
                unsafe {
                    let (before, len) = K::bucket(&line, (prefix & in_line) as u32);
                    self.push_bucket::<K>(probe, prefix, weight, base.wrapping_add(before), len);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn push_bucket<K: TableKernel>(
        &mut self,
        line: LineProbe,
        prefix: u64,
        weight: u32,
        start: u32,
        len: u32,
    ) {
        if len == 0 {
            return;
        }
        let table = self.table;
        if start as usize + len as usize > table.num_entries {
            self.hits.is_damaged = true;
            return;
        }
        let width = table.residual_bits as usize;
        let first = start as usize * width / 64;
        prefetch_read(table.residuals.as_slice(), first);
        prefetch_read(
            table.residuals.as_slice(),
            first + (len as usize * width / 64).min(8),
        );
        if self.buckets_in - self.buckets_out == AHEAD {
            // SAFETY: passed on from the caller.
            unsafe { self.take_bucket::<K>() };
        }
        self.buckets[self.buckets_in % AHEAD] = BucketProbe {
            prefix,
            query: line.query,
            errors: line.errors + weight,
            start,
            len,
        };
        self.buckets_in += 1;
    }

    /// Compares the entries of the oldest bucket.
    #[inline(always)]
    unsafe fn take_bucket<K: TableKernel>(&mut self) {
        let probe = self.buckets[self.buckets_out % AHEAD];
        self.buckets_out += 1;
        let table = self.table;
        let width = table.residual_bits as usize;
        let first_bit = probe.start as usize * width;
        let comparison = Comparison {
            unpacking: &table.unpacking[first_bit % 8],
            query: self.queries[probe.query as usize][0],
            mask: u64::MAX >> (64 - table.prefix_shift()),
            limit: self.request.within - probe.errors,
        };
        self.hits.num_candidates += u64::from(probe.len);
        let base = table.residuals.as_slice().as_ptr().cast::<u8>();
        for done in (0..probe.len as usize).step_by(8) {
            let offset = first_bit / 8 + done / 8 * width;
            // SAFETY: the entries were found to be there; behind the last one stand 64 bytes of padding.
            let mut near =
                unsafe { K::near8(base.add(offset), &comparison, probe.len as usize - done) };
            while near != 0 {
                let rank = probe.start as usize + done + near.trailing_zeros() as usize;
                near &= near - 1;
                self.take_entry(&probe, rank);
            }
        }
    }

    /// Keeps an entry whose first word is near, if the others are too and this table owns it.
    #[inline(always)]
    fn take_entry(&mut self, probe: &BucketProbe, rank: usize) {
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
        // The first table whose radius holds the errors owns the pair. This one may have come upon it by chance, in the bits of the
        // key behind the prefix.
        let owner = keys.position(|(table, radius)| {
            radius.is_some_and(|radius| table.key.num_errors(&errors) <= radius)
        });
        if owner != Some(self.index) {
            return;
        }
        if self.index == 0 {
            self.hits.first.push(FirstHit {
                query: probe.query,
                distance,
                rank: rank as u32,
                prefix: probe.prefix,
            });
        } else {
            self.hits.other.push(OtherHit {
                query: probe.query,
                distance,
            });
            let code = self.table.permutation.invert(&entry);
            self.hits.codes.extend_from_slice(&code);
        }
    }
}
