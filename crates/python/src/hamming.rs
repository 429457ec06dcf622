//! Hamming distances, and the radius of a similarity.

use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::door::{Object, caught, check_below, check_same_length, run};
use crate::errors::{Failure, Result};
use crate::sketch::check_bits;

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
