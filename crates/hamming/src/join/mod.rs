//! Which pairs of one set, or of two, differ in at most `within` bits?
//!
//! Returns all of them, each once, for any width and any radius. Equal fingerprints are collapsed. The distinct codes
//! are grouped by keys whose radii are complete by the generalized pigeonhole principle, buckets are compared four
//! codes by eight, and buckets that are too large are split by the remaining bits (Manku, Jain, Das Sarma: Detecting
//! near-duplicates for web crawling, WWW 2007, section 3, for the recursion). The first key that finds a pair owns it.
//! If no keys pay, all pairs are compared.
//!
//! Tasks are numbered and their pairs are returned in that order, so the output does not depend on threads. Because
//! each pair has an owner, the set of pairs found so far need not be stored.

mod collapse;
mod compare;
mod keys;
mod large;
mod node;
mod output;
mod partition;
mod parts;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use likewise_core::error::{Error, Result, invalid_if};
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;

use crate::distance::Fingerprints;
use crate::plan::MAX_JOINED;
use collapse::Laid;
use compare::{Limits, Search};
use keys::FreeBits;
use large::{Join, Source};
use node::Task;
use output::{Output, Stopped};

pub use output::{PairBatch, SortedPairs, sort_pairs};
pub use parts::{PartOf, PartPair, join_parts, plan_parts, predicted_seconds};

/// Options of a join. Only `within` affects the pairs.
#[derive(Debug, Clone, Copy)]
pub struct JoinOptions<'a> {
    pub within: u32,
    pub isa: Isa,
    pub run: Run<'a>,
}

/// Passes every pair of rows of one set at distance `within` or less to `consumer`, each once, with the smaller row on
/// the left; with a `right` set, every pair of a row of `left` and one of `right`. Pairs arrive in batches of at most
/// 65,536, in an order that depends only on the fingerprints; `consumer` returns `false` to end the join. Two rows of
/// empty texts have distance 0, and an empty text does not pair with any other text. Memory: about 2.5 times
/// `8 * words + 4` bytes per row and some megabytes per thread, regardless of the number of pairs.
pub fn join(
    left: &JoinSide<'_>,
    right: Option<&JoinSide<'_>>,
    options: &JoinOptions<'_>,
    consumer: &mut (dyn FnMut(PairBatch) -> bool + Send),
) -> Result<(), Error> {
    let bits = left.fingerprints.bits;
    with_join(
        left,
        right,
        (true, Limits::default()),
        options,
        consumer,
        |join, source| join.join(source, whole_task(bits, options.within)),
    )
}

fn whole_task(bits: u32, within: u32) -> Task {
    Task {
        free: FreeBits::all(bits),
        within,
        owners: Vec::new(),
    }
}

/// Arranges the sides, emits the pairs of equal codes and of empty texts if `equal` is set, and leaves the others to
/// `search`.
fn with_join(
    left: &JoinSide<'_>,
    right: Option<&JoinSide<'_>>,
    (equal, limits): (bool, Limits),
    options: &JoinOptions<'_>,
    consumer: &mut (dyn FnMut(PairBatch) -> bool + Send),
    search: impl FnOnce(&Join<'_, '_>, &Source<'_>) -> Result<(), Stopped>,
) -> Result<(), Error> {
    let sides: Vec<&JoinSide<'_>> = [left].into_iter().chain(right).collect();
    check(&sides, options.within)?;
    let (left_codes, mut spare) = Laid::new(left, limits.many_equal, options)?;
    let right_codes = match right {
        None => None,
        Some(right) => {
            let (codes, more) = Laid::new(right, limits.many_equal, options)?;
            spare.extend(more);
            Some(codes)
        }
    };
    let output = Output::new(
        consumer,
        &left_codes,
        right_codes.as_ref(),
        options.run.cancel,
    );
    if equal {
        ended(output.add_equal())?;
    }
    let source = Source {
        left: left_codes.views(),
        right: right_codes.as_ref().map(Laid::views),
    };
    let join = Join {
        search: search_of(options, left.fingerprints.num_words(), limits),
        run: options.run,
        output: &output,
        spare: Mutex::new(spare),
    };
    ended(search(&join, &source))
}

fn search_of(options: &JoinOptions<'_>, num_words: usize, limits: Limits) -> Search {
    Search {
        isa: options.isa,
        num_words,
        within: options.within,
        limits,
    }
}

fn ended(result: Result<(), Stopped>) -> Result<(), Error> {
    result.map_err(|Stopped| Error::Canceled)
}

fn check(sides: &[&JoinSide<'_>], within: u32) -> Result<(), Error> {
    let bits = sides[0].fingerprints.bits;
    for side in sides {
        side.check()?;
        invalid_if(side.fingerprints.bits != bits, "right", || {
            format!(
                "fingerprints of {} bits cannot be joined with those of {bits}",
                side.fingerprints.bits
            )
        })?;
    }
    invalid_if(within > bits, "within", || {
        format!("{within} is outside 0 to {bits}, the bits of a fingerprint")
    })?;
    Ok(())
}

#[derive(Debug, Clone, Copy)]
pub struct JoinSide<'a> {
    pub fingerprints: Fingerprints<'a>,
    /// The row of each fingerprint; `None` if rows are positions.
    pub rows: Option<&'a [u32]>,
    /// Nonzero if the text was empty: such rows pair only with each other. `None` if no text is empty.
    pub is_empty: Option<&'a [u8]>,
}

impl<'a> JoinSide<'a> {
    /// Creates a side whose fingerprints are rows 0, 1, ..., of nonempty texts.
    pub fn of(fingerprints: Fingerprints<'a>) -> Self {
        JoinSide {
            fingerprints,
            rows: None,
            is_empty: None,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        self.fingerprints.check()?;
        let len = self.fingerprints.len();
        invalid_if(len as u64 > MAX_JOINED, "fingerprints", || {
            format!("{len} rows; at most {MAX_JOINED} are joined at once")
        })?;
        for (name, given) in [
            ("rows", self.rows.map(<[u32]>::len)),
            ("is_empty", self.is_empty.map(<[u8]>::len)),
        ] {
            invalid_if(given.is_some_and(|given| given != len), name, || {
                format!("{} of them for {len} fingerprints", given.unwrap_or(0))
            })?;
        }
        Ok(())
    }

    pub(super) fn row(&self, index: usize) -> u32 {
        self.rows.map_or(index as u32, |rows| rows[index])
    }

    pub(super) fn is_empty_at(&self, index: usize) -> bool {
        self.is_empty.is_some_and(|is_empty| is_empty[index] != 0)
    }

    /// Returns fingerprint `index`, with bits beyond the width cleared.
    #[inline(always)]
    pub(super) fn code<const W: usize>(&self, index: usize) -> [u64; W] {
        let words = &self.fingerprints.words[index * W..][..W];
        let mut code: [u64; W] = std::array::from_fn(|w| words[w]);
        code[W - 1] &= u64::MAX >> (64 * W as u32 - self.fingerprints.bits);
        code
    }
}
