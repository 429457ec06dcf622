//! What is the weight of a feature that df of n documents contain?
//!
//! `idf = round(15 ln(n / df) / ln n)`, at least 1: a feature in one document weighs 15, a feature in all documents 1.
//! Fewer than [`LEAST_DOCUMENTS`] documents are weighed as if there were so many that share nothing with them.
//! With halves rounded up, idf is at least k exactly when `df^30 <= n^(31 - 2k)`. So integers decide, and the result
//! does not depend on any system's logarithm.

use std::cmp::Ordering;

use super::weights::{MAX_WEIGHT, log_count_weight};

/// n is at least this: of two documents, only the differences would count. Labeled sets preferred it to 50 and 100.
const LEAST_DOCUMENTS: u64 = 20;

/// The weights of features by the number of documents that contain them, among n documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rarity {
    /// The greatest df for each of the weights 15, 14, ... 2.
    limits: [u64; MAX_WEIGHT as usize - 1],
}

impl Rarity {
    /// Computes the weights among `num_documents` documents. Cost: some microseconds.
    pub fn new(num_documents: u64) -> Self {
        let mut limits = [1; MAX_WEIGHT as usize - 1];
        for (i, limit) in limits.iter_mut().enumerate() {
            let exponent = 2 * i as u32 + 1;
            *limit = greatest_df(num_documents.max(LEAST_DOCUMENTS), exponent);
        }
        Rarity { limits }
    }

    /// Returns the weight of a feature in `df` documents; 0 counts as 1.
    pub fn weight(&self, df: u64) -> u8 {
        MAX_WEIGHT - self.limits.iter().filter(|&&limit| df > limit).count() as u8
    }
}

/// `log count x idf`: `round(L * idf / 5)`, at least 1 and at most 15, where L is [`log_count_weight`].
#[inline(always)]
pub const fn log_count_idf_weight(count: u32, idf: u32) -> u32 {
    let product = log_count_weight(count) * idf;
    let weight = (product + LOG_COUNT_IDF_SCALE / 2) / LOG_COUNT_IDF_SCALE;
    if weight < 1 {
        1
    } else if weight > MAX_WEIGHT as u32 {
        MAX_WEIGHT as u32
    } else {
        weight
    }
}

/// Scales products of up to 15 x 15 to 1..15; other divisors from 3 to 8 were no better on labeled sets.
const LOG_COUNT_IDF_SCALE: u32 = 5;

/// Returns the greatest df with `df^30 <= n^exponent`, for n >= 1 and an exponent below 30.
fn greatest_df(n: u64, exponent: u32) -> u64 {
    let bound = power(n, exponent);
    let fits = |df: u64| compare(&power(df, 30), &bound) != Ordering::Greater;
    // Approximate: the exact comparison determines the last digits.
    let mut df = (libm::pow(n as f64, f64::from(exponent) / 30.0) as u64).clamp(1, n);
    while !fits(df) {
        df -= 1;
    }
    while df < n && fits(df + 1) {
        df += 1;
    }
    df
}

/// Returns `base^exponent` in 64-bit digits, lowest first, without leading zeros.
fn power(base: u64, exponent: u32) -> Vec<u64> {
    let mut digits = vec![1u64];
    for _ in 0..exponent {
        let mut carry = 0u128;
        for digit in &mut digits {
            carry += u128::from(*digit) * u128::from(base);
            *digit = carry as u64;
            carry >>= 64;
        }
        if carry > 0 {
            digits.push(carry as u64);
        }
    }
    digits
}

fn compare(a: &[u64], b: &[u64]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_formula() {
        for n in [20u64, 21, 23, 57, 99, 1000, 12_345, 999_983, 1 << 33] {
            let rarity = Rarity::new(n);
            let mut df = 1;
            while df <= n {
                let value = 15.0 * libm::log(n as f64 / df as f64) / libm::log(n as f64);
                let fraction = value - libm::floor(value);
                // If the value is halfway, logarithms cannot decide.
                if (fraction - 0.5).abs() > 1e-9 {
                    let expected = libm::round(value).max(1.0) as u8;
                    assert_eq!(rarity.weight(df), expected, "df {df} of {n}");
                }
                df += 1 + df / 50;
            }
        }
    }

    #[test]
    fn halves_go_up() {
        // 15 ln(n / df) / ln n = 7.5 if df is the square root of n.
        for root in [10u64, 1000, 65_536, 4_000_000_000] {
            assert_eq!(Rarity::new(root * root).weight(root), 8, "{root}");
            assert_eq!(Rarity::new(root * root).weight(root + 1), 7, "{root}");
        }
    }

    #[test]
    fn the_ends_are_fixed() {
        assert_eq!([1, 20].map(|df| Rarity::new(20).weight(df)), [15, 1]);
        assert_eq!(Rarity::new(u64::MAX).weight(u64::MAX), 1);
        assert_eq!(
            Rarity::new(1000).weight(0),
            15,
            "no document is as rare as one"
        );
    }

    #[test]
    fn few_documents_are_weighed_as_twenty() {
        for n in 0..20 {
            assert_eq!(Rarity::new(n), Rarity::new(20), "{n}");
        }
        assert_eq!(
            [1, 2, 3, 5].map(|df| Rarity::new(2).weight(df)),
            [15, 12, 9, 7]
        );
    }

    #[test]
    fn log_count_idf_stays_in_its_range() {
        let of = |count, idf| log_count_idf_weight(count, idf);
        assert_eq!([of(1, 15), of(1, 1), of(3, 15), of(2, 7)], [6, 1, 12, 4]);
        for count in 1..300 {
            for idf in 1..=15 {
                assert!((1..=15).contains(&of(count, idf)));
                assert!(of(count + 1, idf) >= of(count, idf));
            }
        }
    }
}
