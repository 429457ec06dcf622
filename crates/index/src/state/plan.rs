//! How are fingerprints in memory searched?

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use likewise_core::error::Error;
use likewise_core::hash::mix64;
use likewise_core::parallel::lock;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::plan_for_sample;
use likewise_hamming::plan::SearchPlan;

use crate::keys::words_of;

/// Rows in memory that the plan is made for: about the maximum. A plan for fewer saves bytes but takes twice the time.
const NUM_PLANNED: usize = 1 << 18;
const NUM_SAMPLED: usize = 10_000;
/// Fingerprints that tell what others will be like.
const MIN_SAMPLED: usize = 1 << 12;

/// The plan for unknown fingerprints: every bit is a fair coin. Takes some milliseconds, once in a process.
pub fn plan_of_coins(bits: u32, within: u32) -> Result<SearchPlan, Error> {
    /// Plans by bits and radius.
    static MADE: Mutex<BTreeMap<(u32, u32), SearchPlan>> = Mutex::new(BTreeMap::new());
    if let Some(plan) = lock(&MADE).get(&(bits, within)) {
        return Ok(plan.clone());
    }
    let num_words = u64::from(bits.div_ceil(64));
    // Only these bits of the last word of each count.
    let last = u64::MAX >> (64 * num_words - u64::from(bits));
    let words: Vec<u64> = (0..NUM_SAMPLED as u64 * num_words)
        .map(|i| match (i + 1) % num_words {
            0 => mix64(i) & last,
            _ => mix64(i),
        })
        .collect();
    let plan = plan(&words, bits, within)?;
    lock(&MADE).insert((bits, within), plan.clone());
    Ok(plan)
}

/// A sample of these fingerprints, to choose a plan from; none if they are few.
pub fn sample(sketches: &[u8], bits: u32) -> Option<Vec<u64>> {
    let sketch_bytes = 8 * bits.div_ceil(64) as usize;
    let num = sketches.len() / sketch_bytes;
    if num < MIN_SAMPLED {
        return None;
    }
    let sampled = sketches.chunks_exact(sketch_bytes);
    let sampled = sampled.step_by(num.div_ceil(NUM_SAMPLED));
    Some(sampled.flat_map(words_of).collect())
}

/// The plan for fingerprints like these, whose bits are rarely fair coins.
pub fn plan_like(sampled: &[u64], bits: u32, within: u32) -> Result<SearchPlan, Error> {
    plan(sampled, bits, within)
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
        let plan = plan_like(&sample(&skewed, 64).unwrap(), 64, 3).unwrap();
        assert_eq!((plan.bits, plan.within), (64, 3));
        assert!(plan.keys() != coins.keys());
        assert!(sample(&skewed[..8_000], 64).is_none());
        for (bits, within) in [(32, 3), (96, 3), (128, 20), (256, 64)] {
            assert_eq!(plan_of_coins(bits, within).unwrap().bits, bits);
        }
    }
}
