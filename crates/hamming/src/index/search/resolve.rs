//! Which entry of the first table is a code found in another table?

use super::pass::{FirstHit, Hits};
use crate::index::table::directory::{Directory, ESCAPED, FIRST_WORD};
use crate::index::table::kernel::{Comparison, TableKernel};
use crate::index::table::table::Table;
use crate::plan::shape::LINE_WORDS;
use likewise_core::prefetch::prefetch_read;

/// Codes looked up together, so that their cache misses overlap.
const GROUP: usize = 32;

/// Converts the hits of other tables to hits of the first. Safety: the kernel's instructions, codes of `W` words.
#[inline(always)]
pub(crate) unsafe fn resolve<K: TableKernel, const W: usize>(table: &Table, hits: &mut Hits) {
    let shift = table.prefix_shift();
    let directory = &table.directory;
    let codes = std::mem::take(&mut hits.codes);
    let others = std::mem::take(&mut hits.other);
    let (codes, _) = codes.as_chunks::<W>();
    let mut permuted = [[0; W]; GROUP];
    let mut buckets = [(0_usize, 0_usize); GROUP];
    for (codes, others) in codes.chunks(GROUP).zip(others.chunks(GROUP)) {
        for (permuted, code) in permuted.iter_mut().zip(codes) {
            // SAFETY: guaranteed by the caller.
            *permuted = unsafe { K::permute(&table.permutation, code) };
            let (word, _) = place(directory, permuted[0] >> shift);
            prefetch_read(directory.lines.as_slice(), word);
        }
        for (bucket, permuted) in buckets.iter_mut().zip(&permuted[..codes.len()]) {
            // SAFETY: as above.
            *bucket = unsafe { bucket_of::<K>(directory, permuted[0] >> shift) };
            let first = bucket.0 * table.residual_bits as usize / 64;
            prefetch_read(table.residuals.as_slice(), first);
        }
        for ((other, permuted), &(start, len)) in others.iter().zip(&permuted).zip(&buckets) {
            let is_good = directory.is_good_line(permuted[0] >> shift)
                && start + len <= table.num_entries
                && table.are_good_residuals(start, len.max(1))
                && table.are_good_rest(start, len.max(1), W);
            let rank = match is_good {
                // SAFETY: as above, and the entries exist.
                true => unsafe { rank_of::<K, W>(table, permuted, start, len) },
                false => None,
            };
            match rank {
                Some(rank) => hits.first.push(FirstHit {
                    query: other.query,
                    distance: other.distance,
                    rank: rank as u32,
                    prefix: permuted[0] >> shift,
                }),
                None => hits.is_damaged = true,
            }
        }
    }
}

/// Returns the word of the directory that determines the bucket of a prefix, and the bucket's number in its line.
#[inline(always)]
fn place(directory: &Directory, prefix: u64) -> (usize, usize) {
    let shape = directory.shape;
    match shape.is_unary {
        true => (
            (prefix >> shape.line_shift) as usize * LINE_WORDS,
            (prefix & ((1 << shape.line_shift) - 1)) as usize,
        ),
        false => (prefix as usize / 2, 0),
    }
}

/// Returns the first entry and the number of entries of a bucket. Safety: the kernel's instruction set.
#[inline(always)]
pub(crate) unsafe fn bucket_of<K: TableKernel>(
    directory: &Directory,
    prefix: u64,
) -> (usize, usize) {
    if !directory.shape.is_unary {
        let starts = directory.lines.as_u32();
        let start = starts[prefix as usize];
        let len = starts[prefix as usize + 1].wrapping_sub(start);
        return (start as usize, len as usize);
    }
    let (word, bucket) = place(directory, prefix);
    let (lines, _) = directory.lines.as_slice().as_chunks::<LINE_WORDS>();
    let words = &lines[word / LINE_WORDS];
    if words[LINE_WORDS - 1] & ESCAPED != 0 {
        if !directory.is_good_escape(words, bucket) {
            return (0, 0);
        }
        let (start, len) = directory.escaped_bucket(words, bucket);
        return (start as usize, len as usize);
    }
    // SAFETY: guaranteed by the caller.
    let (before, len) = unsafe { K::bucket(&K::read_line(words), words, bucket as u32) };
    (
        (words[0] & !FIRST_WORD) as usize + before as usize,
        len as usize,
    )
}

/// Returns the rank of a code in its bucket. Safety: same as [`bucket_of`], and the entries must exist.
#[inline(always)]
unsafe fn rank_of<K: TableKernel, const W: usize>(
    table: &Table,
    permuted: &[u64; W],
    start: usize,
    len: usize,
) -> Option<usize> {
    let prefix = permuted[0] >> table.prefix_shift();
    // Entries are sorted; the last few are compared at once.
    let (mut low, mut high) = (start, start + len);
    while high - low > 16 {
        let middle = low.midpoint(high);
        match table.entry::<W>(prefix, middle) <= *permuted {
            true => low = middle,
            false => high = middle,
        }
    }
    let width = table.residual_bits as usize;
    let base = table.residuals.as_slice().as_ptr().cast::<u8>();
    while low < high {
        let comparison = Comparison {
            unpacking: &table.unpacking[low * width % 8],
            query: permuted[0],
            mask: u64::MAX >> (64 - table.prefix_shift()),
            limit: 0,
        };
        // SAFETY: the entries exist, and padding follows the last one.
        let mut near = unsafe { K::near8(base.add(low * width / 8), &comparison, high - low) };
        while near != 0 {
            let rank = low + near.trailing_zeros() as usize;
            near &= near - 1;
            if table.entry::<W>(prefix, rank) == *permuted {
                return Some(rank);
            }
        }
        low += 8;
    }
    None
}
