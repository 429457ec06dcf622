//! How are the codes of a bucket compared with each other, or with those of another bucket?

use likewise_core::isa::Isa;

use super::partition::{Table, View};
use crate::distance::distance;
use crate::kernels::{Kernel, LANES, PART_LANES, run_kernel};
use crate::plan::Key;

/// Words of the other side that stay in the L1 cache while the queries pass over them.
const TILE_WORDS: usize = 2048;
/// Number of hits after which a loop over buckets pauses, so that they can be passed on.
const MANY_HITS: usize = 1 << 16;

/// A loop over buckets that can pause.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) next: usize,
    /// Buckets too large to be compared here.
    pub(super) large: Vec<u32>,
}

impl Wanted<'_> {
    /// Finds all pairs inside each bucket, until there are many hits or the buckets are done.
    pub(super) fn in_buckets(&self, table: &Table, progress: &mut Progress, hits: &mut Vec<Hit>) {
        let (isa, num_words, wanted) = (self.isa, self.num_words, self);
        run_kernel!(isa, num_words, in_buckets, (wanted: &Wanted<'_>, table: &Table, progress: &mut Progress, hits: &mut Vec<Hit>));
    }

    /// Finds all pairs of bucket `v` of `left` with `v ^ flip` of `right` (of `half`, for the smaller `v`), or many.
    pub(super) fn across_buckets(
        &self,
        (left, right): (&Table, &Table),
        how: (usize, bool),
        progress: &mut Progress,
        hits: &mut Vec<Hit>,
    ) {
        let (isa, num_words, wanted) = (self.isa, self.num_words, self);
        run_kernel!(isa, num_words, across_buckets,
            (wanted: &Wanted<'_>, left: &Table, right: &Table, how: (usize, bool), progress: &mut Progress, hits: &mut Vec<Hit>));
    }

    /// Finds all pairs inside a view. Only its length limits the number of hits.
    pub(super) fn inside(&self, view: View<'_>, hits: &mut Vec<Hit>) {
        let (isa, num_words, wanted) = (self.isa, self.num_words, self);
        run_kernel!(isa, num_words, inside, (wanted: &Wanted<'_>, view: View<'_>, hits: &mut Vec<Hit>));
    }

    /// Finds all pairs of a code of `left` with one of `right`. Only their lengths limit the number of hits.
    pub(super) fn across(&self, left: View<'_>, right: View<'_>, hits: &mut Vec<Hit>) {
        let (isa, num_words, wanted) = (self.isa, self.num_words, self);
        run_kernel!(isa, num_words, across, (wanted: &Wanted<'_>, left: View<'_>, right: View<'_>, hits: &mut Vec<Hit>));
    }
}

/// Safety: the processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
unsafe fn in_buckets<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    table: &Table,
    progress: &mut Progress,
    hits: &mut Vec<Hit>,
) {
    let (all, parts) = (table.all(), &table.parts[..]);
    let mut value = progress.next;
    while value < table.num_buckets && hits.len() < MANY_HITS {
        let (start, end) = table.bounds(value);
        let len = end - start;
        if len * len > 2 * wanted.large_pairs {
            progress.large.push(value as u32);
        } else if len > 1 {
            // SAFETY: guaranteed by the caller.
            unsafe { inside_range::<K, W>(wanted, (&all, parts), start, end, hits) };
        }
        value += 1;
    }
    progress.next = value;
}

/// Safety: same as [`in_buckets`].
#[inline(always)]
unsafe fn across_buckets<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    left: &Table,
    right: &Table,
    (flip, half): (usize, bool),
    progress: &mut Progress,
    hits: &mut Vec<Hit>,
) {
    let (all_left, all_right) = (left.all(), right.all());
    let mut value = progress.next;
    while value < left.num_buckets && hits.len() < MANY_HITS {
        let (start, end) = left.bounds(value);
        if start < end && !(half && value > value ^ flip) {
            let (other_start, other_end) = right.bounds(value ^ flip);
            if (end - start) * (other_end - other_start) > wanted.large_pairs {
                progress.large.push(value as u32);
            } else if other_start < other_end {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    across_range::<K, W>(
                        wanted,
                        (&all_left, &left.parts, start, end),
                        (&all_right, &right.parts, other_start, other_end),
                        hits,
                    );
                }
            }
        }
        value += 1;
    }
    progress.next = value;
}

/// Safety: same as [`in_buckets`].
#[inline(always)]
unsafe fn inside<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    view: View<'_>,
    hits: &mut Vec<Hit>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { inside_range::<K, W>(wanted, (&view, &[]), 0, view.len, hits) };
}

/// Safety: same as [`in_buckets`].
#[inline(always)]
unsafe fn across<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    left: View<'_>,
    right: View<'_>,
    hits: &mut Vec<Hit>,
) {
    let tile_len = TILE_WORDS / W;
    for tile in (0..right.len).step_by(tile_len) {
        let tile_end = (tile + tile_len).min(right.len);
        // SAFETY: guaranteed by the caller.
        unsafe {
            across_range::<K, W>(
                wanted,
                (&left, &[], 0, left.len),
                (&right, &[], tile, tile_end),
                hits,
            );
        }
    }
}

/// Sizes at which the search method changes; pairs do not depend on them, and tests set them low.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of codes for which one thread is enough.
    pub(super) few_codes: usize,
    /// Number of codes of a bucket above which all threads share it.
    pub(super) many_codes: usize,
    /// Pairs of two buckets that are compared at once; above, they are split. Inside one bucket, half as many.
    pub(super) large_pairs: usize,
    /// Average number of rows equal to a row from which collapsing them pays.
    pub(super) many_equal: f64,
    /// Factor by which the estimated cost of comparing every pair is multiplied.
    pub(super) scan_factor: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            few_codes: 1 << 13,
            many_codes: 1 << 17,
            large_pairs: 1 << 22,
            many_equal: 2.0,
            scan_factor: 1.0,
        }
    }
}

/// Parameters shared by all parts of a join.
#[derive(Clone, Copy)]
pub(super) struct Search {
    pub(super) isa: Isa,
    pub(super) num_words: usize,
    pub(super) within: u32,
    pub(super) limits: Limits,
}

impl Search {
    pub(super) fn wanted<'a>(&self, owners: &'a [Key]) -> Wanted<'a> {
        Wanted {
            isa: self.isa,
            num_words: self.num_words,
            within: self.within,
            owners,
            part_within: None,
            large_pairs: self.limits.large_pairs,
        }
    }
}

/// The conditions for keeping a pair.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) isa: Isa,
    pub(super) num_words: usize,
    pub(super) within: u32,
    /// Keys that were searched before: they own the pairs that they find.
    pub(super) owners: &'a [Key],
    /// Number of differing bits allowed in the parts of 32 bits that the tables store; `None` if they store none.
    pub(super) part_within: Option<u32>,
    /// Number of pairs of two buckets above which the buckets are reported to the caller instead.
    pub(super) large_pairs: usize,
}

/// Two codes near each other, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) distance: u16,
}

/// Codes compared with each vector of others, so that a vector is loaded once.
const NUM_QUERIES: usize = 4;
/// Returns the codes from `first` on as queries; places beyond the last one repeat it.
#[inline(always)]
fn queries_at<const W: usize>(
    view: &View<'_>,
    first: usize,
    last: usize,
) -> [[u64; W]; NUM_QUERIES] {
    std::array::from_fn(|i| view.get::<W>((first + i).min(last)))
}

/// Returns the parts of the same codes.
#[inline(always)]
fn parts_at(parts: &[u32], first: usize, last: usize) -> [u32; NUM_QUERIES] {
    std::array::from_fn(|i| parts[(first + i).min(last)])
}

/// Safety: the processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
pub(super) unsafe fn inside_range<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    (view, parts): (&View<'_>, &[u32]),
    start: usize,
    end: usize,
    hits: &mut Vec<Hit>,
) {
    for first in (start..end).step_by(NUM_QUERIES) {
        let last = (first + NUM_QUERIES).min(end) - 1;
        let queries = queries_at::<W>(view, first, last);
        // Compares the queries with each other; a vector that holds them would always have hits.
        let mut least = u32::MAX;
        for i in 1..NUM_QUERIES {
            for j in 0..i {
                let far = if first + i > last { u32::MAX } else { 0 };
                least = least.min(distance(&queries[i], &queries[j]) | far);
            }
        }
        if least <= wanted.within {
            report_queries::<W>(wanted, view, first, last, hits);
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(within) = wanted.part_within {
                let query_parts = parts_at(parts, first, last);
                compare_parts::<K, W>(
                    wanted,
                    (view, first, last),
                    (&query_parts, within),
                    (view, parts, last + 1, end),
                    hits,
                );
            } else {
                compare_queries::<K, W>(
                    wanted,
                    (view, first, last),
                    &queries,
                    (view, last + 1, end),
                    hits,
                );
            }
        }
    }
}

/// Safety: the processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
pub(super) unsafe fn across_range<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    (left, left_parts, start, end): (&View<'_>, &[u32], usize, usize),
    (right, right_parts, other_start, other_end): (&View<'_>, &[u32], usize, usize),
    hits: &mut Vec<Hit>,
) {
    for first in (start..end).step_by(NUM_QUERIES) {
        let last = (first + NUM_QUERIES).min(end) - 1;
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(within) = wanted.part_within {
                let query_parts = parts_at(left_parts, first, last);
                compare_parts::<K, W>(
                    wanted,
                    (left, first, last),
                    (&query_parts, within),
                    (right, right_parts, other_start, other_end),
                    hits,
                );
            } else {
                let queries = queries_at::<W>(left, first, last);
                compare_queries::<K, W>(
                    wanted,
                    (left, first, last),
                    &queries,
                    (right, other_start, other_end),
                    hits,
                );
            }
        }
    }
}

/// [`compare_queries`], first by parts of 32 bits, of which twice as many fit in a vector. Safety: the kernel's
/// instructions, and codes of `W` words.
#[inline(always)]
unsafe fn compare_parts<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    queried: (&View<'_>, usize, usize),
    (queries, within): (&[u32; NUM_QUERIES], u32),
    (view, parts, start, end): (&View<'_>, &[u32], usize, usize),
    hits: &mut Vec<Hit>,
) {
    debug_assert!(end <= view.len && parts.len() >= view.len + PART_LANES);
    let mut index = start;
    while index < end {
        // SAFETY: `index` is below the number of parts, after which PART_LANES are readable; the rest is guaranteed by
        // the caller.
        unsafe {
            let sixteen = parts.as_ptr().add(index);
            if K::any_part_within16(sixteen, queries, within) {
                for (i, &query) in queries.iter().enumerate().take(queried.2 + 1 - queried.1) {
                    let mut near = K::parts_within16(sixteen, query, within);
                    if end - index < PART_LANES {
                        near &= (1 << (end - index)) - 1;
                    }
                    if near != 0 {
                        report::<W>(
                            wanted,
                            (queried.0, queried.1 + i),
                            (view, index),
                            near,
                            hits,
                        );
                    }
                }
            }
        }
        index += PART_LANES;
    }
}

/// Safety: the processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
unsafe fn compare_queries<K: Kernel, const W: usize>(
    wanted: &Wanted<'_>,
    queried: (&View<'_>, usize, usize),
    queries: &[[u64; W]; NUM_QUERIES],
    (view, start, end): (&View<'_>, usize, usize),
    hits: &mut Vec<Hit>,
) {
    debug_assert!(end <= view.len && view.data.len() >= (W - 1) * view.stride + view.len + LANES);
    let mut index = start;
    while index < end {
        // SAFETY: `index` is below the length of the planes, after each of which LANES words are readable; the rest is
        // guaranteed by the caller.
        unsafe {
            let eight = view.data.as_ptr().add(index);
            if K::any_within8(eight, view.stride, queries, wanted.within) {
                for (i, query) in queries.iter().enumerate().take(queried.2 + 1 - queried.1) {
                    let mut near = K::within8(eight, view.stride, query, wanted.within);
                    if end - index < LANES {
                        near &= (1 << (end - index)) - 1;
                    }
                    if near != 0 {
                        report::<W>(
                            wanted,
                            (queried.0, queried.1 + i),
                            (view, index),
                            u16::from(near),
                            hits,
                        );
                    }
                }
            }
        }
        index += LANES;
    }
}

/// Keeps the pairs of a query with the codes from `index` on that are near and that no earlier key finds.
#[inline(never)]
fn report<const W: usize>(
    wanted: &Wanted<'_>,
    (left, query): (&View<'_>, usize),
    (right, index): (&View<'_>, usize),
    mut near: u16,
    hits: &mut Vec<Hit>,
) {
    while near != 0 {
        let other = index + near.trailing_zeros() as usize;
        near &= near - 1;
        keep::<W>(wanted, (left, query), (right, other), hits);
    }
}

/// Same as [`report`], for the queries of one group among themselves.
#[inline(never)]
fn report_queries<const W: usize>(
    wanted: &Wanted<'_>,
    view: &View<'_>,
    first: usize,
    last: usize,
    hits: &mut Vec<Hit>,
) {
    for i in first..=last {
        for j in first..i {
            keep::<W>(wanted, (view, j), (view, i), hits);
        }
    }
}

#[inline(always)]
fn keep<const W: usize>(
    wanted: &Wanted<'_>,
    (left, a): (&View<'_>, usize),
    (right, b): (&View<'_>, usize),
    hits: &mut Vec<Hit>,
) {
    let (first, second) = (left.get::<W>(a), right.get::<W>(b));
    let between = distance(&first, &second);
    if between > wanted.within {
        return;
    }
    let mut differing = [0; 4];
    for (word, differing) in differing.iter_mut().enumerate().take(W) {
        *differing = first[word] ^ second[word];
    }
    if !wanted.owners.iter().any(|key| key.finds(&differing)) {
        hits.push(Hit {
            a: left.id(a),
            b: right.id(b),
            distance: between as u16,
        });
    }
}
