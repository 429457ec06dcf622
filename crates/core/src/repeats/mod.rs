//! Which stretches of words stand elsewhere before?
//!
//! A window of N words is repeated if the first equal one is of an earlier document, or of the same one and does not overlap it. Windows
//! are told apart by a hash of 64 bits; who takes a stretch out compares its words (see [`PlacedWords`]). Winnowing spares work only:
//! a window whose least inner hash was met once repeats nothing (Schleimer, Wilkerson and Aiken, SIGMOD 2003, section 3).
//!
//! Whether a word is removed does not depend on what else is removed: it is removed if a window that contains it equals
//! an earlier window that does not overlap it. Removing the first match and searching the rest, as suffix arrays
//! suggest, would make the answer depend on the order of removal. Hashes only propose; what is removed was compared
//! word by word.

mod equal;
mod firsts;
mod marks;
mod placed;
mod seen;
mod stretches;

#[cfg(test)]
mod tests;

pub use equal::{Repeat, WordStretch};
pub use firsts::FirstPlaces;
pub use placed::PlacedWords;
pub use seen::{SeenTwice, WindowReader};
pub use stretches::{FewStretches, Stretches, repeated_stretches};

/// A hash and a place, or two places: what is put aside of a window.
pub type Pair = [u64; 2];
