//! How is a join cut into parts that fit in memory?
//!
//! Codes are spread by the first bits of a key, and two parts whose bits differ in no more than the key's radius are joined by the
//! rest of it. The keys are chosen once, so that a pair is owned by the same key in whatever part it is found.

use super::keys::FreeBits;
use super::laid::Laid;
use super::node::Task;
use super::partition::Digit;
use super::side::JoinSide;
use super::wanted::Limits;
use super::{JoinOptions, PairBatch, check, search_of, with_join};
use crate::distance::Fingerprints;
use crate::kernels::Plain;
use crate::plan::{Key, SearchPlan};
use likewise_core::error::Error;

/// Keys for a join of sets too large to be held, complete within the radius.
///
/// `sample` are some of the fingerprints: they tell which bits are worth something. A plan without keys means that every pair is to
/// be compared.
///
/// # Errors
/// As [`join_self`](super::join_self).
pub fn plan_parts(
    sample: Fingerprints<'_>,
    num_left: usize,
    num_right: Option<usize>,
    options: &JoinOptions<'_>,
) -> Result<SearchPlan, Error> {
    let side = JoinSide::of(sample);
    check(&[&side], options.within)?;
    let (laid, _) = Laid::new(&side, Limits::default().many_equal, options)?;
    let free = FreeBits::all(sample.bits).measured(&laid.views());
    let search = search_of(options, sample.num_words(), Limits::default());
    let keys = free.keys((num_left, num_right), &search, options.within);
    SearchPlan::new(sample.bits, options.within, keys)
}

/// Which part of the rows a fingerprint belongs to: the value of the first bits of a key.
#[derive(Debug, Clone, Copy)]
pub struct PartOf {
    digit: Digit,
}

impl PartOf {
    /// Parts by the first `num_bits` bits of a key, at most as many as it has.
    pub fn new(key: &Key, num_bits: u32) -> Self {
        PartOf {
            digit: Digit::split(key, num_bits).0,
        }
    }

    /// The part of a fingerprint of `W` words, from 0 to `2^num_bits - 1`.
    #[inline]
    pub fn part<const W: usize>(&self, code: &[u64; W]) -> usize {
        // SAFETY: the plain kernel needs no instruction set.
        unsafe { self.digit.value::<Plain, W>(code) }
    }
}

/// Two parts of a join, or one that is joined with itself.
#[derive(Debug, Clone, Copy)]
pub struct PartPair<'a> {
    /// The plan.
    pub plan: &'a SearchPlan,
    /// The key by which the rows were spread, by its place in the plan.
    pub key: usize,
    /// First bits of it that chose the part.
    pub num_bits: u32,
    /// How many of these differ between the two parts.
    pub num_errors: u32,
}

/// Gives every pair of two parts (of one, where `right` is `None`) that the plan's key finds and no key before it to `consumer`.
///
/// Taken over all keys and all pairs of parts that differ in at most the key's radius, this is every pair once, but for pairs of
/// empty texts, which belong to no part. A part may also be joined in pieces, each with itself and each two with one another.
///
/// # Errors
/// As [`join_self`](super::join_self) and [`join_two`](super::join_two).
pub fn join_parts(
    left: &JoinSide<'_>,
    right: Option<&JoinSide<'_>>,
    parts: &PartPair<'_>,
    options: &JoinOptions<'_>,
    consumer: &mut (dyn FnMut(PairBatch) -> bool + Send),
) -> Result<(), Error> {
    let keys = parts.plan.keys();
    let bits = left.fingerprints.bits;
    let (key, before) = (&keys[parts.key], &keys[..parts.key]);
    let rest = Digit::split(key, parts.num_bits)
        .1
        .key(key.radius - parts.num_errors);
    let task = Task {
        free: FreeBits::all(bits).without(key),
        within: options.within - parts.num_errors,
        owners: before.to_vec(),
    };
    // Equal fingerprints are found by every key, so the first one owns them.
    let equal = parts.key == 0 && parts.num_errors == 0;
    with_join(
        left,
        right,
        (equal, Limits::default()),
        options,
        consumer,
        |join, source| {
            let mut task = task;
            task.free = source.measured(&task.free);
            if rest.width() == 0 {
                return join.join(source, task);
            }
            join.join_key(source, &task, &[rest], 0)
        },
    )
}
