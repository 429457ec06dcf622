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

pub use counter::NameCounter;
pub use differences::{
    Differences, END_PENALTY, SECTION_TOKENS, differences, ends_differ, own_run, penalty,
};
pub(crate) use profile::NameReader;
pub use profile::{Form, Names, penalty_before_end};
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
/// Stand for the tokens before the first and after the last one.
const BEFORE: u64 = 0x7374_6172_7473_6C6F;
const AFTER: u64 = 0x656E_6473_736C_6F74;
/// Distinguishes frames and words in a table of names.
const FRAME_KEY: u64 = 0x736C_6F74_6672_616D;
const WORD_KEY: u64 = 0x6E61_6D65_776F_7264;

/// Set in the hash of a token that holds a digit, and of one that is a number: digits and no letters.
const DIGIT: u64 = 1 << 32;
const NUMBER: u64 = 1 << 33;

#[inline]
fn word_key(token: u64) -> u64 {
    mix64(token ^ WORD_KEY)
}

/// Calls `take` with the frame and the tokens of each place of a document that may be a slot.
///
/// A frame is the hash of two tokens before and two after the place: a
/// polynomial, so that each pair of tokens is hashed once.
fn each_frame(tokens: &[u64], scratch: &mut Scratch, mut take: impl FnMut(u64, &[u64])) {
    let tokens = &tokens[..tokens.len().min(SLOT_TOKENS)];
    let Scratch { padded, pairs } = scratch;
    padded.clear();
    padded.extend([BEFORE; FRAME]);
    padded.extend_from_slice(tokens);
    padded.extend([AFTER; FRAME]);
    pairs.clear();
    pairs.extend(padded.windows(FRAME).map(|two| append(two[0], two[1])));
    let key = FRAME_KEY.wrapping_mul(SQUARE);
    for first in FRAME..FRAME + tokens.len() {
        let left = pairs[first - FRAME].wrapping_add(key).wrapping_mul(SQUARE);
        for end in first + 1..=(first + LONGEST_FILLING).min(FRAME + tokens.len()) {
            // Revisions differ in numbers too.
            if padded[end - 1] & NUMBER != 0 {
                break;
            }
            take(mix64(left.wrapping_add(pairs[end])), &padded[first..end]);
        }
    }
}

/// Scratch space of [`each_frame`].
#[derive(Debug, Default)]
struct Scratch {
    padded: Vec<u64>,
    pairs: Vec<u64>,
}

const SQUARE: u64 = SHINGLE_MULTIPLIER.wrapping_mul(SHINGLE_MULTIPLIER);

#[inline(always)]
fn append(sum: u64, token: u64) -> u64 {
    sum.wrapping_mul(SHINGLE_MULTIPLIER).wrapping_add(token)
}

/// Returns the filling of a slot.
#[inline]
fn filling(frame: u64, tokens: &[u64]) -> u64 {
    mix64(frame.wrapping_add(mix64(tokens.iter().copied().fold(0, append))))
}
