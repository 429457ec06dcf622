//! How does a file have its name only when it is complete?

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Lets `write` make and sync a file under a temporary name beside `path`, then renames it and syncs the directory.
///
/// # Errors
/// Those of `write`, and [`Error::Io`]; nothing is left then.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    let temporary = temporary_name(path);
    let result = write(&temporary)
        .and_then(|()| fs::rename(&temporary, path).map_err(|e| Error::io("rename", e)))
        .and_then(|()| sync_directory(path));
    if result.is_err() {
        // The first error says more than one of clearing up.
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.unfinished", std::process::id()))
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> Result<(), Error> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)
        .and_then(|directory| directory.sync_all())
        .map_err(|e| Error::io("sync the directory", e))
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> Result<(), Error> {
    Ok(())
}
