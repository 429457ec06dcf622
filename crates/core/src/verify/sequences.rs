//! How many edits separate two texts, and how much do they have in common in the same order?
//!
//! All limits depend only on sizes: a pair's unit, and whether its answer is exact, follow from the two texts, never
//! from a clock.
//!
//! Edit distance comes from the `rapidfuzz` crate (MIT, no dependencies). The Python wheel of the same author would be
//! a fifth required package and holds the interpreter lock. The crate was last released in 2023, but the two functions
//! used here are pure and are tested against the recurrences.

use std::sync::atomic::AtomicBool;

use imara_diff::{InternedInput, Token};

use crate::error::Error;
use crate::text::{Tokens, normalize, tokens};

use super::alignment::{Alignment, aligned, num_cells};
use super::pieces::aligned_in_pieces;

/// Maximum size in bytes of normalized texts that are compared character by character.
pub const MAX_CHARACTER_BYTES: usize = 65_536;

/// Maximum size in bytes of normalized texts that are compared token by token; longer ones are compared line by line.
pub const MAX_TOKEN_BYTES: usize = 200_000;

/// Greatest product of lengths that is compared exactly: 100,000 tokens per side.
pub const MAX_EXACT_CELLS: u64 = 10_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Scalars of the normalized text.
    Character,
    /// Tokens of [`Tokens::Auto`].
    Token,
    /// Normalized lines, without empty ones.
    Line,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Character => "character",
            Unit::Token => "token",
            Unit::Line => "line",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextAlignment {
    pub unit: Unit,
    pub lengths: (usize, usize),
    pub alignment: Alignment,
}

/// Returns the edit distance and the longest common subsequence, bit-parallel (Myers 1999; Hyyro 2003, 2004) up to
/// [`MAX_EXACT_CELLS`]. Beyond, only bounds: sequences are cut at symbols that occur once in each, and pieces too large
/// for their share of the cells at the same fractions of both. Takes at most 6 s, plus linear time.
pub fn align_sequences(a: &[u32], b: &[u32], cancel: &AtomicBool) -> Result<Alignment, Error> {
    let num_first = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[num_first..], &b[num_first..]);
    let backwards = a.iter().rev().zip(b.iter().rev());
    let num_last = backwards.take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - num_last], &b[..b.len() - num_last]);
    let (a, b) = &renumbered(a, b);
    let found = if num_cells(a, b) <= MAX_EXACT_CELLS {
        aligned(a, b, cancel)?
    } else {
        aligned_in_pieces(a, b, MAX_EXACT_CELLS, cancel)?
    };
    Ok(Alignment {
        common: num_first + num_last + found.common,
        ..found
    })
}

/// Symbols that occur only in the first sequence, and only in the second: they match nothing.
const ONLY: [u32; 2] = [0, 1];

/// Renumbers symbols, frequent ones first: the library looks up those below 256 without hashing.
pub(super) fn renumbered(a: &[u32], b: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut input = InternedInput::default();
    input.update_before(a.iter().copied());
    input.update_after(b.iter().copied());
    let mut counts = vec![[0u32; 2]; input.interner.num_tokens() as usize];
    for (side, tokens) in [&input.before, &input.after].into_iter().enumerate() {
        for token in tokens {
            counts[token.0 as usize][side] += 1;
        }
    }
    let mut rank: Vec<u32> = counts
        .iter()
        .map(|of| ONLY[usize::from(of[0] == 0)])
        .collect();
    let mut shared: Vec<u32> = (0..counts.len() as u32).collect();
    shared.retain(|&symbol| !counts[symbol as usize].contains(&0));
    shared.sort_unstable_by_key(|&symbol| {
        let [in_a, in_b] = counts[symbol as usize].map(u64::from);
        (u64::MAX - in_a - in_b, symbol)
    });
    for (place, symbol) in shared.into_iter().enumerate() {
        rank[symbol as usize] = (ONLY.len() + place) as u32;
    }
    let numbers = |tokens: &[Token]| tokens.iter().map(|token| rank[token.0 as usize]).collect();
    (numbers(&input.before), numbers(&input.after))
}

/// Returns the edit distance and the longest common subsequence in the finest unit that the longer normalized text
/// allows; a text without tokens is one.
pub fn align_texts(a: &str, b: &str, cancel: &AtomicBool) -> Result<TextAlignment, Error> {
    let (left, right) = (normalized(a), normalized(b));
    let num_bytes = left.len().max(right.len());
    let (unit, ours, theirs) = if num_bytes <= MAX_CHARACTER_BYTES {
        let scalars = |text: &str| text.chars().map(u32::from).collect();
        (Unit::Character, scalars(&left), scalars(&right))
    } else if num_bytes <= MAX_TOKEN_BYTES {
        let (ours, theirs) = interned(tokens_of(a, left), tokens_of(b, right));
        (Unit::Token, ours, theirs)
    } else {
        drop((left, right));
        let (ours, theirs) = interned(lines_of(a), lines_of(b));
        (Unit::Line, ours, theirs)
    };
    Ok(TextAlignment {
        unit,
        lengths: (ours.len(), theirs.len()),
        alignment: align_sequences(&ours, &theirs, cancel)?,
    })
}

fn normalized(text: &str) -> String {
    let mut bytes = Vec::new();
    normalize(text, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn tokens_of(text: &str, normalized: String) -> impl Iterator<Item = String> {
    let mut found = tokens(text, Tokens::Auto);
    if found.is_empty() && !normalized.is_empty() {
        found.push(normalized);
    }
    found.into_iter()
}

fn lines_of(text: &str) -> impl Iterator<Item = String> {
    let lines = text.split(['\n', '\r']).map(normalized);
    lines.filter(|line| !line.is_empty())
}

/// Numbers strings, with equal numbers for equal strings, of which only one is stored.
fn interned(
    a: impl Iterator<Item = String>,
    b: impl Iterator<Item = String>,
) -> (Vec<u32>, Vec<u32>) {
    let mut input = InternedInput::default();
    input.update_before(a);
    input.update_after(b);
    let numbers = |tokens: &[Token]| tokens.iter().map(|token| token.0).collect();
    (numbers(&input.before), numbers(&input.after))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn of_sequences(a: &[u32], b: &[u32]) -> Alignment {
        align_sequences(a, b, &AtomicBool::new(false)).unwrap()
    }

    fn of_texts(a: &str, b: &str) -> TextAlignment {
        align_texts(a, b, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn a_cancelled_call_says_so() {
        let found = align_texts("one", "other", &AtomicBool::new(true));
        assert!(matches!(found, Err(Error::Canceled)));
    }

    /// Computes both by the recurrences of the definitions.
    pub(in crate::verify) fn by_tables(a: &[u32], b: &[u32]) -> (usize, usize) {
        let mut edits: Vec<usize> = (0..=b.len()).collect();
        let mut common = vec![0; b.len() + 1];
        for (i, x) in a.iter().enumerate() {
            let (mut edit_above, mut common_above) = (i, 0);
            edits[0] = i + 1;
            for (j, y) in b.iter().enumerate() {
                let substituted = edit_above + usize::from(x != y);
                edit_above = edits[j + 1];
                edits[j + 1] = substituted.min(edits[j] + 1).min(edit_above + 1);
                let extended = common_above + usize::from(x == y);
                common_above = common[j + 1];
                common[j + 1] = extended.max(common[j]).max(common_above);
            }
        }
        (edits[b.len()], common[b.len()])
    }

    #[test]
    fn the_library_agrees_with_the_recurrences() {
        let mut state = 11u64;
        let mut next = |end: u64| {
            state = state.wrapping_add(crate::hash::GOLDEN);
            crate::hash::mix64(state) % end
        };
        for round in 0..400 {
            // Lengths around and above the 64 cells of a step, alphabets below and above 256.
            let (num_a, num_b) = (next(200) as usize, next(200) as usize);
            let num_kinds = [2, 4, 30, 300, 70_000][round % 5];
            let mut a: Vec<u32> = (0..num_a).map(|_| next(num_kinds) as u32).collect();
            let mut b: Vec<u32> = (0..num_b).map(|_| next(num_kinds) as u32).collect();
            if round % 3 == 0 {
                b.clone_from(&a);
                for _ in 0..next(8) {
                    let place = next(b.len() as u64 + 1) as usize;
                    b.insert(place, next(num_kinds) as u32);
                }
            }
            if round % 2 == 0 {
                std::mem::swap(&mut a, &mut b);
            }
            let found = of_sequences(&a, &b);
            assert_eq!((found.distance, found.common), by_tables(&a, &b), "{round}");
            assert!(found.is_exact);
        }
    }

    #[test]
    fn long_sequences_are_cut_at_what_is_unique() {
        // 101,000 each, of which every 500th differs, and 7 more at the start.
        let a: Vec<u32> = (0..101_000).collect();
        let changed = (0..101_000u32).map(|i| if i % 500 == 250 { 500_000 + i } else { i });
        let b: Vec<u32> = (600_000..600_007).chain(changed).collect();
        let found = of_sequences(&a, &b);
        let num_changed = 101_000 / 500;
        assert!(!found.is_exact);
        assert_eq!(
            (found.distance, found.common),
            (num_changed + 7, 101_000 - num_changed)
        );
        // A common prefix and suffix do not count towards the size.
        let mut c = a.clone();
        c[50_000] = 7;
        assert_eq!(
            of_sequences(&a, &c),
            Alignment {
                distance: 1,
                common: 100_999,
                is_exact: true
            }
        );
    }

    #[test]
    fn the_unit_follows_from_size() {
        for (num_bytes, unit) in [
            (MAX_CHARACTER_BYTES, Unit::Character),
            (MAX_CHARACTER_BYTES + 1, Unit::Token),
            (MAX_TOKEN_BYTES, Unit::Token),
            (MAX_TOKEN_BYTES + 1, Unit::Line),
        ] {
            let text = "x".repeat(num_bytes);
            let found = of_texts("Y  ", &text);
            assert_eq!(found.unit, unit);
            assert_eq!(found.lengths.0, 1);
        }
    }

    #[test]
    fn texts_are_normalized_and_lines_are_kept() {
        let found = of_texts("Kitten", "SITTING ");
        assert_eq!(found.lengths, (6, 7));
        assert_eq!((found.alignment.distance, found.alignment.common), (3, 4));
        let line = format!("{}\r\n\n", "Ab ".repeat(400));
        let (a, b) = (
            line.repeat(200),
            format!("{}other\nlines", line.repeat(200)),
        );
        let found = of_texts(&a, &b);
        assert_eq!((found.unit, found.lengths), (Unit::Line, (200, 202)));
        assert_eq!((found.alignment.distance, found.alignment.common), (2, 200));
        assert_eq!(of_texts("", " ").lengths, (0, 0));
        let (dots, stars) = (".".repeat(70_000), "*".repeat(70_000));
        assert_eq!(of_texts(&dots, &stars).alignment.common, 0);
        assert_eq!(of_texts(&dots, &dots).alignment.common, 1);
    }
}
