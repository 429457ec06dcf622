//! What do two sequences have in common, counted exactly?

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use imara_diff::{Algorithm, Diff, InternedInput};
use rapidfuzz::distance::{lcs_seq, levenshtein};

use crate::error::Error;
use crate::parallel::Cancel;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Insertions, deletions and substitutions (Levenshtein); an upper bound if not exact.
    pub distance: usize,
    /// Length of their longest common subsequence; a lower bound if not exact.
    pub common: usize,
    /// Whether both values are exact.
    pub is_exact: bool,
}

pub(super) fn num_cells(a: &[u32], b: &[u32]) -> u64 {
    a.len() as u64 * b.len() as u64
}

pub(super) fn aligned(a: &[u32], b: &[u32], cancel: &AtomicBool) -> Result<Alignment, Error> {
    cancel.check()?;
    let distance = levenshtein::distance(a.iter().copied(), b.iter().copied());
    cancel.check()?;
    Ok(Alignment {
        distance,
        common: lcs_seq::similarity(a.iter().copied(), b.iter().copied()),
        is_exact: true,
    })
}

/// A place where two token sequences differ: `a` was replaced by `b`; either may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub a: Range<u32>,
    pub b: Range<u32>,
}

/// Returns the places where two token sequences differ, by the histogram algorithm, which aligns rare tokens first, as
/// people do. Takes 0.04 to 0.5 s for two texts of 1 MB.
pub fn aligned_diff(a: &[&str], b: &[&str]) -> Vec<Hunk> {
    let mut input = InternedInput::default();
    input.update_before(a.iter().copied());
    input.update_after(b.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_no_heuristic(&input);
    diff.hunks()
        .map(|hunk| Hunk {
            a: hunk.before,
            b: hunk.after,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        text.split(' ').collect()
    }

    #[test]
    fn hunks_name_the_differing_tokens_only() {
        let a = words("the quick brown fox jumps over the dog");
        let b = words("the quick red fox jumps over the lazy dog today");
        assert_eq!(
            aligned_diff(&a, &b),
            [
                Hunk { a: 2..3, b: 2..3 },
                Hunk { a: 7..7, b: 7..8 },
                Hunk { a: 8..8, b: 9..10 },
            ]
        );
        assert!(aligned_diff(&a, &a).is_empty());
        assert!(aligned_diff(&[], &[]).is_empty());
        assert_eq!(aligned_diff(&[], &b), [Hunk { a: 0..0, b: 0..10 }]);
    }

    #[test]
    fn what_lies_between_hunks_is_equal() {
        let mut state = 7u64;
        let mut token = |num_kinds: u64| {
            state = crate::hash::mix64(state.wrapping_add(crate::hash::GOLDEN));
            ["a", "b", "c", "d", "e", "f", "g"][(state % num_kinds) as usize]
        };
        for round in 0..200 {
            let a: Vec<&str> = (0..round % 37).map(|_| token(2 + round % 6)).collect();
            let b: Vec<&str> = (0..round % 23).map(|_| token(2 + round % 6)).collect();
            let (mut i, mut j) = (0, 0);
            for hunk in aligned_diff(&a, &b) {
                assert_eq!(a[i..hunk.a.start as usize], b[j..hunk.b.start as usize]);
                assert!(!hunk.a.is_empty() || !hunk.b.is_empty());
                (i, j) = (hunk.a.end as usize, hunk.b.end as usize);
            }
            assert_eq!(a[i..], b[j..]);
        }
    }
}
