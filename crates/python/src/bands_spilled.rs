//! Band buckets in files.

use std::path::PathBuf;

use likewise_disk::bands;
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::bands::{Rows, check_levels};
use crate::door::{check_below, check_range, check_same_length, parse_isa, run};
use crate::errors::Failure;

/// Documents in their buckets, in order of priority, using little memory.
#[pyclass(frozen, module = "likewise._native")]
pub struct SpilledBuckets {
    buckets: bands::SpilledBuckets,
    signatures: Rows,
    order: Input<u32>,
    /// Location of the files, for messages.
    folder: PathBuf,
}

#[pymethods]
impl SpilledBuckets {
    #[new]
    #[pyo3(signature = (signatures, num_slots, slot_bytes, order, *, bands, rows, folder, scratch_bytes, num_levels=3, threads=1))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        signatures: &Bound<'_, PyAny>,
        num_slots: usize,
        slot_bytes: usize,
        order: &Bound<'_, PyAny>,
        bands: u32,
        rows: u32,
        folder: PathBuf,
        scratch_bytes: usize,
        num_levels: u32,
        threads: usize,
    ) -> Result<Self, Failure> {
        let signatures = Rows::take(signatures, num_slots, slot_bytes)?;
        let order = Input::<u32>::take("order", order)?;
        check_levels(num_levels)?;
        check_below("order", order.values(), signatures.view().len())?;
        let buckets = run(py, signatures.bytes.values().len(), |cancel| {
            bands::SpilledBuckets::build(
                signatures.view(),
                order.values(),
                bands,
                rows,
                num_levels,
                &folder,
                scratch_bytes,
                threads,
                cancel,
            )
            .map_err(|error| Failure::disk(error, &folder))
        })?;
        Ok(SpilledBuckets {
            buckets,
            signatures,
            order,
            folder,
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

    /// Bytes on disk, excluding the signatures.
    #[getter]
    fn num_bytes(&self) -> usize {
        self.buckets.num_bytes()
    }

    /// See [`crate::bands::BandBuckets`].
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
        let pairs = run(py, range.len() * 4096, |cancel| {
            let found = self.buckets.candidates_up_to(
                max_pairs,
                self.signatures.view(),
                self.order.values(),
                range,
                states,
                min_equal,
                isa,
                threads,
                cancel,
            );
            found.map_err(|error| Failure::disk(error, &self.folder))
        })?;
        Ok((
            pairs.later.into(),
            pairs.earlier.into(),
            pairs.num_considered,
            pairs.end,
        ))
    }
}
