//! Which documents are kept, and connected components.

use std::sync::Mutex;

use likewise_core::groups;
use likewise_core::parallel::lock;
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::door::{Object, check_pairs, check_range, check_same_length, run, run_short};
use crate::errors::{Failure, Result};

/// Verdicts and evidence of documents in order of priority.
#[pyclass(frozen, module = "likewise._native")]
pub struct Leaders {
    leaders: Mutex<groups::Leaders>,
    num_positions: usize,
}

impl Leaders {
    fn column<V: Clone + Send>(
        &self,
        py: Python<'_>,
        column: impl Fn(&groups::Leaders) -> &Vec<V> + Send + Sync,
    ) -> Result<Array>
    where
        Vec<V>: Into<Array>,
    {
        run_short(py, |_| Ok(column(&lock(&self.leaders)).clone().into()))
    }
}

#[pymethods]
impl Leaders {
    #[new]
    fn new(py: Python<'_>, n: u32) -> Result<Self> {
        let num_positions = n as usize;
        Ok(Leaders {
            leaders: Mutex::new(run_short(py, |_| Ok(groups::Leaders::new(num_positions)))?),
            num_positions,
        })
    }

    /// Decides the positions `lo..hi`, which begin where the last ones ended. Pairs are sorted by their later position.
    #[pyo3(signature = (lo, hi, later, earlier, similarity, distance=None))]
    fn decide(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        later: &Object<'_>,
        earlier: &Object<'_>,
        similarity: &Object<'_>,
        distance: Option<&Object<'_>>,
    ) -> Result<()> {
        let range = check_range(lo, hi, self.num_positions)?;
        take!(later: u32, earlier: u32, similarity: f64);
        let distance = Input::<u32>::take_like("distance", distance, ("later", later.len()))?;
        let distance = distance.values();
        check_pairs(("later", later), ("earlier", earlier), self.num_positions)?;
        check_same_length("similarity", similarity.len(), "later", later.len())?;
        run(py, 16 * later.len(), |_| {
            Ok(lock(&self.leaders).decide(range, later, earlier, similarity, distance)?)
        })
    }

    /// 0 undecided, 1 kept, 2 removed.
    #[getter]
    fn states(&self, py: Python<'_>) -> Result<Array> {
        self.column(py, |leaders| &leaders.states)
    }

    /// The kept position that removed each one; 4294967295 if not removed.
    #[getter]
    fn best_earlier(&self, py: Python<'_>) -> Result<Array> {
        self.column(py, |leaders| &leaders.best_earlier)
    }

    /// Similarity to it; NaN if not removed.
    #[getter]
    fn best_similarity(&self, py: Python<'_>) -> Result<Array> {
        self.column(py, |leaders| &leaders.best_similarity)
    }

    /// Distance to it; 4294967295 if not removed or not given.
    #[getter]
    fn best_distance(&self, py: Python<'_>) -> Result<Array> {
        self.column(py, |leaders| &leaders.best_distance)
    }
}

/// Decides the positions after those of `states`, up to `hi`; returns
/// `(states, best_earlier, best_similarity, best_distance)` for these alone.
#[pyfunction]
#[pyo3(signature = (states, hi, later, earlier, similarity, distance=None))]
pub fn decide_range(
    py: Python<'_>,
    states: &Object<'_>,
    hi: u32,
    later: &Object<'_>,
    earlier: &Object<'_>,
    similarity: &Object<'_>,
    distance: Option<&Object<'_>>,
) -> Result<(Array, Array, Array, Array)> {
    take!(states: u8, later: u32, earlier: u32, similarity: f64);
    let distance = Input::<u32>::take_option("distance", distance)?;
    let distance = distance.as_ref().map_or(&[][..], Input::values);
    let Some(num) = (hi as usize).checked_sub(states.len()) else {
        return Err(Failure::parameter(
            "hi",
            format!(
                "{hi} is less than the number of decided positions ({})",
                states.len()
            ),
        ));
    };
    let found = run(py, 16 * later.len() + 17 * num, |_| {
        Ok(groups::decide_range(
            states, num as u32, later, earlier, similarity, distance,
        )?)
    })?;
    Ok((
        found.states.into(),
        found.best_earlier.into(),
        found.best_similarity.into(),
        found.best_distance.into(),
    ))
}

/// Finds items whose key equals that of an earlier item; see `repeated_keys` in `likewise/arrays.py`.
#[pyclass(frozen, module = "likewise._native")]
pub struct EqualKeys {
    keys: Mutex<groups::EqualKeys>,
    num_words: usize,
}

#[pymethods]
impl EqualKeys {
    #[new]
    #[pyo3(signature = (num_words, share=0, num_shares=1))]
    fn new(num_words: usize, share: u32, num_shares: u32) -> Result<Self> {
        Ok(EqualKeys {
            keys: Mutex::new(groups::EqualKeys::new(num_words, share, num_shares)?),
            num_words,
        })
    }

    /// Adds the keys of the next items, one after another; returns some of the items whose key is that of an earlier
    /// one, and the first item with it, in no order.
    fn add(&self, py: Python<'_>, keys: &Object<'_>) -> Result<(Array, Array)> {
        take!(keys: u64);
        run(py, 8 * keys.len(), |_| {
            let found = lock(&self.keys).add(keys)?;
            Ok((found.later.into(), found.first.into()))
        })
    }

    /// Returns the other items, in no order. The keys are consumed.
    fn finish(&self, py: Python<'_>) -> Result<(Array, Array)> {
        run(py, usize::MAX, |cancel| {
            let empty = groups::EqualKeys::new(self.num_words, 0, 1)?;
            let found = std::mem::replace(&mut *lock(&self.keys), empty).finish(cancel)?;
            Ok((found.later.into(), found.first.into()))
        })
    }
}

/// Connected components, extended pair by pair.
#[pyclass(frozen, module = "likewise._native")]
pub struct Components {
    joined: Mutex<groups::Components>,
    num_positions: usize,
}

#[pymethods]
impl Components {
    #[new]
    fn new(py: Python<'_>, n: u32) -> Result<Self> {
        let num_positions = n as usize;
        Ok(Components {
            joined: Mutex::new(run_short(py, |_| {
                Ok(groups::Components::new(num_positions))
            })?),
            num_positions,
        })
    }

    fn join(&self, py: Python<'_>, later: &Object<'_>, earlier: &Object<'_>) -> Result<()> {
        take!(later: u32, earlier: u32);
        check_pairs(("later", later), ("earlier", earlier), self.num_positions)?;
        run(py, 16 * later.len(), |_| {
            lock(&self.joined).join(later, earlier);
            Ok(())
        })
    }

    /// The smallest position of each position's component. The pairs are consumed.
    fn smallest(&self, py: Python<'_>) -> Result<Array> {
        run(py, 8 * self.num_positions, |_| {
            let empty = groups::Components::new(0);
            Ok(std::mem::replace(&mut *lock(&self.joined), empty)
                .smallest()
                .into())
        })
    }
}

/// The smallest position of each position's connected component.
#[pyfunction]
pub fn components(
    py: Python<'_>,
    n: u32,
    later: &Object<'_>,
    earlier: &Object<'_>,
) -> Result<Array> {
    take!(later: u32, earlier: u32);
    check_pairs(("later", later), ("earlier", earlier), n as usize)?;
    run(py, 4 * n as usize + 16 * later.len(), |_| {
        Ok(groups::components(n as usize, later, earlier).into())
    })
}
