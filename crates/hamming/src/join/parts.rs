//! How is a join divided into parts that fit in memory?
//!
//! Codes are partitioned by the first bits of a key, and two parts whose bits differ by at most the key's radius are
//! joined by the rest of the key. The keys are chosen once, so that a pair is owned by the same key regardless of the
//! parts in which it is found.

use super::collapse::Laid;
use super::compare::{Limits, Search};
use super::keys::FreeBits;
use super::node::Task;
use super::partition::Digit;
use super::{JoinOptions, JoinSide, PairBatch, check, search_of, with_join};
use crate::distance::Fingerprints;
use crate::kernels::Plain;
use crate::plan::{Key, SearchPlan};
use likewise_core::error::Result;

/// Returns the estimated seconds on one core of a join of `len` fingerprints like those of `sample`.
pub fn predicted_seconds(
    sample: Fingerprints<'_>,
    len: usize,
    options: &JoinOptions<'_>,
) -> Result<f64> {
    let (free, search) = measured(sample, options)?;
    Ok(free.cheapest((len, None), &search, options.within).0 / 1e9)
}

/// Returns complete keys for a join too large for memory, by `sample`; without keys, every pair is compared.
pub fn plan_parts(
    sample: Fingerprints<'_>,
    num_left: usize,
    num_right: Option<usize>,
    options: &JoinOptions<'_>,
) -> Result<SearchPlan> {
    let (free, search) = measured(sample, options)?;
    let keys = free.keys((num_left, num_right), &search, options.within);
    SearchPlan::new(sample.bits, options.within, keys)
}

/// Returns the bits of a sample by how selective they are.
fn measured(sample: Fingerprints<'_>, options: &JoinOptions<'_>) -> Result<(FreeBits, Search)> {
    let side = JoinSide::of(sample);
    check(&[&side], options.within)?;
    let (laid, _) = Laid::new(&side, Limits::default().many_equal, options)?;
    let free = FreeBits::all(sample.bits).measured(&laid.views());
    Ok((
        free,
        search_of(options, sample.num_words(), Limits::default()),
    ))
}

/// Assigns a fingerprint to a part: the value of the first bits of a key.
#[derive(Debug, Clone, Copy)]
pub struct PartOf {
    digit: Digit,
}

impl PartOf {
    /// Creates parts by the first `num_bits` bits of a key, or by all of them if the key has fewer.
    pub fn new(key: &Key, num_bits: u32) -> Self {
        PartOf {
            digit: Digit::split(key, num_bits).0,
        }
    }

    /// Returns the part of a fingerprint of `W` words, from 0 to `2^num_bits - 1`.
    #[inline]
    pub fn part<const W: usize>(&self, code: &[u64; W]) -> usize {
        // SAFETY: the plain kernel needs no instruction set.
        unsafe { self.digit.value::<Plain, W>(code) }
    }
}

/// Two parts of a join, or one that is joined with itself.
#[derive(Debug, Clone, Copy)]
pub struct PartPair<'a> {
    pub plan: &'a SearchPlan,
    /// Index in the plan of the key by which the rows were partitioned.
    pub key: usize,
    /// Number of its first bits that select the part.
    pub num_bits: u32,
    /// Number of these bits that differ between the two parts.
    pub num_errors: u32,
}

/// Passes every pair of two parts (of one, if `right` is `None`) that the plan's key finds, and no earlier key, to
/// `consumer`: over all keys and pairs of parts within the key's radius every pair once, except of empty texts. A part
/// may be joined in pieces, each with itself, and each two with one another.
pub fn join_parts(
    left: &JoinSide<'_>,
    right: Option<&JoinSide<'_>>,
    parts: &PartPair<'_>,
    options: &JoinOptions<'_>,
    consumer: &mut (dyn FnMut(PairBatch) -> bool + Send),
) -> Result<()> {
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
