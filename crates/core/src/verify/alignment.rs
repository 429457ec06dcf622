//! What have two sequences in common, counted exactly?

use std::sync::atomic::{AtomicBool, Ordering};

use rapidfuzz::distance::{lcs_seq, levenshtein};

use crate::error::Error;

/// What two sequences have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Insertions, deletions and substitutions that turn one into the other (Levenshtein); where not exact, an upper bound.
    pub distance: usize,
    /// Length of their longest common subsequence; where not exact, a lower bound.
    pub common: usize,
    /// Whether both are the true ones.
    pub is_exact: bool,
}

pub(super) fn num_cells(a: &[u32], b: &[u32]) -> u64 {
    a.len() as u64 * b.len() as u64
}

pub(super) fn aligned(a: &[u32], b: &[u32], cancel: &AtomicBool) -> Result<Alignment, Error> {
    let check = || match cancel.load(Ordering::Relaxed) {
        true => Err(Error::Canceled),
        false => Ok(()),
    };
    check()?;
    let distance = levenshtein::distance(a.iter().copied(), b.iter().copied());
    check()?;
    Ok(Alignment {
        distance,
        common: lcs_seq::similarity(a.iter().copied(), b.iter().copied()),
        is_exact: true,
    })
}
