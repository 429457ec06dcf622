//! Plans of Hamming search: the survey, and timed work.

use likewise_hamming::plan::{
    self, BitStatistics, Collection, Division, Key, PricedPlan, SurveyRequest,
};
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::door::{Dict, LONG_BYTES, Object, caught, check_pairs, dict_of, run};
use crate::errors::{Failure, Result};
use crate::sketch::check_bits;

/// The plans for a collection, by size, and the number of the chosen one.
#[pyfunction]
#[pyo3(signature = (num_fingerprints, bits, within, *, memory_bytes=None, id_bits=None, bit_frequencies=None, bit_dependence=0.0))]
pub fn survey_plans<'py>(
    py: Python<'py>,
    num_fingerprints: u64,
    bits: u32,
    within: u32,
    memory_bytes: Option<f64>,
    id_bits: Option<u32>,
    bit_frequencies: Option<Vec<f64>>,
    bit_dependence: f64,
) -> Result<(Vec<Dict<'py>>, Option<usize>)> {
    check_bits(bits)?;
    let mut collection = Collection::with_rows(num_fingerprints, bits);
    collection.id_bits = id_bits.unwrap_or(collection.id_bits);
    let request = SurveyRequest {
        collection,
        within,
        memory_bytes,
        division: bit_frequencies.map_or(Division::Contiguous, |ones| {
            Division::Balanced(BitStatistics {
                ones,
                dependence: bit_dependence,
            })
        }),
    };
    let survey = run(py, LONG_BYTES, |cancel| Ok(plan::survey(&request, cancel)?))?;
    let plans = survey
        .plans
        .iter()
        .map(|plan| plan_dict(py, plan))
        .collect::<PyResult<_>>()?;
    Ok((plans, survey.chosen))
}

fn plan_dict<'py>(py: Python<'py>, plan: &PricedPlan) -> PyResult<Dict<'py>> {
    let cost = &plan.cost;
    let dict = dict_of!(py, cost; num_probes, num_candidates, num_buckets, num_compared, num_bytes);
    dict.set_item("name", &plan.name)?;
    dict.set_item("family", plan.family)?;
    dict.set_item("num_tables", plan.keys.len())?;
    dict.set_item("single_us", cost.single_ns / 1e3)?;
    dict.set_item("batch_us", cost.batch_ns / 1e3)?;
    dict.set_item("build_s", cost.build_ns / 1e9)?;
    dict.set_item("fits", plan.fits)?;
    dict.set_item("keys", keys_of(&plan.keys))?;
    Ok(dict)
}

/// Share of fingerprints with a one at each bit, and how strongly differences of bits depend on each other.
#[pyfunction]
pub fn bit_statistics(
    py: Python<'_>,
    fingerprints: &Object<'_>,
    bits: u32,
) -> Result<(Array, f64)> {
    let (words, _) = take_fingerprints(fingerprints, bits)?;
    let words = words.values();
    run(py, 64 * words.len(), |_| {
        let found = plan::bit_statistics(words, bits);
        Ok((found.ones.into(), found.dependence))
    })
}

/// Maximum number of fingerprints in one index, and of rows of a set that are joined at once.
#[pyfunction]
pub fn plan_limits() -> (u64, u64) {
    (plan::MAX_INDEXED, plan::MAX_JOINED)
}

/// (mask, radius) of each table.
pub(crate) type Keys = Vec<([u64; 4], u32)>;

pub(crate) fn keys_of(keys: &[Key]) -> Keys {
    keys.iter().map(|key| (key.mask, key.radius)).collect()
}

/// Takes fingerprints of `bits` bits; also returns their number.
pub fn take_fingerprints(words: &Object<'_>, bits: u32) -> Result<(Input<u64>, usize)> {
    let num_words = check_bits(bits)?;
    let words = Input::<u64>::take("fingerprints", words)?;
    let len = words.values().len();
    match len.is_multiple_of(num_words) {
        true => Ok((words, len / num_words)),
        false => Err(Failure::parameter(
            "fingerprints",
            format!("{len} words are not a number of fingerprints of {num_words} words"),
        )),
    }
}

/// The smallest radius that finds a pair at the threshold with probability `recall`, and the actual probability.
#[pyfunction]
pub fn radius_for(bits: u32, threshold: f64, recall: f64) -> Result<(u32, f64)> {
    check_bits(bits)?;
    for (name, value) in [("threshold", threshold), ("recall", recall)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(Failure::parameter(name, format!("{value} is outside 0..1")));
        }
    }
    caught(|| Ok(likewise_hamming::radius_for(bits, threshold, recall)))
}

/// Hamming distances of the fingerprints `a[i]` and `b[i]`.
#[pyfunction]
pub fn distances(
    py: Python<'_>,
    fingerprints: &Object<'_>,
    bits: u32,
    a: &Object<'_>,
    b: &Object<'_>,
) -> Result<Array> {
    let (words, len) = take_fingerprints(fingerprints, bits)?;
    take!(a: u32, b: u32);
    let words = words.values();
    check_pairs(("a", a), ("b", b), len)?;
    let num_words = bits.div_ceil(64) as usize;
    let row = |i: u32| &words[i as usize * num_words..(i as usize + 1) * num_words];
    let distance = |(&a, &b): (&u32, &u32)| likewise_hamming::distance(row(a), row(b));
    run(py, 8 * num_words * a.len(), |_| {
        Ok(a.iter().zip(b).map(distance).collect::<Vec<u32>>().into())
    })
}
