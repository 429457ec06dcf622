//! Which files exist, and which may be deleted?

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::layout::{HAMMING_ENDING, TABLES_ENDING};
use super::open::path_of;
use crate::environment::Files;
use crate::error::{Error, Result};

const PREFIX: &str = "rows-";
/// Suffix of a file that does not have its final name yet.
const UNFINISHED: &str = ".unfinished";

pub(super) fn fresh_name(files: &dyn Files, rows: &Range<u32>) -> String {
    let number = files.name_number();
    format!("{PREFIX}{}-{}-{number:016x}", rows.start, rows.end)
}

/// Returns the name of a file while it is being written.
pub(super) fn temporary_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{UNFINISHED}"))
}

/// Deletes the files of segments that the store no longer lists, as far as possible, and returns the first failure;
/// mapped files on Windows remain for [`delete_orphans`].
pub fn unlink_segments(dir: &Path, files: &dyn Files, names: &[String]) -> Result<()> {
    let mut first = Ok(());
    for name in names {
        // The tables are deleted first: without them, no reader opens the rest.
        for ending in [TABLES_ENDING, HAMMING_ENDING] {
            match files.unlink(&path_of(dir, name, ending)) {
                Err(error) if error.kind() != ErrorKind::NotFound && first.is_ok() => {
                    first = Err(Error::io("delete a segment", error));
                }
                _ => {}
            }
        }
    }
    first
}

/// Deletes the files that a dead writer left, of all segments that are not `live`; returns their number. Only for the
/// writer, while it builds none.
pub fn delete_orphans(dir: &Path, files: &dyn Files, live: &[String]) -> Result<usize> {
    let entries = match files.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries.map_err(|e| Error::io("read the directory of segments", e))?,
    };
    let mut num_deleted = 0;
    for entry in entries {
        if entry.is_file && is_orphan(&entry.name, live) {
            num_deleted += usize::from(files.unlink(&dir.join(&entry.name)).is_ok());
        }
    }
    Ok(num_deleted)
}

pub fn other_names(dir: &Path, files: &dyn Files, live: &[String]) -> Result<Vec<String>> {
    let entries = match files.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| Error::io("read the directory of segments", e))?,
    };
    let is_live = |name: &OsStr| {
        let mut paths = live.iter().flat_map(|live| {
            [TABLES_ENDING, HAMMING_ENDING].map(|ending| path_of(dir, live, ending))
        });
        paths.any(|path| path.file_name() == Some(name))
    };
    let others = entries.iter().filter(|entry| !is_live(&entry.name));
    Ok(others
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect())
}

fn is_orphan(name: &OsStr, live: &[String]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let unfinished = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(UNFINISHED));
    let whole = unfinished.unwrap_or(name);
    let stem = [TABLES_ENDING, HAMMING_ENDING]
        .iter()
        .find_map(|ending| whole.strip_suffix(ending)?.strip_suffix('.'));
    stem.is_some_and(|stem| {
        let is_live = live.iter().any(|live| live == stem);
        stem.starts_with(PREFIX) && (unfinished.is_some() || !is_live)
    })
}

/// Returns the total size of the files of a segment; 0 if they are absent.
pub fn segment_bytes(dir: &Path, files: &dyn Files, name: &str) -> u64 {
    [TABLES_ENDING, HAMMING_ENDING]
        .iter()
        .filter_map(|ending| files.facts(&path_of(dir, name, ending)).ok())
        .map(|found| found.num_bytes)
        .sum()
}
