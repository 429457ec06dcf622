//! Which stretches of words occur earlier?
//!
//! A window of N words is repeated if the first equal one is in an earlier document, or in the same document without
//! overlapping it. Windows are identified by 64-bit hashes; before a stretch is removed, its words are compared (see
//! [`PlacedWords`]). Winnowing only saves work: a window whose least inner hash occurs once repeats nothing (Schleimer,
//! Wilkerson and Aiken, SIGMOD 2003, section 3).
//!
//! Whether a word is removed does not depend on what else is removed: it is removed if a window that contains it equals
//! an earlier window that does not overlap it. Removing the first match and searching the rest, as suffix arrays
//! suggest, would make the answer depend on the order of removal. Hashes only propose; everything removed was compared
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

/// A hash and a place, or two places: the stored form of a window.
pub type Pair = [u64; 2];
