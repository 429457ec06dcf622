//! Which blocks are searched with which radius, and when is a scan cheaper?
//!
//! Generalized pigeonhole principle: if the radii of the used blocks satisfy `sum of (radius + 1) > within`, then two
//! codes at distance `within` or less differ in some used block by at most its radius; otherwise the blocks alone would
//! contain `sum of (radius + 1)` differing bits. On uniform codes the best split is the even one (`within = m*r + a`:
//! `a + 1` of `m` blocks at radius r, the others at r - 1). Real fingerprints are skewed, so the split depends on the
//! actual contents of the blocks: one in which all codes agree is useless.

use crate::{BLOCK_BITS, NUM_BLOCK_VALUES};

const NUM_WEIGHTS: usize = BLOCK_BITS as usize + 1;

/// Nanoseconds for comparing a word of a code in a bucket.
const CANDIDATE_NS: f64 = 0.2;
/// Nanoseconds for adding a code to a table.
const BUILD_NS: f64 = 10.0;
/// Nanoseconds for comparing a word of a pair in a scan.
const SCAN_NS: f64 = 0.08;

/// Returns the nanoseconds for looking up a bucket: a cache miss once the tables outgrow the caches.
fn probe_ns(num_codes: usize) -> f64 {
    match num_codes {
        ..200_000 => 7.0,
        200_000..3_000_000 => 25.0,
        _ => 60.0,
    }
}

/// Estimates the nanoseconds on one core for finding all pairs by a scan.
pub(crate) fn scan_cost(num_codes: usize, num_words: usize) -> f64 {
    let n = num_codes as f64;
    n * n / 2.0 * SCAN_NS * num_words as f64
}

/// The radius of each used block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BlockPlan {
    /// (block, radius) of the used blocks, in order of block.
    pub(crate) radii: Vec<(u32, u32)>,
    /// Estimated nanoseconds on one core for finding all pairs.
    pub(crate) cost: f64,
}

/// Returns the cheapest complete plan for codes with these histograms of block values.
///
/// # Cost
/// About half a millisecond per block.
pub(crate) fn plan_blocks(
    histograms: &[Vec<u32>],
    num_codes: usize,
    num_words: usize,
    within: u32,
) -> BlockPlan {
    let needed = within as usize + 1;
    // cheapest[u]: least cost of the blocks so far whose (radius + 1) sum to u or more, and their shares.
    let mut cheapest: Vec<(f64, Vec<u32>)> = vec![(f64::INFINITY, Vec::new()); needed + 1];
    cheapest[0].0 = 0.0;
    for histogram in histograms {
        let costs = block_costs(histogram, num_codes, num_words);
        let mut next = vec![(f64::INFINITY, Vec::new()); needed + 1];
        for (covered, (cost, shares)) in cheapest.iter().enumerate() {
            if cost.is_infinite() {
                continue;
            }
            // A share of 0 omits the block; a share of s searches it within radius s - 1.
            for share in 0..=NUM_WEIGHTS {
                let cost = cost + if share == 0 { 0.0 } else { costs[share - 1] };
                let target = (covered + share).min(needed);
                if cost < next[target].0 {
                    let mut shares = shares.clone();
                    shares.push(share as u32);
                    next[target] = (cost, shares);
                }
                if target == needed {
                    break;
                }
            }
        }
        cheapest = next;
    }
    let (cost, shares) = cheapest.swap_remove(needed);
    BlockPlan {
        radii: (0..)
            .zip(shares)
            .filter(|&(_, share)| share > 0)
            .map(|(block, share)| (block, share - 1))
            .collect(),
        cost,
    }
}

/// Estimates the nanoseconds for searching one block within radius 0, 1, ..., 16.
fn block_costs(histogram: &[u32], num_codes: usize, num_words: usize) -> [f64; NUM_WEIGHTS] {
    let n = num_codes as f64;
    let pairs = pairs_by_weight(histogram);
    let mut cost = n * BUILD_NS;
    let mut num_masks = 1.0;
    std::array::from_fn(|radius| {
        // In its own bucket, a code is compared only with earlier ones.
        let candidates = pairs[radius] * if radius == 0 { 0.5 } else { 1.0 };
        cost += num_masks * n * probe_ns(num_codes) + candidates * CANDIDATE_NS * num_words as f64;
        num_masks *= (BLOCK_BITS as usize - radius) as f64 / (radius + 1) as f64;
        cost
    })
}

/// Returns the number of ordered pairs of codes whose blocks differ in 0, 1, ..., 16 bits.
///
/// By the MacWilliams identity, the distance distribution is the Krawtchouk transform of the squared Walsh-Hadamard
/// spectrum summed by weight: a million additions instead of four billion lookups.
fn pairs_by_weight(histogram: &[u32]) -> [f64; NUM_WEIGHTS] {
    let mut spectrum: Vec<f64> = histogram.iter().map(|&count| f64::from(count)).collect();
    let mut half = 1;
    while half < NUM_BLOCK_VALUES {
        for chunk in spectrum.chunks_exact_mut(2 * half) {
            let (low, high) = chunk.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    let mut energy = [0.0; NUM_WEIGHTS];
    for (index, value) in spectrum.iter().enumerate() {
        energy[index.count_ones() as usize] += value * value;
    }
    std::array::from_fn(|weight| {
        let sum: f64 = (0..NUM_WEIGHTS)
            .map(|j| energy[j] * krawtchouk(weight, j))
            .sum();
        (sum / NUM_BLOCK_VALUES as f64).max(0.0)
    })
}

/// Returns the coefficient of `z^weight` in `(1 - z)^x * (1 + z)^(16 - x)`.
fn krawtchouk(weight: usize, x: usize) -> f64 {
    let mut coefficients = [0_i64; NUM_WEIGHTS];
    coefficients[0] = 1;
    for factor in 0..NUM_WEIGHTS - 1 {
        let sign = if factor < x { -1 } else { 1 };
        for degree in (1..NUM_WEIGHTS).rev() {
            coefficients[degree] += sign * coefficients[degree - 1];
        }
    }
    coefficients[weight] as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use likewise_core::hash::mix64;

    fn histogram(values: impl Iterator<Item = u64>) -> Vec<u32> {
        let mut counts = vec![0; NUM_BLOCK_VALUES];
        for value in values {
            counts[value as usize % NUM_BLOCK_VALUES] += 1;
        }
        counts
    }

    #[test]
    fn pairs_are_counted_by_weight() {
        let values: Vec<u64> = (0..300)
            .map(|i| mix64(i) & if i % 2 == 0 { 0x000f } else { 0xffff })
            .collect();
        let mut expected = [0.0; NUM_WEIGHTS];
        for a in &values {
            for b in &values {
                expected[((a ^ b) as u16).count_ones() as usize] += 1.0;
            }
        }
        let found = pairs_by_weight(&histogram(values.iter().copied()));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn plans_are_complete_and_even_on_uniform_codes() {
        let n = 100_000;
        let uniform: Vec<Vec<u32>> = (0..4)
            .map(|block| histogram((0..n).map(|i| mix64(i * 4 + block))))
            .collect();
        for within in 0..=64 {
            let plan = plan_blocks(&uniform, n as usize, 1, within);
            let sum: u32 = plan.radii.iter().map(|(_, radius)| radius + 1).sum();
            assert!(sum > within, "{within}: {plan:?}");
        }
        for (within, mut expected) in [
            (3, vec![0, 0, 0, 0]),
            (4, vec![0, 0, 0, 1]),
            (10, vec![1, 2, 2, 2]),
        ] {
            let plan = plan_blocks(&uniform, n as usize, 1, within);
            let mut radii: Vec<u32> = plan.radii.iter().map(|(_, radius)| *radius).collect();
            radii.sort();
            expected.sort();
            assert_eq!(radii, expected, "{within}");
        }
    }

    #[test]
    fn a_block_on_which_all_agree_is_left_out() {
        let n = 1_000_000;
        let blocks: Vec<Vec<u32>> = (0..4)
            .map(|block| {
                histogram((0..n).map(|i| if block < 2 { 7 } else { mix64(i * 4 + block) }))
            })
            .collect();
        let plan = plan_blocks(&blocks, n as usize, 1, 3);
        assert_eq!(plan.radii, [(2, 1), (3, 1)]);
        assert!(plan.cost < scan_cost(n as usize, 1) / 10.0);
    }
}
