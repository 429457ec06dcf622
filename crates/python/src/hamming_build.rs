//! Index files built from more fingerprints than memory can hold.

use std::fs::File;
use std::path::{Path, PathBuf};

use likewise_disk::hamming_file::{HammingBuild, IndexSource};
use likewise_hamming::plan::{Key, SearchPlan};
use pyo3::prelude::*;

use crate::array::take;
use crate::door::{LONG_BYTES, Object, parse_isa, run};
use crate::errors::{Failure, Result};

/// A flat file of fingerprints: path, first byte, number of fingerprints, and the rows of empty texts.
pub(crate) type GivenFile<'py> = (PathBuf, u64, u64, Object<'py>);
pub(crate) type Keys = Vec<([u64; 4], u32)>;

pub(crate) fn open_source(
    (path, offset, len, empty_rows): &GivenFile<'_>,
    bits: u32,
) -> Result<IndexSource> {
    take!(empty_rows: u32);
    let file = File::open(path).map_err(|error| Failure::system(error, path))?;
    IndexSource::new(file, *offset, *len, bits, empty_rows.to_vec())
        .map(|source| source.named(path.clone()))
        .map_err(|error| Failure::disk(error, path))
}

/// Keys of the plan for the fingerprints of a file; the cheapest plan if none are given.
#[pyfunction]
#[pyo3(signature = (source, bits, *, within, with_rows=true, memory_bytes=None))]
pub fn plan_hamming_file(
    py: Python<'_>,
    source: GivenFile<'_>,
    bits: u32,
    within: u32,
    with_rows: bool,
    memory_bytes: Option<f64>,
) -> Result<Keys> {
    let path = source.0.clone();
    let source = open_source(&source, bits)?;
    let plan = run(py, LONG_BYTES, |cancel| {
        source
            .plan(within, with_rows, memory_bytes, cancel)
            .map_err(|error| Failure::disk(error, &path))
    })?;
    Ok(plan
        .keys()
        .iter()
        .map(|key| (key.mask, key.radius))
        .collect())
}

/// Builds an index file. Before anything is written, `check` receives the bytes of the file and of the temporary files
/// next to it; `progress` receives how many fingerprints were read, and the total.
#[pyfunction]
#[pyo3(signature = (source, bits, path, extra, ids=None, *, within, keys, with_rows, memory_bytes, check, progress, threads=1, isa=None))]
pub fn build_hamming_file(
    py: Python<'_>,
    source: GivenFile<'_>,
    bits: u32,
    path: PathBuf,
    extra: &str,
    ids: Option<&[u8]>,
    within: u32,
    keys: Keys,
    with_rows: bool,
    memory_bytes: usize,
    check: Object<'_>,
    progress: Py<PyAny>,
    threads: usize,
    isa: Option<&str>,
) -> Result<()> {
    let isa = parse_isa(isa)?;
    let source_path = source.0.clone();
    let source = open_source(&source, bits)?;
    let key = |(mask, radius)| Key { mask, radius };
    let plan = SearchPlan::new(bits, within, keys.into_iter().map(key).collect())?;
    let never = std::sync::atomic::AtomicBool::new(false);
    let build = HammingBuild {
        source: &source,
        plan,
        with_rows,
        ids,
        extra,
        memory_bytes,
        threads,
        isa,
        cancel: &never,
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
        let build = HammingBuild { cancel, ..build };
        let result = build.write(&path, &mut tell);
        match raised {
            Some(error) => Err(Failure::Python(error)),
            None => result.map_err(|error| failure(error, &source_path, &path)),
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
