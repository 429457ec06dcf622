//! Band buckets, and the choice of bands.

use likewise_core::bands;
use likewise_core::sketch::Signatures;
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{
    LONG_BYTES, caught, check_below, check_range, check_same_length, parse_isa, run,
};
use crate::errors::Failure;

/// Documents in their buckets, in order of priority.
#[pyclass(frozen, module = "likewise._native")]
pub struct BandBuckets {
    buckets: bands::BandBuckets,
    signatures: Rows,
    order: Input<u32>,
}

/// Signatures from Python.
pub(crate) struct Rows {
    pub(crate) bytes: Input<u8>,
    num_slots: usize,
    slot_bytes: usize,
}

impl Rows {
    pub(crate) fn take(
        bytes: &Bound<'_, PyAny>,
        num_slots: usize,
        slot_bytes: usize,
    ) -> Result<Self, Failure> {
        let bytes = Input::<u8>::take("signatures", bytes)?;
        if !(1..=65_535).contains(&num_slots) {
            return Err(Failure::parameter(
                "num_slots",
                format!("{num_slots} is outside 1..65535"),
            ));
        }
        if !matches!(slot_bytes, 1 | 2 | 4) {
            return Err(Failure::parameter(
                "slot_bytes",
                format!("{slot_bytes} is not one of 1, 2, 4"),
            ));
        }
        if !bytes.values().len().is_multiple_of(num_slots * slot_bytes) {
            return Err(Failure::parameter(
                "signatures",
                format!(
                    "{} bytes are not a number of rows of {num_slots} slots of {slot_bytes} bytes",
                    bytes.values().len()
                ),
            ));
        }
        Ok(Rows {
            bytes,
            num_slots,
            slot_bytes,
        })
    }

    pub(crate) fn view(&self) -> Signatures<'_> {
        Signatures {
            bytes: self.bytes.values(),
            num_slots: self.num_slots,
            slot_bytes: self.slot_bytes,
        }
    }
}

/// Rejects a number of bucket levels that is zero or too large.
pub(crate) fn check_levels(num_levels: u32) -> Result<(), Failure> {
    if !(1..=bands::NUM_LEVELS).contains(&num_levels) {
        return Err(Failure::parameter(
            "num_levels",
            format!("{num_levels} is outside 1..{}", bands::NUM_LEVELS),
        ));
    }
    Ok(())
}

#[pymethods]
impl BandBuckets {
    #[new]
    #[pyo3(signature = (signatures, num_slots, slot_bytes, order, *, bands, rows, num_levels=3, threads=1))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        signatures: &Bound<'_, PyAny>,
        num_slots: usize,
        slot_bytes: usize,
        order: &Bound<'_, PyAny>,
        bands: u32,
        rows: u32,
        num_levels: u32,
        threads: usize,
    ) -> Result<Self, Failure> {
        let signatures = Rows::take(signatures, num_slots, slot_bytes)?;
        let order = Input::<u32>::take("order", order)?;
        check_levels(num_levels)?;
        check_below("order", order.values(), signatures.view().len())?;
        let buckets = run(py, signatures.bytes.values().len(), |cancel| {
            Ok(bands::BandBuckets::build(
                signatures.view(),
                order.values(),
                bands,
                rows,
                num_levels,
                threads,
                cancel,
            )?)
        })?;
        Ok(BandBuckets {
            buckets,
            signatures,
            order,
        })
    }

    /// Number of times that a document found its last bucket full.
    #[getter]
    fn num_capped(&self) -> u64 {
        self.buckets.num_capped()
    }

    /// Positions that found a bucket of the first level full, in some band, ascending.
    #[getter]
    fn crowded(&self) -> Array {
        self.buckets.crowded().to_vec().into()
    }

    /// Bytes held, excluding the signatures.
    #[getter]
    fn num_bytes(&self) -> usize {
        self.buckets.num_bytes()
    }

    /// Candidate pairs whose later position is in `lo..hi`: `(later, earlier, num_considered)`.
    #[pyo3(signature = (lo, hi, states=None, *, min_equal=0, threads=1, isa=None))]
    #[allow(clippy::too_many_arguments)]
    fn candidates(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        states: Option<&Bound<'_, PyAny>>,
        min_equal: u32,
        threads: usize,
        isa: Option<&str>,
    ) -> Result<(Array, Array, u64), Failure> {
        let (later, earlier, num_considered, _) =
            self.candidates_up_to(py, lo, hi, states, usize::MAX, min_equal, threads, isa)?;
        Ok((later, earlier, num_considered))
    }

    /// Like `candidates`, but up to `max_pairs` or a few more; also returns the end of the examined later positions.
    #[pyo3(signature = (lo, hi, states, max_pairs, *, min_equal=0, threads=1, isa=None))]
    #[allow(clippy::too_many_arguments)]
    fn candidates_up_to(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        states: Option<&Bound<'_, PyAny>>,
        max_pairs: usize,
        min_equal: u32,
        threads: usize,
        isa: Option<&str>,
    ) -> Result<(Array, Array, u64, u32), Failure> {
        let isa = parse_isa(isa)?;
        let num_positions = self.order.values().len();
        let range = check_range(lo, hi, num_positions)?;
        let states = Input::<u8>::take_option("states", states)?;
        let states = states.as_ref().map(Input::values);
        if let Some(states) = states {
            check_same_length("states", states.len(), "order", num_positions)?;
        }
        // About 200 candidates per document, each reads a signature.
        let num_bytes = range.len() * 4096;
        let pairs = run(py, num_bytes, |cancel| {
            Ok(self.buckets.candidates_up_to(
                max_pairs,
                self.signatures.view(),
                self.order.values(),
                range,
                states,
                min_equal,
                isa,
                threads,
                cancel,
            )?)
        })?;
        Ok((
            pairs.later.into(),
            pairs.earlier.into(),
            pairs.num_considered,
            pairs.end,
        ))
    }
}

/// Bands, rows per band, and the recall at the threshold.
#[pyfunction]
pub fn plan_bands(num_slots: u32, threshold: f64, recall: f64) -> Result<(u32, u32, f64), Failure> {
    caught(|| {
        let plan = bands::plan_bands(num_slots, threshold, recall)?;
        Ok((plan.bands, plan.rows, plan.recall))
    })
}

/// Probability that a pair of this similarity shares a band.
#[pyfunction]
pub fn s_curve(similarity: f64, bands: u32, rows: u32) -> Result<f64, Failure> {
    caught(|| Ok(bands::s_curve(similarity, bands, rows)))
}

/// Number of equal slots below which a pair is not measured.
#[pyfunction]
pub fn min_equal_slots(num_slots: u32, threshold: f64) -> Result<u32, Failure> {
    caught(|| Ok(bands::min_equal_slots(num_slots, threshold)))
}

/// Equal slots of the rows `a[i]` and `b[i]`.
#[pyfunction]
#[pyo3(signature = (signatures, num_slots, slot_bytes, a, b, *, isa=None))]
pub fn num_equal(
    py: Python<'_>,
    signatures: &Bound<'_, PyAny>,
    num_slots: usize,
    slot_bytes: usize,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    isa: Option<&str>,
) -> Result<Array, Failure> {
    let isa = parse_isa(isa)?;
    let signatures = Rows::take(signatures, num_slots, slot_bytes)?;
    let (a, b) = (Input::<u32>::take("a", a)?, Input::<u32>::take("b", b)?);
    let (a, b) = (a.values(), b.values());
    let view = signatures.view();
    check_same_length("b", b.len(), "a", a.len())?;
    check_below("a", a, view.len())?;
    check_below("b", b, view.len())?;
    let counts: Vec<u32> = run(py, (a.len() * view.row_bytes()).min(LONG_BYTES), |_| {
        Ok(a.iter()
            .zip(b)
            .map(|(&a, &b)| view.num_equal(a as usize, b as usize, isa))
            .collect())
    })?;
    Ok(counts.into())
}
