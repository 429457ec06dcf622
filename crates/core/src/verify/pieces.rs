//! How similar are two sequences that are too long to align as a whole?
//!
//! Beyond 10^10 cells, pieces between unique lines give bounds on both values, so that the time depends only on the
//! sizes.

use std::sync::atomic::AtomicBool;

use crate::error::Error;

use super::alignment::{Alignment, aligned, num_cells};

/// Returns bounds on both values, from pieces in the same order and about `max_cells` cells; symbols must be dense.
pub(super) fn aligned_in_pieces(
    a: &[u32],
    b: &[u32],
    max_cells: u64,
    cancel: &AtomicBool,
) -> Result<Alignment, Error> {
    let mut total = Alignment {
        distance: 0,
        common: 0,
        is_exact: false,
    };
    let num_symbols = (a.len() + b.len()) as u64;
    let (mut i, mut j) = (0, 0);
    for (next_i, next_j) in anchors(a, b).into_iter().chain([(a.len(), b.len())]) {
        let (left, right) = (&a[i..next_i], &b[j..next_j]);
        let share = u128::from(max_cells) * (left.len() + right.len()) as u128;
        let cells = u128::from(num_cells(left, right)) * u128::from(num_symbols);
        let num_blocks =
            (cells.div_ceil(share.max(1)) as usize).clamp(1, left.len().max(right.len()).max(1));
        for block in 0..num_blocks {
            let part = |side: &[u32]| {
                let end = |k: usize| (side.len() as u128 * k as u128 / num_blocks as u128) as usize;
                end(block)..end(block + 1)
            };
            let found = aligned(&left[part(left)], &right[part(right)], cancel)?;
            total.distance += found.distance;
            total.common += found.common;
        }
        // The anchor itself begins the next piece.
        (i, j) = (next_i, next_j);
    }
    // Substituting everything, and inserting the rest, is never more.
    total.distance = total.distance.min(a.len().max(b.len()));
    Ok(total)
}

/// Returns the symbols that occur once in each sequence and are in the same order, by patience sorting.
fn anchors(a: &[u32], b: &[u32]) -> Vec<(usize, usize)> {
    const NONE: u32 = u32::MAX;
    const MANY: u32 = u32::MAX - 1;
    let num_symbols = a
        .iter()
        .chain(b)
        .max()
        .map_or(0, |&symbol| symbol as usize + 1);
    let places = |side: &[u32]| {
        let mut place = vec![NONE; num_symbols];
        for (i, &symbol) in side.iter().enumerate() {
            let known = &mut place[symbol as usize];
            *known = if *known == NONE { i as u32 } else { MANY };
        }
        place
    };
    let (in_a, in_b) = (places(a), places(b));
    let once: Vec<(u32, u32)> = a
        .iter()
        .enumerate()
        .filter(|&(_, &symbol)| in_a[symbol as usize] < MANY && in_b[symbol as usize] < MANY)
        .map(|(i, &symbol)| (i as u32, in_b[symbol as usize]))
        .collect();
    // For each length of a run, the one that ends lowest, and the predecessor of each in its run.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![usize::MAX; once.len()];
    for (k, &(_, place)) in once.iter().enumerate() {
        let length = ends.partition_point(|&end| once[end].1 < place);
        if length > 0 {
            before[k] = ends[length - 1];
        }
        if length == ends.len() {
            ends.push(k);
        } else {
            ends[length] = k;
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut k = ends.last().copied().unwrap_or(usize::MAX);
    while k != usize::MAX {
        run.push((once[k].0 as usize, once[k].1 as usize));
        k = before[k];
    }
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::super::sequences::renumbered;
    use super::super::sequences::tests::by_tables;
    use super::*;

    #[test]
    fn pieces_bound_both_from_the_safe_side() {
        let mut state = 5u64;
        let mut next = |end: u64| {
            state = state.wrapping_add(crate::hash::GOLDEN);
            crate::hash::mix64(state) % end
        };
        for round in 0..300 {
            let num_kinds = [2, 9, 60, 1000][round % 4];
            let mut a: Vec<u32> = (0..next(120)).map(|_| next(num_kinds) as u32).collect();
            let b: Vec<u32> = if round % 3 == 0 {
                (0..next(120)).map(|_| next(num_kinds) as u32).collect()
            } else {
                a.iter().copied().filter(|_| next(9) > 0).collect()
            };
            if round % 5 == 0 {
                let third = a.len() / 3;
                a.rotate_left(third);
            }
            let (distance, common) = by_tables(&a, &b);
            for max_cells in [1, 200, 100_000] {
                let (c, d) = &renumbered(&a, &b);
                let found = aligned_in_pieces(c, d, max_cells, &AtomicBool::new(false)).unwrap();
                assert!(
                    found.distance >= distance && found.common <= common,
                    "{round}"
                );
                assert!(found.distance <= a.len().max(b.len()));
                assert!(!found.is_exact);
            }
            let places = anchors(&a, &b);
            assert!(
                places
                    .windows(2)
                    .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1)
            );
            assert!(places.iter().all(|&(i, j)| a[i] == b[j]));
        }
    }

    #[test]
    fn anchors_are_the_longest_run() {
        assert_eq!(
            anchors(&[1, 2, 3, 4, 5], &[4, 1, 5, 2, 3]),
            [(0, 1), (1, 3), (2, 4)]
        );
        assert_eq!(anchors(&[1, 1, 2], &[1, 2, 2]), []);
        assert_eq!(anchors(&[], &[]), []);
    }
}
