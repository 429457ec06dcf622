//! Which members of a bucket are near each other?

use super::sorted::Buckets;
use crate::distance::distance;
use crate::kernels::{Kernel, LANES};

/// Later codes compared with each vector of earlier ones.
const NUM_QUERIES: usize = 4;

/// The query for every bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) within: u32,
    /// Only this many leading members of a bucket are compared with the later ones.
    pub(super) num_members: u32,
    /// Only pairs whose later position is at least this.
    pub(super) low: u32,
    /// Pairs that agree in all bits of one of these masks are omitted.
    pub(super) before: &'a [[u64; 4]],
}

/// Two positions and the distance between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Near {
    pub(super) later: u32,
    pub(super) earlier: u32,
    pub(super) distance: u32,
}

/// Appends the near pairs of all buckets of a part.
///
/// # Safety
/// The processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
pub(super) unsafe fn compare_buckets<K: Kernel, const W: usize>(
    buckets: &Buckets,
    question: Question<'_>,
    found: &mut Vec<Near>,
) {
    let codes = &buckets.codes;
    for &(start, end) in &buckets.ranges {
        let (start, end) = (start as usize, end as usize);
        let end_of_members = end.min(start.saturating_add(question.num_members as usize));
        // Positions ascend within a bucket.
        let first_asked = match buckets.positions[start] < question.low {
            false => start,
            true => {
                start
                    + buckets.positions[start..end]
                        .partition_point(|&position| position < question.low)
            }
        };
        for first in (first_asked..end).step_by(NUM_QUERIES) {
            let last = (first + NUM_QUERIES).min(end) - 1;
            // Places beyond the last one repeat it and are ignored.
            let queries: [[u64; W]; NUM_QUERIES] =
                std::array::from_fn(|i| codes.get::<W>((first + i).min(last)));
            for index in (start..last.min(end_of_members)).step_by(LANES) {
                let eight = codes.data()[index..].as_ptr();
                // SAFETY: `index` is below the length of the planes, which are padded by LANES words each; the rest is
                // guaranteed by the caller.
                if !unsafe { K::any_within8(eight, codes.stride(), &queries, question.within) } {
                    continue;
                }
                for (later, query) in (first..=last).zip(&queries) {
                    // SAFETY: as above.
                    let near = unsafe { K::within8(eight, codes.stride(), query, question.within) };
                    let end = later.min(end_of_members);
                    if near != 0 && index < end {
                        let live = near & (u8::MAX >> (LANES - (end - index).min(LANES)));
                        report::<W>(buckets, question, later, index, live, found);
                    }
                }
            }
        }
    }
}

#[inline(never)]
fn report<const W: usize>(
    buckets: &Buckets,
    question: Question<'_>,
    later: usize,
    index: usize,
    mut near: u8,
    found: &mut Vec<Near>,
) {
    let query = buckets.codes.get::<W>(later);
    while near != 0 {
        let member = index + near.trailing_zeros() as usize;
        near &= near - 1;
        let code = buckets.codes.get::<W>(member);
        let differing: [u64; W] = std::array::from_fn(|word| code[word] ^ query[word]);
        let agrees = |mask: &[u64; 4]| (0..W).all(|word| differing[word] & mask[word] == 0);
        if !question.before.iter().any(agrees) {
            found.push(Near {
                later: buckets.positions[later],
                earlier: buckets.positions[member],
                distance: distance(&code, &query),
            });
        }
    }
}
