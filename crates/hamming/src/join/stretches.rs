//! How is a run of codes compared with itself, or with another?

use super::codes::View;
use super::wanted::{Hit, Wanted};
use crate::distance::distance;
use crate::kernels::{Kernel, LANES, PART_LANES};

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
