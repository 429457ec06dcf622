//! Which pairs agree in some band of sampled bits?
//!
//! Used if the radius is so wide that no exact plan pays. A band is a set of bit positions drawn at random (bit
//! sampling: Indyk, Motwani, Approximate nearest neighbors, STOC 1998), and pairs that agree in all bits of a band are
//! compared. The positions depend only on the seed, so P(found) is the same for all pairs at the same distance,
//! whatever the fingerprints are. Bands come in partitions: a random permutation of the positions is cut into disjoint
//! bands, which find more pairs than as many independent ones.
//!
//! A recipe fixes the number and the width of its bands, so the pairs that a run compares are a function of the recipe.
//! `hamming_pairs` states no recall in advance and chooses its bands by cost.

mod compare;
mod levels;
mod pairs;
mod recall;
mod sorted;
#[cfg(test)]
mod tests;

use likewise_core::hash::{GOLDEN, mix64};

pub use levels::BitBandBuckets;
pub use pairs::{BitBandPairs, bit_band_pairs};
pub use recall::{BitBandPlan, bit_band_recall, plan_bit_bands};

/// Maximum number of bits per band.
pub const MAX_ROWS: u32 = 24;

/// Bands of bit positions.
#[derive(Debug, Clone)]
pub struct BitBands {
    bits: u32,
    rows: u32,
    /// The positions of each partition, in random order.
    orders: Vec<Vec<u32>>,
    num_bands: u32,
}

/// Number of bands per partition of the positions.
fn bands_a_partition(bits: u32, rows: u32) -> u32 {
    bits / rows
}

impl BitBands {
    /// Creates the first `num_bands` bands of `rows` positions that are determined by the seed.
    ///
    /// Band `i` takes positions `(i mod p) * rows` and up of permutation `i div p`, where `p = bits div rows`.
    /// Permutation `t` is the Fisher-Yates shuffle: for `j = bits - 1, ..., 1`, places `j` and
    /// `floor(x * (j + 1) / 2^64)` are exchanged, where `x = mix(k + j * 0x9E3779B97F4A7C15)` and
    /// `k = mix((t + 1) * 0x9E3779B97F4A7C15 ^ seed)`.
    pub fn new(bits: u32, rows: u32, num_bands: u32, seed: u64) -> Self {
        let num_orders = num_bands.div_ceil(bands_a_partition(bits, rows));
        let orders = (0..u64::from(num_orders))
            .map(|partition| shuffled(bits, mix64((partition + 1).wrapping_mul(GOLDEN) ^ seed)))
            .collect();
        BitBands {
            bits,
            rows,
            orders,
            num_bands,
        }
    }

    /// Number of bands.
    pub fn len(&self) -> usize {
        self.num_bands as usize
    }

    /// Whether there are no bands.
    pub fn is_empty(&self) -> bool {
        self.num_bands == 0
    }

    /// Returns the positions of band `band` at `level`, as a mask: `min(bits, rows * 2^level)` positions, taken
    /// cyclically from the permutation.
    pub fn mask(&self, band: usize, level: u32) -> [u64; 4] {
        let a_partition = bands_a_partition(self.bits, self.rows) as usize;
        let order = &self.orders[band / a_partition];
        let start = band % a_partition * self.rows as usize;
        let length = ((self.rows as usize) << level).min(order.len());
        let mut mask = [0; 4];
        for &bit in order.iter().cycle().skip(start).take(length) {
            mask[bit as usize / 64] |= 1 << (bit % 64);
        }
        mask
    }
}

fn shuffled(bits: u32, key: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..bits).collect();
    for last in (1..u64::from(bits)).rev() {
        let random = mix64(key.wrapping_add(last.wrapping_mul(GOLDEN)));
        let chosen = (u128::from(random) * u128::from(last + 1)) >> 64;
        order.swap(last as usize, chosen as usize);
    }
    order
}
