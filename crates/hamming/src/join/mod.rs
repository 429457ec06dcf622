//! Which pairs of one set, or of two, differ in at most `within` bits?
//!
//! All of them, each once, for any width and any radius. Equal fingerprints are collapsed; the distinct codes are brought together
//! by keys whose radii are complete by the generalized pigeonhole principle, buckets are compared four codes by eight, and
//! buckets that are too large are split by the bits that remain (Manku, Jain, Das Sarma: Detecting near-duplicates for
//! web crawling, WWW 2007, section 3, for the recursion). The first key that finds a pair owns it. Where no keys pay, all pairs are compared.
//!
//! Tasks are numbered and their pairs are returned in that order, so the output does not depend on threads. Because of
//! the owner, no set of pairs already found is kept.

mod codes;
mod collapse;
mod compare;
mod keys;
mod laid;
mod large;
mod node;
mod output;
mod partition;
mod parts;
mod side;
mod sorted;
mod stretches;
#[cfg(test)]
mod tests;
mod wanted;

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

pub use output::PairBatch;
pub use parts::{PartOf, PartPair, join_parts, plan_parts};
pub use side::JoinSide;
pub use sorted::{SortedPairs, sort_pairs};

use keys::FreeBits;
use laid::Laid;
use large::{Join, Source};
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use node::Task;
use output::{Output, Stopped};
use wanted::{Limits, Search};

/// How a join runs. Nothing here but `within` changes the pairs.
#[derive(Debug, Clone, Copy)]
pub struct JoinOptions<'a> {
    /// Radius in bits.
    pub within: u32,
    /// Instruction set of the kernels.
    pub isa: Isa,
    /// Threads of the call.
    pub threads: usize,
    /// Set to end it early.
    pub cancel: &'a AtomicBool,
}

/// Gives every pair of rows of one set at distance `within` or less to `consumer`, each once, the lesser row left.
///
/// Pairs come in batches of at most 65,536, in an order that depends on the fingerprints alone; `false` from `consumer` ends the join.
/// Two rows of empty texts have distance 0, and an empty text pairs with no other.
///
/// # Errors
/// [`Error::InvalidParameter`] where the shapes do not fit, `within` is above the width or there are more than 2^31 rows;
/// [`Error::Canceled`], also where `consumer` wanted no more.
///
/// # Cost
/// Memory: about 2.5 times `8 * words + 4` bytes a row and some megabytes a thread, whatever the number of pairs.
pub fn join_self(
    side: &JoinSide<'_>,
    options: &JoinOptions<'_>,
    consumer: &mut (dyn FnMut(PairBatch) -> bool + Send),
) -> Result<(), Error> {
    let bits = side.fingerprints.bits;
    with_join(
        side,
        None,
        (true, Limits::default()),
        options,
        consumer,
        |join, source| join.join(source, whole_task(bits, options.within)),
    )
}

/// Gives every pair of a row of `left` and a row of `right` at distance `within` or less to `consumer`, each once.
///
/// Otherwise as [`join_self`].
///
/// # Errors
/// As [`join_self`], and where the widths differ.
pub fn join_two(
    left: &JoinSide<'_>,
    right: &JoinSide<'_>,
    options: &JoinOptions<'_>,
    consumer: &mut (dyn FnMut(PairBatch) -> bool + Send),
) -> Result<(), Error> {
    let bits = left.fingerprints.bits;
    with_join(
        left,
        Some(right),
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

/// Lays out the sides, gives the pairs of equal codes and of empty texts where `equal` asks for them, and leaves the others to `search`.
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
    let output = Output::new(consumer, &left_codes, right_codes.as_ref(), options.cancel);
    if equal {
        ended(output.add_equal())?;
    }
    let source = Source {
        left: left_codes.views(),
        right: right_codes.as_ref().map(Laid::views),
    };
    let join = Join {
        search: search_of(options, left.fingerprints.num_words(), limits),
        threads: options.threads,
        cancel: options.cancel,
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
        if side.fingerprints.bits != bits {
            return Err(Error::invalid(
                "right",
                format!(
                    "fingerprints of {} bits cannot be joined with those of {bits}",
                    side.fingerprints.bits
                ),
            ));
        }
    }
    if within > bits {
        return Err(Error::invalid(
            "within",
            format!("{within} is outside 0 to {bits}, the bits of a fingerprint"),
        ));
    }
    Ok(())
}
