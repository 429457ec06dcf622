//! Do two documents differ in what names them?
//!
//! Documents that were made from one form share most of their words and differ in a few: the subject in the first words,
//! and fillings of slots that the collection fills in many ways. A copy that was edited differs anywhere. [`Names`] are
//! what names a document, [`penalty`] is the additional similarity that a pair with different names needs, and
//! [`NameCounter`] finds the slots of a collection.

mod counter;
mod differences;
mod profile;
mod table;
#[cfg(test)]
mod tests;

use crate::hash::{SHINGLE_MULTIPLIER, mix64};
use crate::isa::Isa;

pub use counter::NameCounter;
pub use differences::{Differences, SECTION_TOKENS, difference, most_penalty, own_run, penalty};
pub(crate) use profile::NameReader;
pub use profile::{Form, Names, penalty_of_some};
pub use table::NameTable;

/// Number of first tokens that may name a document.
pub const LEAD: usize = 12;
/// Number of first tokens of the other document among which they are not new.
pub const LEAD_WINDOW: usize = 24;
pub const SLOT_TOKENS: usize = 1024;
/// Maximum number of tokens that fill a slot.
const LONGEST_FILLING: usize = 3;
/// Number of tokens on each side of a slot.
const FRAME: usize = 2;
/// Minimum number of different fillings of a slot; each is in at most one of as many documents.
const FEWEST_FILLINGS: usize = 3;
/// A filling holds the bits of its frame from this one on, so that fillings of one slot follow each other.
const FRAME_SHIFT: u32 = 32;
/// Stand for the tokens before the first and after the last one.
const BEFORE: u64 = 0x7374_6172_7473_6C6F;
const AFTER: u64 = 0x656E_6473_736C_6F74;
/// Distinguishes frames and words in a table of names.
const FRAME_KEY: u64 = 0x736C_6F74_6672_616D;
const WORD_KEY: u64 = 0x6E61_6D65_776F_7264;

/// Set in the hash of a token that holds a digit, and of one that is a number: digits and no letters.
const DIGIT: u64 = 1 << 32;
const NUMBER: u64 = 1 << 33;

/// The penalty for a crowd is the same for each unit by which the shared features are less rare than
/// `CROWD_RARITY`, but for the rarest ones: a share of the smaller document. `MOST_CROWD` units count at most.
pub const CROWD_SHARE: usize = 20;
pub const CROWD_RARITY: usize = 11;
pub const MOST_CROWD: usize = 3;
/// Features of at most this weight are common to a crowd.
pub const COMMON: usize = CROWD_RARITY - MOST_CROWD;

/// Returns the penalty for so many units.
pub fn crowd_penalty(units: usize) -> f64 {
    (3 * units) as f64 / 100.0
}

#[inline]
fn word_key(token: u64) -> u64 {
    mix64(token ^ WORD_KEY)
}

/// Calls `take` with the frames of all places of a document that may be slots, the tokens that these begin with, and each
/// number of tokens. A frame of 0 stands for none.
///
/// A frame is the hash of two tokens before and two after the place: a
/// polynomial, so that each pair of tokens is hashed once.
fn each_frame(
    tokens: &[u64],
    scratch: &mut Scratch,
    isa: Isa,
    take: impl FnMut(&[u64], &[u64], usize),
) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is created only if the processor has it.
        Isa::Avx512(_) => unsafe { each_frame_avx512(tokens, scratch, take) },
        _ => each_frame_body(tokens, scratch, take),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
fn each_frame_avx512(
    tokens: &[u64],
    scratch: &mut Scratch,
    take: impl FnMut(&[u64], &[u64], usize),
) {
    each_frame_body(tokens, scratch, take);
}

#[inline(always)]
fn each_frame_body(
    tokens: &[u64],
    scratch: &mut Scratch,
    mut take: impl FnMut(&[u64], &[u64], usize),
) {
    let tokens = &tokens[..tokens.len().min(SLOT_TOKENS)];
    scratch.hash_pairs(tokens);
    for length in 1..=LONGEST_FILLING.min(tokens.len()) {
        scratch.hash_frames(&tokens[length - 1..], length);
        take(&scratch.frames, tokens, length);
    }
}

/// Returns the places of frames that may be slots. Which ones may be cannot be predicted, so there is no branch on it.
#[inline(always)]
fn places_where(
    frames: &[u64],
    places: &mut Vec<u32>,
    may_be: impl Fn(u64) -> bool,
) -> impl Iterator<Item = usize> {
    places.resize(frames.len(), 0);
    let mut num = 0;
    for (place, &frame) in (0..).zip(frames) {
        places[num] = place;
        num += usize::from(may_be(frame));
    }
    places[..num].iter().map(|&place| place as usize)
}

/// Scratch space of [`each_frame`].
#[derive(Debug, Default)]
struct Scratch {
    padded: Vec<u64>,
    /// Polynomials of consecutive tokens, and these as the left half of a frame.
    pairs: Vec<u64>,
    left: Vec<u64>,
    /// Whether any token of each place is a number, as a flag of its hash.
    numbers: Vec<u64>,
    frames: Vec<u64>,
}

impl Scratch {
    /// Hashes the pairs of consecutive tokens.
    #[inline(always)]
    fn hash_pairs(&mut self, tokens: &[u64]) {
        self.padded.clear();
        self.padded.extend([BEFORE; FRAME]);
        self.padded.extend_from_slice(tokens);
        self.padded.extend([AFTER; FRAME]);
        self.pairs.clear();
        let pairs = self.padded.windows(FRAME).map(|two| append(two[0], two[1]));
        self.pairs.extend(pairs);
        self.left.clear();
        let key = FRAME_KEY.wrapping_mul(SQUARE);
        let left = |&pair: &u64| pair.wrapping_add(key).wrapping_mul(SQUARE);
        self.left.extend(self.pairs.iter().map(left));
        self.numbers.clear();
        self.numbers.resize(tokens.len(), 0);
    }

    /// Makes the frames of all places of so many tokens, of which `last` are the last ones; one more than before.
    #[inline(always)]
    fn hash_frames(&mut self, last: &[u64], length: usize) {
        self.frames.resize(last.len(), 0);
        let halves = self.left.iter().zip(&self.pairs[FRAME + length..]);
        let tokens = self.numbers.iter_mut().zip(last);
        for ((frame, (left, right)), (number, last)) in
            self.frames.iter_mut().zip(halves).zip(tokens)
        {
            // Revisions differ in numbers too.
            *number |= last & NUMBER;
            let is_none = (*number >> NUMBER.trailing_zeros()).wrapping_sub(1);
            *frame = mix64(left.wrapping_add(*right)) & is_none;
        }
    }
}

const SQUARE: u64 = SHINGLE_MULTIPLIER.wrapping_mul(SHINGLE_MULTIPLIER);

#[inline(always)]
fn append(sum: u64, token: u64) -> u64 {
    sum.wrapping_mul(SHINGLE_MULTIPLIER).wrapping_add(token)
}

/// Returns the filling of a slot.
#[inline]
fn filling(frame: u64, tokens: &[u64]) -> u64 {
    let tokens = mix64(tokens.iter().copied().fold(0, append));
    frame >> FRAME_SHIFT << FRAME_SHIFT | mix64(frame.wrapping_add(tokens)) >> (64 - FRAME_SHIFT)
}
