//! Which plan suits the fingerprints at hand?

use super::super::distance::Fingerprints;
use super::super::plan::{
    Collection, Costs, Division, SearchPlan, SurveyRequest, bit_frequencies, choose_plan,
};
use crate::error::Error;

/// Fingerprints looked at to see whether their bits are skewed.
const SAMPLE: usize = 10_000;
/// A share of ones this far from a half is skew, far beyond chance in a sample.
const SKEW: f64 = 0.1;
/// A set is planned for at least as many fingerprints, since it may grow.
const MIN_PLANNED: usize = 100_000;

/// The plan for a set that begins with these fingerprints: blocks of neighbouring bits, or, where the bits are skewed, blocks that tell
/// about as much apart each.
///
/// # Errors
/// [`Error::InvalidParameter`] where `within` is above the width, or nothing fits the memory.
pub fn plan_for(
    fingerprints: Fingerprints<'_>,
    within: u32,
    with_rows: bool,
    memory_bytes: Option<f64>,
) -> Result<SearchPlan, Error> {
    fingerprints.check()?;
    let len = fingerprints.len();
    let sample: Vec<u64> = fingerprints
        .words
        .chunks_exact(fingerprints.num_words())
        .step_by(sample_step(len))
        .flatten()
        .copied()
        .collect();
    let sample = Fingerprints {
        words: &sample,
        bits: fingerprints.bits,
    };
    plan_for_sample(sample, len, within, with_rows, memory_bytes)
}

/// Every which fingerprint of so many is looked at.
pub fn sample_step(len: usize) -> usize {
    len.div_ceil(SAMPLE).max(1)
}

/// As [`plan_for`] of `len` fingerprints, of which `sample` holds every [`sample_step`]-th.
///
/// # Errors
/// As [`plan_for`].
pub fn plan_for_sample(
    sample: Fingerprints<'_>,
    len: usize,
    within: u32,
    with_rows: bool,
    memory_bytes: Option<f64>,
) -> Result<SearchPlan, Error> {
    sample.check()?;
    let bits = sample.bits;
    let mut collection = Collection::with_rows(len.max(MIN_PLANNED) as u64, bits);
    if !with_rows {
        collection.id_bits = 0;
    }
    let mut request = SurveyRequest {
        collection,
        within,
        memory_bytes,
        division: Division::Contiguous,
        costs: Costs::default(),
    };
    // Of few fingerprints the shares of ones say little.
    if len >= SAMPLE / 10 {
        let shares = bit_frequencies(sample.words, bits);
        if shares.iter().any(|share| (share - 0.5).abs() > SKEW) {
            request.division = Division::Balanced(shares);
        }
    }
    choose_plan(&request)?.ok_or_else(|| {
        Error::invalid(
            "memory",
            format!("no plan for {len} fingerprints fits; give more, or a smaller radius"),
        )
    })
}
