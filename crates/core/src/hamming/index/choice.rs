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
    let (len, bits) = (fingerprints.len(), fingerprints.bits);
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
    let shares = sample_frequencies(&fingerprints);
    if shares.iter().any(|share| (share - 0.5).abs() > SKEW) {
        request.division = Division::Balanced(shares);
    }
    choose_plan(&request)?.ok_or_else(|| {
        Error::invalid(
            "memory",
            format!("no plan for {len} fingerprints fits; give more, or a smaller radius"),
        )
    })
}

/// Share of ones of each bit in fingerprints from all over the set; a half where there are too few to tell.
fn sample_frequencies(fingerprints: &Fingerprints<'_>) -> Vec<f64> {
    let (len, num_words) = (fingerprints.len(), fingerprints.num_words());
    if len < SAMPLE / 10 {
        return vec![0.5; fingerprints.bits as usize];
    }
    let step = len.div_ceil(SAMPLE);
    let sample: Vec<u64> = fingerprints
        .words
        .chunks_exact(num_words)
        .step_by(step)
        .flatten()
        .copied()
        .collect();
    bit_frequencies(&sample, fingerprints.bits)
}
