//! How are the codes of a bucket compared with each other, or with those of another bucket?

use super::codes::View;
use super::partition::Table;
use super::stretches::{across_range, inside_range};
use super::wanted::{Hit, Wanted};
use crate::kernels::{Kernel, run_kernel};

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
    while value < table.num_buckets() && hits.len() < MANY_HITS {
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
    while value < left.num_buckets() && hits.len() < MANY_HITS {
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
