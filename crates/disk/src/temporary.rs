//! A file of a name that nobody else has, deleted when it is dropped.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Tells the files of one process apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(crate) struct TemporaryFile {
    /// Open for reading and writing.
    pub(crate) file: File,
    path: PathBuf,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file that cannot be deleted stays in the caller's folder, which the caller deletes.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl TemporaryFile {
    /// A new, empty file in the folder; its name begins with `kind`.
    pub(crate) fn create(folder: &Path, kind: &str) -> Result<Self, Error> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{kind}-{}-{number}", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| Error::io("create a temporary file", e))?;
        Ok(TemporaryFile { file, path })
    }
}
