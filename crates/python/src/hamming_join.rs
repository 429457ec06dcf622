//! All pairs of fingerprints near each other, within one set or between two.

use std::path::PathBuf;

use likewise_core::parallel::Run;
use likewise_disk::FlatFingerprints;
use likewise_disk::hamming_join::LargeJoin;
use likewise_hamming::Fingerprints;
use likewise_hamming::join::{
    JoinOptions, JoinSide, PairBatch, join, predicted_seconds, sort_pairs,
};
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{Object, check_same_length, chosen_isa, run};
use crate::errors::{Failure, On, Result};
use crate::hamming_index::{GivenFile, open_flat};
use crate::hamming_plan::take_fingerprints;
use crate::sketch::check_bits;

/// One side of a join from Python: fingerprints, and a byte for each that says whether its text was empty.
struct Side {
    words: Input<u64>,
    is_empty: Option<Input<u8>>,
    len: usize,
}

type GivenSide<'py> = (Object<'py>, Option<Object<'py>>);

impl Side {
    fn take((words, is_empty): &GivenSide<'_>, bits: u32) -> Result<Self> {
        let (words, len) = take_fingerprints(words, bits)?;
        let is_empty = Input::take_option("is_empty", is_empty.as_ref())?;
        if let Some(is_empty) = &is_empty {
            check_same_length("is_empty", is_empty.values().len(), "fingerprints", len)?;
        }
        Ok(Side {
            words,
            is_empty,
            len,
        })
    }

    fn view(&self, bits: u32) -> JoinSide<'_> {
        JoinSide {
            is_empty: self.is_empty.as_ref().map(Input::values),
            ..JoinSide::of(Fingerprints::new(self.words.values(), bits))
        }
    }
}

fn options(within: u32, run: Run<'_>) -> JoinOptions<'_> {
    JoinOptions {
        within,
        isa: chosen_isa(),
        run,
    }
}

/// All pairs within distance `within`: rows as left, right, left, right, ..., and distances, sorted. `None` if there are
/// more than `max_pairs`.
#[pyfunction]
#[pyo3(signature = (left, right, bits, *, within, max_pairs, threads=1))]
pub fn join_fingerprints(
    py: Python<'_>,
    left: GivenSide<'_>,
    right: Option<GivenSide<'_>>,
    bits: u32,
    within: u32,
    max_pairs: u64,
    threads: usize,
) -> Result<Option<(Array, Array)>> {
    let left = Side::take(&left, bits)?;
    let right = right.map(|side| Side::take(&side, bits)).transpose()?;
    let num_bytes = 64 * (left.len + right.as_ref().map_or(0, |side| side.len));
    let sorted = run(py, num_bytes, |cancel| {
        let options = options(within, Run { threads, cancel });
        let (mut batches, mut num_pairs) = (Vec::new(), 0);
        let mut consumer = |batch: PairBatch| {
            num_pairs += batch.len() as u64;
            batches.push(batch);
            num_pairs <= max_pairs
        };
        let right = right.as_ref().map(|side| side.view(bits));
        let result = join(&left.view(bits), right.as_ref(), &options, &mut consumer);
        if num_pairs > max_pairs {
            return Ok(None);
        }
        result?;
        Ok(Some(sort_pairs(batches, Run { threads, cancel })?))
    })?;
    Ok(sorted.map(|sorted| (sorted.rows.into(), sorted.distance.into())))
}

/// Estimated seconds on one core to join `num` fingerprints like those of a sample.
#[pyfunction]
#[pyo3(signature = (sample, bits, *, within, num))]
pub fn predicted_join_seconds(
    py: Python<'_>,
    sample: &Object<'_>,
    bits: u32,
    within: u32,
    num: usize,
) -> Result<f64> {
    let (words, len) = take_fingerprints(sample, bits)?;
    run(py, 64 * len, |cancel| {
        let options = options(within, Run::alone(cancel));
        let words = words.values();
        Ok(predicted_seconds(
            Fingerprints { words, bits },
            num,
            &options,
        )?)
    })
}

/// Passes all pairs within distance `within` to `consumer(left, right, distance)`, at most 65,536 at a time.
#[pyfunction]
#[pyo3(signature = (left, right, bits, *, within, consumer, threads=1))]
pub fn stream_joined_fingerprints(
    py: Python<'_>,
    left: GivenSide<'_>,
    right: Option<GivenSide<'_>>,
    bits: u32,
    within: u32,
    consumer: Py<PyAny>,
    threads: usize,
) -> Result<()> {
    let left = Side::take(&left, bits)?;
    let right = right.map(|side| Side::take(&side, bits)).transpose()?;
    // The consumer may take long however few the fingerprints are: Ctrl-C is always checked for.
    run(py, usize::MAX, |cancel| {
        let options = options(within, Run { threads, cancel });
        let right = right.as_ref().map(|side| side.view(bits));
        stream_to(&consumer, |give| {
            Ok(join(&left.view(bits), right.as_ref(), &options, give)?)
        })
    })
}

/// Runs a join that gives the arrays of each batch to `consumer`, until it raises.
fn stream_to(
    consumer: &Py<PyAny>,
    join: impl FnOnce(&mut (dyn FnMut(PairBatch) -> bool + Send)) -> Result<()>,
) -> Result<()> {
    let mut raised = None;
    let mut give = |batch: PairBatch| {
        let arrays: (Array, Array, Array) =
            (batch.left.into(), batch.right.into(), batch.distance.into());
        raised = Python::attach(|py| consumer.call1(py, arrays).err());
        raised.is_none()
    };
    let result = join(&mut give);
    raised.map_or(result, |error| Err(Failure::Python(error)))
}

/// Like [`stream_joined_fingerprints`], for sets in flat files, in bounded memory; temporary files are in `folder`.
#[pyfunction]
#[pyo3(signature = (left, right, bits, *, within, memory_bytes, folder, consumer, threads=1))]
pub fn stream_joined_files(
    py: Python<'_>,
    left: GivenFile<'_>,
    right: Option<GivenFile<'_>>,
    bits: u32,
    within: u32,
    memory_bytes: usize,
    folder: PathBuf,
    consumer: Py<PyAny>,
    threads: usize,
) -> Result<()> {
    check_bits(bits)?;
    let path = left.0.clone();
    let left = open_flat(&left, bits, FlatFingerprints::new)?;
    let right = right.map(|file| open_flat(&file, bits, FlatFingerprints::new));
    let right = right.transpose()?;
    run(py, usize::MAX, |cancel| {
        let options = options(within, Run { threads, cancel });
        let join = LargeJoin {
            left: &left,
            right: right.as_ref(),
            bits,
            memory_bytes,
            folder: &folder,
        };
        stream_to(&consumer, |give| join.run(&options, give).on(&path))
    })
}
