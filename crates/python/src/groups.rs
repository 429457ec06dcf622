//! Which documents are kept, and connected components.

use std::sync::{Mutex, MutexGuard, PoisonError};

use likewise_core::groups;
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{check_below, check_range, check_same_length, run, run_short};
use crate::errors::Failure;

/// Verdicts and evidence of documents in order of priority.
#[pyclass(frozen, module = "likewise._native")]
pub struct Leaders {
    leaders: Mutex<groups::Leaders>,
    num_positions: usize,
}

impl Leaders {
    fn lock(&self) -> MutexGuard<'_, groups::Leaders> {
        self.leaders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of one of the columns.
    fn column<V: Clone + Send>(
        &self,
        py: Python<'_>,
        column: impl Fn(&groups::Leaders) -> &Vec<V> + Send + Sync,
    ) -> Result<Array, Failure>
    where
        Vec<V>: Into<Array>,
    {
        Ok(run_short(py, |_| Ok(column(&self.lock()).clone()))?.into())
    }
}

#[pymethods]
impl Leaders {
    #[new]
    fn new(py: Python<'_>, n: u32) -> Result<Self, Failure> {
        let num_positions = n as usize;
        Ok(Leaders {
            leaders: Mutex::new(run_short(py, |_| Ok(groups::Leaders::new(num_positions)))?),
            num_positions,
        })
    }

    /// Decides the positions `lo..hi`, which begin where the last ones ended. Pairs are sorted by their later position.
    #[pyo3(signature = (lo, hi, later, earlier, similarity, distance=None))]
    #[allow(clippy::too_many_arguments)]
    fn decide(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        later: &Bound<'_, PyAny>,
        earlier: &Bound<'_, PyAny>,
        similarity: &Bound<'_, PyAny>,
        distance: Option<&Bound<'_, PyAny>>,
    ) -> Result<(), Failure> {
        let range = check_range(lo, hi, self.num_positions)?;
        let later = Input::<u32>::take("later", later)?;
        let earlier = Input::<u32>::take("earlier", earlier)?;
        let similarity = Input::<f64>::take("similarity", similarity)?;
        let distance = Input::<u32>::take_option("distance", distance)?;
        let (later, earlier, similarity) = (later.values(), earlier.values(), similarity.values());
        let distance = distance.as_ref().map_or(&[][..], Input::values);
        check_same_length("earlier", earlier.len(), "later", later.len())?;
        check_same_length("similarity", similarity.len(), "later", later.len())?;
        if !distance.is_empty() {
            check_same_length("distance", distance.len(), "later", later.len())?;
        }
        check_below("later", later, self.num_positions)?;
        check_below("earlier", earlier, self.num_positions)?;
        run(py, 16 * later.len(), |_| {
            Ok(self
                .lock()
                .decide(range, later, earlier, similarity, distance)?)
        })
    }

    /// 0 undecided, 1 kept, 2 removed.
    #[getter]
    fn states(&self, py: Python<'_>) -> Result<Array, Failure> {
        self.column(py, |leaders| &leaders.states)
    }

    /// The kept position that removed each one; 4294967295 if not removed.
    #[getter]
    fn best_earlier(&self, py: Python<'_>) -> Result<Array, Failure> {
        self.column(py, |leaders| &leaders.best_earlier)
    }

    /// Similarity to it; NaN if not removed.
    #[getter]
    fn best_similarity(&self, py: Python<'_>) -> Result<Array, Failure> {
        self.column(py, |leaders| &leaders.best_similarity)
    }

    /// Distance to it; 4294967295 if not removed or not given.
    #[getter]
    fn best_distance(&self, py: Python<'_>) -> Result<Array, Failure> {
        self.column(py, |leaders| &leaders.best_distance)
    }
}

/// Decides the positions after those of `states`, up to `hi`; returns
/// `(states, best_earlier, best_similarity, best_distance)` for these alone.
#[pyfunction]
#[pyo3(signature = (states, hi, later, earlier, similarity, distance=None))]
pub fn decide_range(
    py: Python<'_>,
    states: &Bound<'_, PyAny>,
    hi: u32,
    later: &Bound<'_, PyAny>,
    earlier: &Bound<'_, PyAny>,
    similarity: &Bound<'_, PyAny>,
    distance: Option<&Bound<'_, PyAny>>,
) -> Result<(Array, Array, Array, Array), Failure> {
    let states = Input::<u8>::take("states", states)?;
    let later = Input::<u32>::take("later", later)?;
    let earlier = Input::<u32>::take("earlier", earlier)?;
    let similarity = Input::<f64>::take("similarity", similarity)?;
    let distance = Input::<u32>::take_option("distance", distance)?;
    let (states, later, earlier) = (states.values(), later.values(), earlier.values());
    let similarity = similarity.values();
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
    fn new(num_words: usize, share: u32, num_shares: u32) -> Result<Self, Failure> {
        Ok(EqualKeys {
            keys: Mutex::new(groups::EqualKeys::new(num_words, share, num_shares)?),
            num_words,
        })
    }

    /// Adds the keys of the next items, one after another; returns some of the items whose key is that of an earlier
    /// one, and the first item with it, in no order.
    fn add(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> Result<(Array, Array), Failure> {
        let keys = Input::<u64>::take("keys", keys)?;
        let keys = keys.values();
        let found = run(py, 8 * keys.len(), |_| {
            let mut all = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(all.add(keys)?)
        })?;
        Ok((found.later.into(), found.first.into()))
    }

    /// Returns the other items, in no order. The keys are consumed.
    fn finish(&self, py: Python<'_>) -> Result<(Array, Array), Failure> {
        let found = run(py, usize::MAX, |cancel| {
            let empty = groups::EqualKeys::new(self.num_words, 0, 1)?;
            let mut all = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(std::mem::replace(&mut *all, empty).finish(cancel)?)
        })?;
        Ok((found.later.into(), found.first.into()))
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
    fn new(py: Python<'_>, n: u32) -> Result<Self, Failure> {
        let num_positions = n as usize;
        Ok(Components {
            joined: Mutex::new(run_short(py, |_| {
                Ok(groups::Components::new(num_positions))
            })?),
            num_positions,
        })
    }

    /// Joins the positions of pairs.
    fn join(
        &self,
        py: Python<'_>,
        later: &Bound<'_, PyAny>,
        earlier: &Bound<'_, PyAny>,
    ) -> Result<(), Failure> {
        let later = Input::<u32>::take("later", later)?;
        let earlier = Input::<u32>::take("earlier", earlier)?;
        let (later, earlier) = (later.values(), earlier.values());
        check_same_length("earlier", earlier.len(), "later", later.len())?;
        check_below("later", later, self.num_positions)?;
        check_below("earlier", earlier, self.num_positions)?;
        run(py, 16 * later.len(), |_| {
            let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
            joined.join(later, earlier);
            Ok(())
        })
    }

    /// The smallest position of each position's component. The pairs are consumed.
    fn smallest(&self, py: Python<'_>) -> Result<Array, Failure> {
        let smallest = run(py, 8 * self.num_positions, |_| {
            let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(std::mem::replace(&mut *joined, groups::Components::new(0)).smallest())
        })?;
        Ok(smallest.into())
    }
}

/// The smallest position of each position's connected component.
#[pyfunction]
pub fn components(
    py: Python<'_>,
    n: u32,
    later: &Bound<'_, PyAny>,
    earlier: &Bound<'_, PyAny>,
) -> Result<Array, Failure> {
    let later = Input::<u32>::take("later", later)?;
    let earlier = Input::<u32>::take("earlier", earlier)?;
    let (later, earlier) = (later.values(), earlier.values());
    check_same_length("earlier", earlier.len(), "later", later.len())?;
    check_below("later", later, n as usize)?;
    check_below("earlier", earlier, n as usize)?;
    let smallest = run(py, 4 * n as usize + 16 * later.len(), |_| {
        Ok(groups::components(n as usize, later, earlier))
    })?;
    Ok(smallest.into())
}
