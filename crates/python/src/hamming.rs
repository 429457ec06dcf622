//! Hamming search and distances.

use likewise_hamming::Fingerprints;
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{caught, check_below, check_range, check_same_length, parse_isa, run};
use crate::errors::Failure;
use crate::sketch::check_bits;

/// Fingerprints laid out for search, in order of priority.
#[pyclass(frozen, module = "likewise._native")]
pub struct HammingTables {
    tables: likewise_hamming::HammingTables,
}

/// Takes fingerprints of `bits` bits; also returns their number.
pub fn take_fingerprints(
    words: &Bound<'_, PyAny>,
    bits: u32,
) -> Result<(Input<u64>, usize), Failure> {
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

#[pymethods]
impl HammingTables {
    #[new]
    #[pyo3(signature = (fingerprints, bits, order, *, within, threads=1))]
    fn new(
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        bits: u32,
        order: &Bound<'_, PyAny>,
        within: u32,
        threads: usize,
    ) -> Result<Self, Failure> {
        let (words, len) = take_fingerprints(fingerprints, bits)?;
        let order = Input::<u32>::take("order", order)?;
        check_below("order", order.values(), len)?;
        let (words, order) = (words.values(), order.values());
        let tables = run(py, 32 * order.len(), |cancel| {
            let fingerprints = Fingerprints { words, bits };
            Ok(likewise_hamming::HammingTables::build(
                fingerprints,
                order,
                within,
                threads,
                cancel,
            )?)
        })?;
        Ok(HammingTables { tables })
    }

    /// Estimated seconds of one core to find all pairs.
    #[getter]
    fn predicted_seconds(&self) -> f64 {
        self.tables.predicted_seconds()
    }

    /// Pairs within the radius whose later position is in `lo..hi`: `(later, earlier, distance)`.
    #[pyo3(signature = (lo, hi, states=None, *, threads=1, isa=None))]
    fn candidates(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        states: Option<&Bound<'_, PyAny>>,
        threads: usize,
        isa: Option<&str>,
    ) -> Result<(Array, Array, Array), Failure> {
        let (later, earlier, distance, _) =
            self.candidates_up_to(py, lo, hi, states, usize::MAX, threads, isa)?;
        Ok((later, earlier, distance))
    }

    /// Like `candidates`, but up to about `max_pairs`; also returns the end of the examined later positions.
    #[pyo3(signature = (lo, hi, states, max_pairs, *, threads=1, isa=None))]
    #[allow(clippy::too_many_arguments)]
    fn candidates_up_to(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        states: Option<&Bound<'_, PyAny>>,
        max_pairs: usize,
        threads: usize,
        isa: Option<&str>,
    ) -> Result<(Array, Array, Array, u32), Failure> {
        let isa = parse_isa(isa)?;
        let range = check_range(lo, hi, self.tables.len())?;
        let states = Input::<u8>::take_option("states", states)?;
        let states = states.as_ref().map(Input::values);
        if let Some(states) = states {
            check_same_length("states", states.len(), "order", self.tables.len())?;
        }
        let num_bytes = range.len() * 1024;
        let pairs = run(py, num_bytes, |cancel| {
            Ok(self
                .tables
                .candidates_up_to(max_pairs, range, states, isa, threads, cancel)?)
        })?;
        Ok((
            pairs.later.into(),
            pairs.earlier.into(),
            pairs.distance.into(),
            pairs.end,
        ))
    }
}

/// The smallest radius that finds a pair at the threshold with probability `recall`, and the actual probability.
#[pyfunction]
pub fn radius_for(bits: u32, threshold: f64, recall: f64) -> Result<(u32, f64), Failure> {
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
    fingerprints: &Bound<'_, PyAny>,
    bits: u32,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
) -> Result<Array, Failure> {
    let (words, len) = take_fingerprints(fingerprints, bits)?;
    let (a, b) = (Input::<u32>::take("a", a)?, Input::<u32>::take("b", b)?);
    let (words, a, b) = (words.values(), a.values(), b.values());
    check_same_length("b", b.len(), "a", a.len())?;
    check_below("a", a, len)?;
    check_below("b", b, len)?;
    let num_words = bits.div_ceil(64) as usize;
    let row = |i: u32| &words[i as usize * num_words..(i as usize + 1) * num_words];
    let distances: Vec<u32> = run(py, 8 * num_words * a.len(), |_| {
        Ok(a.iter()
            .zip(b)
            .map(|(&a, &b)| likewise_hamming::distance(row(a), row(b)))
            .collect())
    })?;
    Ok(distances.into())
}
