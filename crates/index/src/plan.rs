//! How are fingerprints in memory searched?

use std::sync::atomic::AtomicBool;

use likewise_core::error::Error;
use likewise_core::hamming::Fingerprints;
use likewise_core::hamming::index::plan_for_sample;
use likewise_core::hamming::plan::SearchPlan;
use likewise_core::hash::mix64;

use crate::keys::words_of;

/// Rows in memory that the plan is made for: about as many as there may be. For fewer the plan would save bytes at twice the time.
const NUM_PLANNED: usize = 1 << 18;
/// Fingerprints that are looked at.
const NUM_SAMPLED: usize = 10_000;
/// Fingerprints that tell what others will be like.
const MIN_SAMPLED: usize = 1 << 12;

/// The plan for fingerprints of which nothing is known: every bit a fair coin.
///
/// # Errors
/// [`Error::InvalidParameter`] where there is no plan for the radius.
pub fn plan_of_coins(bits: u32, within: u32) -> Result<SearchPlan, Error> {
    let num_words = NUM_SAMPLED as u64 * u64::from(bits.div_ceil(64));
    let unused = u64::MAX >> ((64 - bits % 64) % 64);
    let words: Vec<u64> = (0..num_words).map(|i| mix64(i) & unused).collect();
    plan(&words, bits, within)
}

/// The plan for fingerprints like these, whose bits are rarely fair coins; none where these are few.
///
/// # Errors
/// As [`plan_of_coins`].
pub fn plan_like(sketches: &[u8], bits: u32, within: u32) -> Result<Option<SearchPlan>, Error> {
    let sketch_bytes = 8 * bits.div_ceil(64) as usize;
    let num = sketches.len() / sketch_bytes;
    if num < MIN_SAMPLED {
        return Ok(None);
    }
    let sampled = sketches.chunks_exact(sketch_bytes);
    let sampled = sampled.step_by(num.div_ceil(NUM_SAMPLED));
    let words: Vec<u64> = sampled.flat_map(words_of).collect();
    plan(&words, bits, within).map(Some)
}

fn plan(words: &[u64], bits: u32, within: u32) -> Result<SearchPlan, Error> {
    let sample = Fingerprints { words, bits };
    plan_for_sample(
        sample,
        NUM_PLANNED,
        within,
        true,
        None,
        &AtomicBool::new(false),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_memory_are_found_without_flips_of_bits() {
        let coins = plan_of_coins(64, 3).unwrap();
        assert_eq!(coins.keys().len(), 4);
        let skewed: Vec<u8> = (0..20_000_u64)
            .flat_map(|i| (mix64(i) & mix64(i + 30_000)).to_le_bytes())
            .collect();
        let plan = plan_like(&skewed, 64, 3).unwrap().unwrap();
        assert_eq!((plan.keys().len(), plan.bits(), plan.within()), (4, 64, 3));
        assert_ne!(plan.keys(), coins.keys());
        assert!(plan_like(&skewed[..8_000], 64, 3).unwrap().is_none());
        for (bits, within) in [(32, 3), (96, 3), (128, 20), (256, 64)] {
            assert_eq!(plan_of_coins(bits, within).unwrap().bits(), bits);
        }
    }
}
