//! The dynamic Hamming set.

use std::fs::File;
use std::path::{Path, PathBuf};

use likewise_core::error::Error;
use likewise_core::parallel::Run;
use likewise_disk::FlatFingerprints;
use likewise_disk::hamming_file::{Damage, HammingBuild, open_hamming_set, write_hamming_set};
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{self, Building, Matches, Reach, plan_for};
use likewise_hamming::plan::SearchPlan;
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::door::{Dict, LONG_BYTES, Object, chosen_isa, dict_of, run, run_short};
use crate::errors::{Failure, On, Result};
use crate::hamming_plan::{Keys, keys_of, take_fingerprints};

/// Default memory for sorting beyond the set.
const BUILD_BYTES: usize = 1 << 30;
/// Number of queries from which a search is long enough to check for Ctrl-C: a few milliseconds.
const LONG_QUERIES: usize = 256;

/// Fingerprints by row, searched by distance; they may be added and removed during searches.
#[pyclass(frozen, module = "likewise._native")]
pub struct HammingSet {
    pub set: index::HammingSet,
    /// The file it was opened from, and the damage found there.
    opened: Option<(PathBuf, Damage)>,
}

impl HammingSet {
    /// The result of the set, unless the file it was opened from became unreadable in the meantime.
    fn checked<T>(&self, said: Result<T, Error>) -> Result<T> {
        if let Some((_, damage)) = &self.opened {
            damage.look();
            if damage.is_unreadable() {
                return Err(self.failure(Error::Damaged));
            }
        }
        said.map_err(|error| self.failure(error))
    }

    /// An error of the set; one about its tables names the file and the location.
    fn failure(&self, error: Error) -> Failure {
        match (&error, &self.opened) {
            (Error::Damaged, Some((path, damage))) => {
                let reason = damage.reason().map(str::to_owned);
                Failure::disk(
                    likewise_disk::Error::Damaged {
                        reason: reason.unwrap_or_else(|| error.to_string()),
                    },
                    path,
                )
            }
            _ => error.into(),
        }
    }
}

/// Offsets, rows, fingerprints, distances.
type Found = (Array, Array, Array, Array);

fn found(matches: Matches) -> Found {
    (
        matches.offsets.into(),
        matches.rows.into(),
        matches.codes.into(),
        matches.distances.into(),
    )
}

#[pymethods]
impl HammingSet {
    /// The set of these fingerprints, by the cheapest plan or without tables.
    #[new]
    #[pyo3(signature = (fingerprints, bits, *, within, rows=None, with_rows=true, scan=false, memory_bytes=None, threads=1))]
    fn new(
        py: Python<'_>,
        fingerprints: &Object<'_>,
        bits: u32,
        within: u32,
        rows: Option<&Object<'_>>,
        with_rows: bool,
        scan: bool,
        memory_bytes: Option<f64>,
        threads: usize,
    ) -> Result<Self> {
        let (words, len) = take_fingerprints(fingerprints, bits)?;
        let rows = Input::<u32>::take_option("rows", rows)?;
        let rows = rows.as_ref().map(Input::values);
        let words = words.values();
        // Planning for a wide radius takes dozens of milliseconds, whatever the number of fingerprints.
        let set = run(py, (64 * len).max(LONG_BYTES), |cancel| {
            let fingerprints = Fingerprints { words, bits };
            let plan = match scan {
                true => SearchPlan::new(bits, within, Vec::new())?,
                false => plan_for(fingerprints, within, with_rows, memory_bytes, cancel)?,
            };
            let building = building(Run { threads, cancel }, with_rows);
            Ok(index::HammingSet::build(
                fingerprints,
                rows,
                plan,
                building,
            )?)
        })?;
        Ok(HammingSet { set, opened: None })
    }

    fn __len__(&self) -> usize {
        self.set.len()
    }

    #[getter]
    fn within(&self) -> u32 {
        self.set.plan().within
    }

    /// Bits of a fingerprint.
    #[getter]
    fn bits(&self) -> u32 {
        self.set.plan().bits
    }

    /// (mask, radius) of each table.
    #[getter]
    fn keys(&self) -> Keys {
        keys_of(self.set.plan().keys())
    }

    /// Inserts fingerprints; returns the row above all others.
    #[pyo3(signature = (fingerprints, rows=None, *, threads=1))]
    fn insert(
        &self,
        py: Python<'_>,
        fingerprints: &Object<'_>,
        rows: Option<&Object<'_>>,
        threads: usize,
    ) -> Result<u64> {
        let bits = self.bits();
        let (words, len) = take_fingerprints(fingerprints, bits)?;
        let rows = Input::<u32>::take_option("rows", rows)?;
        let rows = rows.as_ref().map(Input::values);
        let words = words.values();
        run(py, 64 * len, |cancel| {
            let building = building(Run { threads, cancel }, true);
            let inserted = self
                .set
                .insert(Fingerprints { words, bits }, rows, building);
            self.checked(inserted)
        })
    }

    /// Removes rows; returns how many were present.
    fn remove(&self, py: Python<'_>, rows: &Object<'_>) -> Result<usize> {
        take!(rows: u32);
        run_short(py, |_| Ok(self.set.remove(rows)?))
    }

    /// Whether each row is present, as 1 or 0.
    fn holds(&self, py: Python<'_>, rows: &Object<'_>) -> Result<Array> {
        take!(rows: u32);
        run_short(py, |_| Ok(self.set.holds(rows))).map(Array::from)
    }

    /// Matches of each query: offsets, rows, fingerprints (if rows are not kept), distances.
    #[pyo3(signature = (queries, within, *, threads=1))]
    fn search(
        &self,
        py: Python<'_>,
        queries: &Object<'_>,
        within: u32,
        threads: usize,
    ) -> Result<Found> {
        let bits = self.bits();
        let (words, len) = take_fingerprints(queries, bits)?;
        let words = words.values();
        let num_bytes = if len < LONG_QUERIES { 0 } else { LONG_BYTES };
        run(py, num_bytes, |cancel| {
            let queries = Fingerprints { words, bits };
            self.checked(self.set.search(
                queries,
                Reach::new(within, chosen_isa(), Run { threads, cancel }),
            ))
        })
        .map(found)
    }

    /// The nearest of each query: offsets, rows, fingerprints (if rows are not kept), distances.
    #[pyo3(signature = (queries, num, *, threads=1))]
    fn nearest(
        &self,
        py: Python<'_>,
        queries: &Object<'_>,
        num: usize,
        threads: usize,
    ) -> Result<Found> {
        let bits = self.bits();
        let (words, len) = take_fingerprints(queries, bits)?;
        let words = words.values();
        let queries = Fingerprints { words, bits };
        if len == 1 {
            let within = run_short(py, |cancel| {
                self.checked(self.set.nearest_within(
                    queries,
                    num,
                    chosen_isa(),
                    Run::alone(cancel),
                ))
            })?;
            if let Some(nearest) = within {
                return Ok(found(nearest));
            }
        }
        // Beyond the radius, everything is compared.
        run(py, LONG_BYTES, |cancel| {
            self.checked(
                self.set
                    .nearest(queries, num, chosen_isa(), Run { threads, cancel }),
            )
        })
        .map(found)
    }

    /// Writes to one file, which is complete under its name or absent.
    #[pyo3(signature = (path, extra, ids=None))]
    fn save(&self, py: Python<'_>, path: PathBuf, extra: &str, ids: Option<&[u8]>) -> Result<()> {
        run(py, LONG_BYTES, |cancel| {
            write_hamming_set(&self.set, &path, ids, extra, cancel).map_err(|error| match error {
                likewise_disk::Error::Damaged { .. } => self.failure(Error::Damaged),
                other => Failure::disk(other, &path),
            })
        })
    }

    /// Opens a file: returns the set, the text and the ids that were passed to `save`.
    #[staticmethod]
    #[pyo3(signature = (path, *, verify=false))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        verify: bool,
    ) -> Result<(Self, String, Option<Vec<u8>>)> {
        let opened = run(py, LONG_BYTES, |cancel| {
            open_hamming_set(&path, verify, cancel).on(&path)
        })?;
        let set = HammingSet {
            set: opened.set,
            opened: Some((path, opened.damage)),
        };
        Ok((set, opened.extra, opened.ids))
    }

    fn facts<'py>(&self, py: Python<'py>) -> Result<Dict<'py>> {
        let facts = run_short(py, |_| Ok(self.set.facts()))?;
        Ok(
            dict_of!(py, facts; num_rows, num_removed, segment_rows, segment_distinct, num_scanned, table_bytes,
            row_bytes, next_row, largest_bucket, most_candidates),
        )
    }
}

/// A flat file of fingerprints: path, first byte, number of fingerprints, and the rows of empty texts.
pub(crate) type GivenFile<'py> = (PathBuf, u64, u64, Object<'py>);

fn building(run: Run<'_>, with_rows: bool) -> Building<'_> {
    Building {
        isa: chosen_isa(),
        run,
        memory_bytes: BUILD_BYTES,
        with_rows,
    }
}

/// Opens such a file by `open`, which may limit the number of rows.
pub(crate) fn open_flat(
    (path, offset, len, empty_rows): &GivenFile<'_>,
    bits: u32,
    open: impl FnOnce(File, u64, u64, u32, Vec<u32>) -> likewise_disk::Result<FlatFingerprints>,
) -> Result<FlatFingerprints> {
    take!(empty_rows: u32);
    let file = File::open(path).on(path)?;
    open(file, *offset, *len, bits, empty_rows.to_vec())
        .map(|file| file.named(path.clone()))
        .on(path)
}

fn open_source(source: &GivenFile<'_>, bits: u32) -> Result<FlatFingerprints> {
    open_flat(source, bits, FlatFingerprints::for_index)
}

/// Builds an index file. Before anything is written, `check` receives the bytes of the file and of the temporary files
/// next to it; `progress` receives how many fingerprints were read, and the total. Returns
/// whether it was built: where the cheapest plan has no tables, it is not.
#[pyfunction]
#[pyo3(signature = (source, bits, path, extra, ids=None, *, within, table_bytes, with_rows, memory_bytes, check, progress, threads=1))]
pub fn build_hamming_file(
    py: Python<'_>,
    source: GivenFile<'_>,
    bits: u32,
    path: PathBuf,
    extra: &str,
    ids: Option<&[u8]>,
    within: u32,
    table_bytes: Option<f64>,
    with_rows: bool,
    memory_bytes: usize,
    check: Object<'_>,
    progress: Py<PyAny>,
    threads: usize,
) -> Result<bool> {
    let source_path = source.0.clone();
    let source = open_source(&source, bits)?;
    let plan = run(py, LONG_BYTES, |cancel| {
        source
            .plan(within, with_rows, table_bytes, cancel)
            .on(&source_path)
    })?;
    if plan.keys().is_empty() {
        return Ok(false);
    }
    let never = std::sync::atomic::AtomicBool::new(false);
    let build = HammingBuild {
        source: &source,
        plan,
        with_rows,
        ids,
        extra,
        memory_bytes,
        run: Run {
            threads,
            cancel: &never,
        },
        isa: chosen_isa(),
    };
    check.call1(build.num_bytes())?;
    run(py, LONG_BYTES, |cancel| {
        let mut raised = None;
        let mut tell = |done: u64, total: u64| {
            let told = Python::attach(|py| progress.call1(py, (done, total)).map(drop));
            if let Err(error) = told {
                raised.get_or_insert(error);
                cancel.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        };
        let run = Run { threads, cancel };
        let result = HammingBuild { run, ..build }.write(&path, &mut tell);
        match raised {
            Some(error) => Err(Failure::Python(error)),
            None => result
                .map(|()| true)
                .map_err(|error| failure(error, &source_path, &path)),
        }
    })
}

/// An error of the build, about the file that was read or the one that was written.
fn failure(error: likewise_disk::Error, source: &Path, path: &Path) -> Failure {
    use likewise_disk::Error;
    let is_read = matches!(
        error,
        Error::Changed { .. } | Error::Io { action: "read", .. }
    );
    Failure::disk(error, if is_read { source } else { path })
}
