//! Checksums of the intermediate files of a run.

use std::path::PathBuf;

use likewise_core::hash::xxh3_64_with_seed;
use likewise_disk as disk;
use pyo3::prelude::*;

use crate::array::take;
use crate::door::{Object, run, run_short};
use crate::errors::{Failure, Result};
use crate::jsonl::open;

/// XXH3-64 of bytes, with seed 0.
#[pyfunction]
pub fn checksum(py: Python<'_>, data: &Object<'_>) -> Result<u64> {
    take!(data: u8);
    run_short(py, |_| Ok(xxh3_64_with_seed(data, 0)))
}

/// XXH3-64 of `length` bytes of a file from `offset`, with seed 0.
#[pyfunction]
pub fn range_checksum(py: Python<'_>, path: PathBuf, offset: u64, length: u64) -> Result<u64> {
    run(py, length as usize, |cancel| {
        disk::range_checksum(&open(&path)?, offset, length, cancel)
            .map_err(|error| Failure::disk(error, &path))
    })
}
