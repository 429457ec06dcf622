//! Queries against a stream of fingerprints.

use std::fs::File;
use std::path::PathBuf;

use likewise_disk::FingerprintFile;
use likewise_hamming::Fingerprints;
use likewise_hamming::stream::{self, StreamHits};
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{LONG_BYTES, parse_isa, run};
use crate::errors::Failure;
use crate::sketch::check_bits;

/// Queries laid out to search a stream of fingerprints.
#[pyclass(frozen, module = "likewise._native")]
pub struct StreamTables {
    tables: stream::StreamTables,
}

/// Rows, queries, distances, and how many rows of the stream were searched.
type Found = (Array, Array, Array, u64);

fn found(hits: StreamHits) -> Found {
    let StreamHits { hits, num_rows } = hits;
    let rows: Vec<i64> = hits.iter().map(|hit| hit.row as i64).collect();
    let queries: Vec<u32> = hits.iter().map(|hit| hit.query).collect();
    let distances: Vec<u32> = hits.iter().map(|hit| hit.distance).collect();
    (
        rows.into(),
        queries.into(),
        distances.into(),
        num_rows as u64,
    )
}

#[pymethods]
impl StreamTables {
    #[new]
    #[pyo3(signature = (queries, bits, sample, *, within, threads=1))]
    fn new(
        py: Python<'_>,
        queries: &Bound<'_, PyAny>,
        bits: u32,
        sample: &Bound<'_, PyAny>,
        within: u32,
        threads: usize,
    ) -> Result<Self, Failure> {
        check_bits(bits)?;
        let queries = Input::<u64>::take("queries", queries)?;
        let sample = Input::<u64>::take("sample", sample)?;
        let (words, sample) = (queries.values(), sample.values());
        let tables = run(py, LONG_BYTES, |cancel| {
            let queries = Fingerprints { words, bits };
            Ok(stream::StreamTables::build(
                queries, sample, within, threads, cancel,
            )?)
        })?;
        Ok(StreamTables { tables })
    }

    /// Width and radius of each key; empty if every pair is compared.
    #[getter]
    fn keys(&self) -> Vec<(u32, u32)> {
        let keys = self.tables.plan().keys();
        keys.iter().map(|key| (key.width(), key.radius)).collect()
    }

    /// Bytes held.
    #[getter]
    fn num_bytes(&self) -> usize {
        self.tables.num_bytes()
    }

    /// Hits of fingerprints in memory: `(rows, queries, distances, num_rows)`.
    #[pyo3(signature = (fingerprints, first_row, *, max_hits, threads=1, isa=None))]
    fn search(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        first_row: u64,
        max_hits: usize,
        threads: usize,
        isa: Option<&str>,
    ) -> Result<Found, Failure> {
        let isa = parse_isa(isa)?;
        let words = Input::<u64>::take("fingerprints", fingerprints)?;
        let words = words.values();
        let hits = run(py, 1024 * words.len(), |cancel| {
            Ok(self
                .tables
                .search(words, first_row, max_hits, isa, threads, cancel)?)
        })?;
        Ok(found(hits))
    }

    /// Hits of rows `low..high` of a flat file whose row 0 begins at byte `offset`: `(rows, queries, distances,
    /// num_rows)`.
    #[pyo3(signature = (path, offset, low, high, *, max_hits, threads=1, isa=None))]
    #[allow(clippy::too_many_arguments)]
    fn search_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        offset: u64,
        low: u64,
        high: u64,
        max_hits: usize,
        threads: usize,
        isa: Option<&str>,
    ) -> Result<Found, Failure> {
        let isa = parse_isa(isa)?;
        let hits = run(py, LONG_BYTES, |cancel| {
            let file = File::open(&path).map_err(|error| Failure::system(error, &path))?;
            let file = FingerprintFile::new(file, offset, self.tables.num_words());
            file.search(&self.tables, low..high, max_hits, isa, threads, cancel)
                .map_err(|error| Failure::disk(error, &path))
        })?;
        Ok(found(hits))
    }
}
