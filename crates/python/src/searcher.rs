//! Searches for candidate pairs, all with the same calls.

use likewise_core::search::{Call, Pairs};
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{LONG_BYTES, Object, check_range, check_same_length, chosen_isa, run};
use crate::errors::{Failure, Result};

/// What a search answers. Everything else is the same for all of them.
pub(crate) trait Search: Send + Sync {
    /// Number of documents, in order of priority.
    fn num_positions(&self) -> usize;

    /// About how many bytes a search of so many later positions reads.
    fn num_bytes_read(&self, num_later: usize) -> usize;

    /// The pairs of a call, whose range and states fit.
    fn candidates(&self, call: &Call<'_>) -> Result<Pairs>;

    /// Lists positions up to `end` as earlier ones, without their own pairs.
    fn pass_over(&self, _end: u32) -> Result<()> {
        Ok(())
    }

    /// Number of times that a document found its last bucket full.
    fn num_capped(&self) -> u64 {
        0
    }

    /// Positions that found a bucket of the first level full, in some band, ascending.
    fn crowded(&self) -> &[u32] {
        &[]
    }

    /// Bytes held, in memory or in files, excluding sketches.
    fn num_bytes(&self) -> usize {
        0
    }
}

/// A search for candidate pairs in documents in order of priority.
#[pyclass(frozen, module = "likewise._native")]
pub struct Searcher(Box<dyn Search>);

impl Searcher {
    pub(crate) fn new(search: impl Search + 'static) -> Self {
        Searcher(Box::new(search))
    }
}

/// Pairs of positions, sorted by (later, earlier).
#[pyclass(frozen, get_all, module = "likewise._native")]
pub struct Candidates {
    later: Py<Array>,
    earlier: Py<Array>,
    /// Number of distinct pairs before any was omitted.
    num_considered: u64,
    /// Later positions from here on were not searched.
    end: u32,
}

#[pymethods]
impl Searcher {
    /// Candidate pairs whose later position is in `lo..hi`, up to `max_pairs` or a few more.
    #[pyo3(signature = (lo, hi, states=None, max_pairs=usize::MAX, *, min_equal=0, threads=1))]
    fn candidates(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        states: Option<&Object<'_>>,
        max_pairs: usize,
        min_equal: u32,
        threads: usize,
    ) -> Result<Candidates> {
        let search = &self.0;
        let range = check_range(lo, hi, search.num_positions())?;
        let states = Input::<u8>::take_option("states", states)?;
        let states = states.as_ref().map(Input::values);
        if let Some(states) = states {
            check_same_length("states", states.len(), "order", search.num_positions())?;
        }
        let pairs = run(py, search.num_bytes_read(range.len()), |cancel| {
            search.candidates(&Call {
                range,
                states,
                max_pairs,
                min_equal,
                isa: chosen_isa(),
                threads,
                cancel,
            })
        })?;
        Ok(Candidates {
            later: Py::new(py, Array::from(pairs.later)).map_err(Failure::Python)?,
            earlier: Py::new(py, Array::from(pairs.earlier)).map_err(Failure::Python)?,
            num_considered: pairs.num_considered,
            end: pairs.end,
        })
    }

    /// Lists positions up to `end` as earlier ones, in place of asking for their pairs.
    fn pass_over(&self, py: Python<'_>, end: u32) -> Result<()> {
        run(py, LONG_BYTES, |_| self.0.pass_over(end))
    }

    #[getter]
    fn num_capped(&self) -> u64 {
        self.0.num_capped()
    }

    #[getter]
    fn crowded(&self) -> Array {
        self.0.crowded().to_vec().into()
    }

    #[getter]
    fn num_bytes(&self) -> usize {
        self.0.num_bytes()
    }
}
