//! Bands of sampled bits, and their choice.

use likewise_hamming::Fingerprints;
use likewise_hamming::bit_bands;
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{LONG_BYTES, caught, check_below, check_range, parse_isa, run};
use crate::errors::Failure;
use crate::sketch::check_bits;

/// Fingerprints in order of priority, in the buckets of bands of sampled bits.
#[pyclass(frozen, module = "likewise._native")]
pub struct BitBandBuckets {
    buckets: bit_bands::BitBandBuckets,
}

#[pymethods]
impl BitBandBuckets {
    #[new]
    #[pyo3(signature = (fingerprints, bits, order, *, within, bands, rows, seed=0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        bits: u32,
        order: &Bound<'_, PyAny>,
        within: u32,
        bands: u32,
        rows: u32,
        seed: u64,
    ) -> Result<Self, Failure> {
        check_bits(bits)?;
        let words = Input::<u64>::take("fingerprints", fingerprints)?;
        let order = Input::<u32>::take("order", order)?;
        let words = words.values();
        check_below(
            "order",
            order.values(),
            words.len() / bits.div_ceil(64) as usize,
        )?;
        let order = order.values();
        let buckets = run(py, 32 * order.len(), |_| {
            let fingerprints = Fingerprints { words, bits };
            Ok(bit_bands::BitBandBuckets::build(
                fingerprints,
                order,
                within,
                bands,
                rows,
                seed,
            )?)
        })?;
        Ok(BitBandBuckets { buckets })
    }

    /// Pairs whose later position is in `lo..hi`: `(later, earlier, distance, num_capped)`, or `None` if there are
    /// more than `max_pairs`.
    #[pyo3(signature = (lo, hi, *, max_pairs, threads=1, isa=None))]
    fn pairs(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        max_pairs: usize,
        threads: usize,
        isa: Option<&str>,
    ) -> Result<Option<(Array, Array, Array, u64)>, Failure> {
        let isa = parse_isa(isa)?;
        let range = check_range(lo, hi, self.buckets.len())?;
        let found = run(py, 1024 * hi as usize, |cancel| {
            Ok(self.buckets.pairs(range, max_pairs, isa, threads, cancel)?)
        })?;
        Ok(found.map(|(pairs, num_capped)| {
            (
                pairs.later.into(),
                pairs.earlier.into(),
                pairs.distance.into(),
                num_capped,
            )
        }))
    }
}

/// Left and right rows and distances of the pairs within the radius that share a band, and the bands:
/// `(bands, rows, recall)`.
type Pairs = (Array, Array, Array, (u32, u32, f64));

/// Pairs of `order` within the radius, each found with probability `recall`.
#[pyfunction]
#[pyo3(signature = (fingerprints, bits, order, *, within, recall, seed=0, threads=1, isa=None))]
#[allow(clippy::too_many_arguments)]
pub fn bit_band_pairs(
    py: Python<'_>,
    fingerprints: &Bound<'_, PyAny>,
    bits: u32,
    order: &Bound<'_, PyAny>,
    within: u32,
    recall: f64,
    seed: u64,
    threads: usize,
    isa: Option<&str>,
) -> Result<Pairs, Failure> {
    check_bits(bits)?;
    let isa = parse_isa(isa)?;
    let words = Input::<u64>::take("fingerprints", fingerprints)?;
    let order = Input::<u32>::take("order", order)?;
    let (words, order) = (words.values(), order.values());
    let found = run(py, LONG_BYTES, |cancel| {
        let fingerprints = Fingerprints { words, bits };
        Ok(bit_bands::bit_band_pairs(
            fingerprints,
            order,
            within,
            recall,
            seed,
            isa,
            threads,
            cancel,
        )?)
    })?;
    Ok((
        found.left.into(),
        found.right.into(),
        found.distance.into(),
        (found.plan.bands, found.plan.rows, found.plan.recall),
    ))
}

/// Bands, bits per band, and the recall at the radius.
#[pyfunction]
pub fn plan_bit_bands(bits: u32, within: u32, recall: f64) -> Result<(u32, u32, f64), Failure> {
    check_bits(bits)?;
    caught(|| {
        let plan = bit_bands::plan_bit_bands(bits, within, recall)?;
        Ok((plan.bands, plan.rows, plan.recall))
    })
}

/// Probability that two fingerprints at this distance agree in a band.
#[pyfunction]
pub fn bit_band_recall(bits: u32, distance: u32, bands: u32, rows: u32) -> Result<f64, Failure> {
    check_bits(bits)?;
    if distance > bits || !(1..=bits).contains(&rows) {
        return Err(Failure::parameter(
            "rows",
            format!("{rows} rows and distance {distance} do not fit {bits} bits"),
        ));
    }
    caught(|| Ok(bit_bands::bit_band_recall(bits, distance, bands, rows)))
}
