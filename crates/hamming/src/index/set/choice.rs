//! Which plan suits the given fingerprints?

use std::sync::atomic::AtomicBool;

use crate::distance::Fingerprints;
use crate::plan::{
    BitStatistics, Collection, Division, SearchPlan, SurveyRequest, bit_statistics, choose_plan,
};
use likewise_core::error::{Error, Result};

/// Number of fingerprints sampled to detect skewed bits.
const SAMPLE: usize = 10_000;
/// A fraction of ones this far from a half is skew, far beyond chance in a sample.
const SKEW: f64 = 0.1;
/// Dependence of this size is also far beyond chance.
const DEPENDENCE: f64 = 0.0005;
/// A set is planned for at least this many fingerprints, since it may grow.
const MIN_PLANNED: usize = 100_000;

/// Returns the plan for a set that begins so: neighboring bits, or for skewed ones blocks of equal selectivity.
pub fn plan_for(
    fingerprints: Fingerprints<'_>,
    within: u32,
    with_rows: bool,
    memory_bytes: Option<f64>,
    cancel: &AtomicBool,
) -> Result<SearchPlan> {
    fingerprints.check()?;
    let len = fingerprints.len();
    let sample: Vec<u64> = fingerprints
        .words
        .chunks_exact(fingerprints.num_words())
        .step_by(sample_step(len))
        .flatten()
        .copied()
        .collect();
    let sample = Fingerprints::new(&sample, fingerprints.bits);
    plan_for_sample(sample, len, within, with_rows, memory_bytes, cancel)
}

pub fn sample_step(len: usize) -> usize {
    len.div_ceil(SAMPLE).max(1)
}

/// Same as [`plan_for`] for `len` fingerprints, of which `sample` holds every [`sample_step`]-th.
pub fn plan_for_sample(
    sample: Fingerprints<'_>,
    len: usize,
    within: u32,
    with_rows: bool,
    memory_bytes: Option<f64>,
    cancel: &AtomicBool,
) -> Result<SearchPlan> {
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
    };
    let known = sample_statistics(sample, len);
    let is_skewed = known.ones.iter().any(|share| (share - 0.5).abs() > SKEW);
    if is_skewed || known.dependence > DEPENDENCE {
        request.division = Division::Balanced(known);
    }
    choose_plan(&request, cancel)?.ok_or_else(|| {
        Error::invalid(
            "table_bytes",
            format!("no plan for {len} fingerprints fits; use more memory or a smaller radius"),
        )
    })
}

/// Returns the statistics of `len` fingerprints from a sample, or those of fair coins if the sample is too small.
fn sample_statistics(sample: Fingerprints<'_>, len: usize) -> BitStatistics {
    if len < SAMPLE / 10 {
        return BitStatistics {
            ones: vec![0.5; sample.bits as usize],
            dependence: 0.0,
        };
    }
    bit_statistics(sample.words, sample.bits)
}
