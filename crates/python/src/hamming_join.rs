//! All pairs of fingerprints near each other, within one set or between two.

use std::fs::File;
use std::path::PathBuf;

use likewise_disk::hamming_join::{FlatFingerprints, LargeJoin};
use likewise_hamming::Fingerprints;
use likewise_hamming::join::{
    JoinOptions, JoinSide, PairBatch, join_self, join_two, predicted_seconds, sort_pairs,
};
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{check_same_length, parse_isa, run};
use crate::errors::Failure;
use crate::hamming::take_fingerprints;
use crate::sketch::check_bits;

/// One side of a join from Python: fingerprints, and a byte for each that says whether its text was empty.
struct Side {
    words: Input<u64>,
    is_empty: Option<Input<u8>>,
    len: usize,
}

type GivenSide<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

impl Side {
    fn take((words, is_empty): &GivenSide<'_>, bits: u32) -> Result<Self, Failure> {
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
            ..JoinSide::of(Fingerprints {
                words: self.words.values(),
                bits,
            })
        }
    }
}

/// Runs the join of one or two sides.
fn join(
    left: &JoinSide<'_>,
    right: Option<&JoinSide<'_>>,
    options: &JoinOptions<'_>,
    consumer: &mut (dyn FnMut(PairBatch) -> bool + Send),
) -> Result<(), Failure> {
    match right {
        None => join_self(left, options, consumer)?,
        Some(right) => join_two(left, right, options, consumer)?,
    }
    Ok(())
}

/// All pairs within distance `within`: rows as left, right, left, right, ..., and distances, sorted. `None` if there are
/// more than `max_pairs`.
#[pyfunction]
#[pyo3(signature = (left, right, bits, *, within, max_pairs, threads=1, isa=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "one call of Python's, by keyword"
)]
pub fn join_fingerprints(
    py: Python<'_>,
    left: GivenSide<'_>,
    right: Option<GivenSide<'_>>,
    bits: u32,
    within: u32,
    max_pairs: u64,
    threads: usize,
    isa: Option<&str>,
) -> Result<Option<(Array, Array)>, Failure> {
    let isa = parse_isa(isa)?;
    let left = Side::take(&left, bits)?;
    let right = right.map(|side| Side::take(&side, bits)).transpose()?;
    let num_bytes = 64 * (left.len + right.as_ref().map_or(0, |side| side.len));
    let sorted = run(py, num_bytes, |cancel| {
        let options = JoinOptions {
            within,
            isa,
            threads,
            cancel,
        };
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
        Ok(Some(sort_pairs(batches, threads, cancel)?))
    })?;
    Ok(sorted.map(|sorted| (sorted.rows.into(), sorted.distance.into())))
}

/// Estimated seconds on one core to join `num` fingerprints like those of a sample.
#[pyfunction]
#[pyo3(signature = (sample, bits, *, within, num))]
pub fn predicted_join_seconds(
    py: Python<'_>,
    sample: &Bound<'_, PyAny>,
    bits: u32,
    within: u32,
    num: usize,
) -> Result<f64, Failure> {
    let (words, len) = take_fingerprints(sample, bits)?;
    run(py, 64 * len, |cancel| {
        let options = JoinOptions {
            within,
            isa: parse_isa(None)?,
            threads: 1,
            cancel,
        };
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
#[pyo3(signature = (left, right, bits, *, within, consumer, threads=1, isa=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "one call of Python's, by keyword"
)]
pub fn stream_joined_fingerprints(
    py: Python<'_>,
    left: GivenSide<'_>,
    right: Option<GivenSide<'_>>,
    bits: u32,
    within: u32,
    consumer: Py<PyAny>,
    threads: usize,
    isa: Option<&str>,
) -> Result<(), Failure> {
    let isa = parse_isa(isa)?;
    let left = Side::take(&left, bits)?;
    let right = right.map(|side| Side::take(&side, bits)).transpose()?;
    // The consumer may take long however few the fingerprints are: Ctrl-C is always checked for.
    run(py, usize::MAX, |cancel| {
        let options = JoinOptions {
            within,
            isa,
            threads,
            cancel,
        };
        let mut error = None;
        let mut give = |batch| match give_batch(&consumer, batch) {
            Ok(()) => true,
            Err(raised) => {
                error = Some(raised);
                false
            }
        };
        let right = right.as_ref().map(|side| side.view(bits));
        let result = join(&left.view(bits), right.as_ref(), &options, &mut give);
        match error {
            Some(error) => Err(Failure::Python(error)),
            None => result,
        }
    })
}

/// Calls `consumer` with the arrays of a batch.
fn give_batch(consumer: &Py<PyAny>, batch: PairBatch) -> PyResult<()> {
    Python::attach(|py| {
        let arrays: (Array, Array, Array) =
            (batch.left.into(), batch.right.into(), batch.distance.into());
        consumer.call1(py, arrays).map(|_| ())
    })
}

/// A flat file of fingerprints: path, first byte, number of fingerprints, and the rows of empty texts.
type GivenFile<'py> = (PathBuf, u64, usize, Bound<'py, PyAny>);

fn open_flat(
    (path, offset, len, empty_rows): &GivenFile<'_>,
    num_words: usize,
) -> Result<FlatFingerprints, Failure> {
    let empty_rows = Input::<u32>::take("empty_rows", empty_rows)?;
    let file = File::open(path).map_err(|error| Failure::system(error, path))?;
    FlatFingerprints::new(file, *offset, *len, num_words, empty_rows.values().to_vec())
        .map_err(|error| Failure::disk(error, path))
}

/// Like [`stream_joined_fingerprints`], for sets in flat files, in bounded memory; temporary files are in `folder`.
#[pyfunction]
#[pyo3(signature = (left, right, bits, *, within, memory_bytes, folder, consumer, threads=1, isa=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "one call of Python's, by keyword"
)]
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
    isa: Option<&str>,
) -> Result<(), Failure> {
    let isa = parse_isa(isa)?;
    let num_words = check_bits(bits)?;
    let path = left.0.clone();
    let left = open_flat(&left, num_words)?;
    let right = right.map(|file| open_flat(&file, num_words)).transpose()?;
    run(py, usize::MAX, |cancel| {
        let options = JoinOptions {
            within,
            isa,
            threads,
            cancel,
        };
        let mut error = None;
        let mut give = |batch| match give_batch(&consumer, batch) {
            Ok(()) => true,
            Err(raised) => {
                error = Some(raised);
                false
            }
        };
        let join = LargeJoin {
            left: &left,
            right: right.as_ref(),
            bits,
            memory_bytes,
            folder: &folder,
        };
        let result = join.run(&options, &mut give);
        match error {
            Some(error) => Err(Failure::Python(error)),
            None => result.map_err(|error| Failure::disk(error, &path)),
        }
    })
}
