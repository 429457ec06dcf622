//! Band buckets, and the choice of bands.

use std::path::PathBuf;

use likewise_core::bands;
use likewise_core::error::invalid_if;
use likewise_core::parallel::Run;
use likewise_core::search::{Call, Pairs};
use likewise_core::sketch::Signatures;
use likewise_disk::bands::SpilledBuckets;
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::door::{
    LONG_BYTES, Object, caught, check_below, check_pairs, chosen_isa, run, run_short,
};
use crate::errors::{Failure, On, Result};
use crate::searcher::{Search, Searcher};

struct Rows {
    bytes: Input<u8>,
    num_slots: usize,
    slot_bytes: usize,
}

impl Rows {
    fn take(bytes: &Object<'_>, num_slots: usize, slot_bytes: usize) -> Result<Self> {
        let bytes = Input::<u8>::take("signatures", bytes)?;
        invalid_if(!(1..=65_535).contains(&num_slots), "num_slots", || {
            format!("{num_slots} is outside 1..65535")
        })?;
        invalid_if(!matches!(slot_bytes, 1 | 2 | 4), "slot_bytes", || {
            format!("{slot_bytes} is not one of 1, 2, 4")
        })?;
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

    fn view(&self) -> Signatures<'_> {
        Signatures {
            bytes: self.bytes.values(),
            num_slots: self.num_slots,
            slot_bytes: self.slot_bytes,
        }
    }
}

/// Documents in their buckets, in memory or in files of a folder.
struct BandSearch {
    buckets: Buckets,
    signatures: Rows,
    order: Input<u32>,
}

enum Buckets {
    Held(bands::BandBuckets),
    Spilled(SpilledBuckets, PathBuf),
}

impl Search for BandSearch {
    fn num_positions(&self) -> usize {
        self.order.values().len()
    }

    fn num_bytes_read(&self, num_later: usize) -> usize {
        // About 200 candidates per document, each reads a signature.
        num_later * 4096
    }

    fn candidates(&self, call: &Call<'_>) -> Result<Pairs> {
        let (signatures, order) = (self.signatures.view(), self.order.values());
        match &self.buckets {
            Buckets::Held(buckets) => Ok(buckets.view().candidates(signatures, order, call)?),
            Buckets::Spilled(buckets, folder) => {
                buckets.candidates(signatures, order, call).on(folder)
            }
        }
    }

    fn num_capped(&self) -> u64 {
        match &self.buckets {
            Buckets::Held(buckets) => buckets.num_capped,
            Buckets::Spilled(buckets, _) => buckets.num_capped(),
        }
    }

    fn crowded(&self) -> &[u32] {
        match &self.buckets {
            Buckets::Held(buckets) => buckets.crowded(),
            Buckets::Spilled(buckets, _) => buckets.crowded(),
        }
    }

    fn num_bytes(&self) -> usize {
        match &self.buckets {
            Buckets::Held(buckets) => buckets.num_bytes(),
            Buckets::Spilled(buckets, _) => buckets.num_bytes(),
        }
    }
}

/// Puts documents into buckets by their bands; in files of `folder` without a name, with about `scratch_bytes`, if given.
#[pyfunction]
#[pyo3(signature = (signatures, num_slots, slot_bytes, order, *, bands, rows, num_levels=3, folder=None, scratch_bytes=0, threads=1))]
pub fn search_bands(
    py: Python<'_>,
    signatures: &Object<'_>,
    num_slots: usize,
    slot_bytes: usize,
    order: &Object<'_>,
    bands: u32,
    rows: u32,
    num_levels: u32,
    folder: Option<PathBuf>,
    scratch_bytes: usize,
    threads: usize,
) -> Result<Searcher> {
    let signatures = Rows::take(signatures, num_slots, slot_bytes)?;
    let order = Input::<u32>::take("order", order)?;
    invalid_if(
        !(1..=bands::NUM_LEVELS).contains(&num_levels),
        "num_levels",
        || format!("{num_levels} is outside 1..{}", bands::NUM_LEVELS),
    )?;
    let (view, positions) = (signatures.view(), order.values());
    check_below("order", positions, view.len())?;
    let buckets = run(py, signatures.bytes.values().len(), |cancel| match folder {
        None => Ok(Buckets::Held(bands::BandBuckets::build(
            view,
            positions,
            bands,
            rows,
            num_levels,
            Run { threads, cancel },
        )?)),
        Some(folder) => SpilledBuckets::build(
            view,
            positions,
            bands,
            rows,
            num_levels,
            &folder,
            scratch_bytes,
            Run { threads, cancel },
        )
        .on(&folder)
        .map(|buckets| Buckets::Spilled(buckets, folder)),
    })?;
    Ok(Searcher::new(BandSearch {
        buckets,
        signatures,
        order,
    }))
}

/// Bands, rows per band, and the recall at the threshold.
#[pyfunction]
pub fn plan_bands(num_slots: u32, threshold: f64, recall: f64) -> Result<(u32, u32, f64)> {
    caught(|| {
        let plan = bands::plan_bands(num_slots, threshold, recall)?;
        Ok((plan.bands, plan.rows, plan.recall))
    })
}

/// Probability that a pair of this similarity shares a band.
#[pyfunction]
pub fn s_curve(similarity: f64, bands: u32, rows: u32) -> Result<f64> {
    caught(|| Ok(bands::s_curve(similarity, bands, rows)))
}

/// Number of equal slots below which a pair is not measured.
#[pyfunction]
pub fn min_equal_slots(num_slots: u32, threshold: f64) -> Result<u32> {
    caught(|| Ok(bands::min_equal_slots(num_slots, threshold)))
}

/// Equal slots of the rows `a[i]` and `b[i]`.
#[pyfunction]
pub fn num_equal(
    py: Python<'_>,
    signatures: &Object<'_>,
    num_slots: usize,
    slot_bytes: usize,
    a: &Object<'_>,
    b: &Object<'_>,
) -> Result<Array> {
    let signatures = Rows::take(signatures, num_slots, slot_bytes)?;
    take!(a: u32, b: u32);
    let view = signatures.view();
    check_pairs(("a", a), ("b", b), view.len())?;
    run(py, (a.len() * view.row_bytes()).min(LONG_BYTES), |_| {
        let isa = chosen_isa();
        let num_equal = |(&a, &b): (&u32, &u32)| view.num_equal(a as usize, b as usize, isa);
        Ok(a.iter().zip(b).map(num_equal).collect::<Vec<u32>>().into())
    })
}

/// The bands of two slots of sampled signatures.
#[pyclass(frozen, module = "likewise._native")]
pub struct SampledBands {
    bands: bands::SampledBands,
    num_slots: usize,
    slot_bytes: usize,
}

#[pymethods]
impl SampledBands {
    #[new]
    fn new(signatures: &Object<'_>, num_slots: usize, slot_bytes: usize) -> Result<Self> {
        let signatures = Rows::take(signatures, num_slots, slot_bytes)?;
        Ok(SampledBands {
            bands: caught(|| Ok(bands::SampledBands::new(signatures.view(), 2)))?,
            num_slots,
            slot_bytes,
        })
    }

    /// The bands without those of some signatures, ascending.
    fn without(&self, gone: &Object<'_>) -> Result<Self> {
        take!(gone: u32);
        Ok(SampledBands {
            bands: caught(|| Ok(self.bands.without(gone)))?,
            ..*self
        })
    }

    /// The pairs of a sampled signature and one of these that share a band and have so many equal slots, each once:
    /// `(sampled, others, num_equal)`.
    fn pairs(
        &self,
        py: Python<'_>,
        signatures: &Object<'_>,
        min_equal: u32,
    ) -> Result<(Array, Array, Array)> {
        let others = Rows::take(signatures, self.num_slots, self.slot_bytes)?;
        let mut found = (Vec::new(), Vec::new(), Vec::new());
        run_short(py, |_| {
            let take = |sampled, other, num_equal| {
                if num_equal >= min_equal {
                    found.0.push(sampled);
                    found.1.push(other);
                    found.2.push(num_equal);
                }
            };
            self.bands.pairs(others.view(), chosen_isa(), take);
            Ok(())
        })?;
        Ok((found.0.into(), found.1.into(), found.2.into()))
    }
}
