//! How does the Python package `simhash` tokenize a text?
//!
//! Version 2.1.2 (github.com/1e0ng/simhash) converts the text to lower case, keeps only what Python's `\w` and CJK
//! ideographs match, and takes every run of four scalars of that, or all of it if it is shorter. Python 3.11 uses
//! Unicode 14, later versions a newer one; this module uses the Unicode version of all other tables, so only scalars
//! unknown to that Python can differ.

use super::tables::{CASE_IGNORABLE, CASED, LETTERS_AND_NUMBERS, LOWERCASE};

/// Number of scalars per token.
const WIDTH: usize = 4;
const CAPITAL_SIGMA: char = '\u{3A3}';
const CAPITAL_I_WITH_DOT: char = '\u{130}';

/// Calls `take` with every token, in order; returns the number of scalars. A text without any has one empty token.
pub(crate) fn simhash_package_tokens(
    text: &str,
    scratch: &mut Vec<u8>,
    mut take: impl FnMut(&[u8]),
) -> usize {
    scratch.clear();
    let mut starts = Vec::new();
    let mut keep = |c: char| {
        if is_word(c) {
            starts.push(scratch.len());
            super::utf8::push(c as u32, scratch);
        }
    };
    for (at, c) in text.char_indices() {
        match c {
            _ if c.is_ascii() => keep(c.to_ascii_lowercase()),
            CAPITAL_I_WITH_DOT => keep('i'),
            CAPITAL_SIGMA if is_final(text, at) => keep('\u{3C2}'),
            _ => keep(lowercase(c)),
        }
    }
    let num_scalars = starts.len();
    if num_scalars < WIDTH {
        take(scratch);
        return num_scalars;
    }
    for first in 0..=num_scalars - WIDTH {
        let end = starts.get(first + WIDTH).copied().unwrap_or(scratch.len());
        take(&scratch[starts[first]..end]);
    }
    num_scalars
}

/// Whether `\w` matches: letters, numbers, and the underscore.
fn is_word(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || c == '_',
        false => is_in(&LETTERS_AND_NUMBERS, c),
    }
}

/// Whether the capital sigma at `at` ends a word: cased letters before and none after, ignoring case-ignorable ones.
fn is_final(text: &str, at: usize) -> bool {
    let behind = at + CAPITAL_SIGMA.len_utf8();
    begins_cased(text[..at].chars().rev()) && !begins_cased(text[behind..].chars())
}

/// Whether the first scalar that is not case-ignorable is cased.
fn begins_cased(mut scalars: impl Iterator<Item = char>) -> bool {
    let next = scalars.find(|&c| !is_in(&CASE_IGNORABLE, c));
    next.is_some_and(|c| is_in(&CASED, c))
}

fn lowercase(c: char) -> char {
    let c32 = c as u32;
    let place = LOWERCASE.partition_point(|&[_, last, _, _]| last < c32);
    match LOWERCASE.get(place) {
        Some(&[first, _, step, delta]) if first <= c32 && (c32 - first).is_multiple_of(step) => {
            char::from_u32(c32.wrapping_add(delta)).unwrap_or(c)
        }
        _ => c,
    }
}

fn is_in(ranges: &[[u32; 2]], c: char) -> bool {
    let place = ranges.partition_point(|&[_, last]| last < c as u32);
    ranges
        .get(place)
        .is_some_and(|&[first, _]| first <= c as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<String> {
        let (mut scratch, mut found) = (Vec::new(), Vec::new());
        simhash_package_tokens(text, &mut scratch, |token| {
            found.push(String::from_utf8(token.to_vec()).unwrap());
        });
        found
    }

    #[test]
    fn tokens_are_runs_of_four_word_characters() {
        assert_eq!(tokens("Ab, c_D!"), ["abc_", "bc_d"]);
        assert_eq!(tokens("妈妈喊你回"), ["妈妈喊你", "妈喊你回"]);
        assert_eq!(tokens("a-b"), ["ab"]);
        assert_eq!(tokens(" ?! "), [""]);
        assert_eq!(tokens(""), [""]);
        // Combining marks are not word characters, so the dot of a lowercased U+0130 is dropped.
        assert_eq!(tokens("İé́½Ⅷ"), ["ié½ⅷ"]);
    }

    #[test]
    fn a_capital_sigma_at_the_end_of_a_word_is_final() {
        assert_eq!(tokens("ΟΔΟΣ"), ["οδος"]);
        assert_eq!(tokens("ΟΔΟΣ."), ["οδος"]);
        assert_eq!(tokens("ΣΑΣ ΣΑ"), ["σας\u{3c3}", "ας\u{3c3}α"]);
        assert_eq!(tokens("1Σ"), ["1\u{3c3}"]);
        assert_eq!(tokens("Α.Σ:"), ["α\u{3c2}"]);
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "an oracle that knows other scalars does no harm"
    )]
    fn lower_case_is_that_of_the_standard_library_where_both_know_a_scalar() {
        let mut num_cased = 0;
        for c in (0..0x11_0000).filter_map(char::from_u32) {
            let mut lower = c.to_lowercase();
            if c != CAPITAL_I_WITH_DOT && lower.len() == 1 && lower.next() != Some(c) {
                assert_eq!(Some(lowercase(c)), c.to_lowercase().next());
                num_cased += 1;
            }
        }
        assert!(num_cased > 1400);
    }
}
