//! How does a file get a unique name and leave nothing behind?

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Distinguishes the files of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// An open file that disappears when it is dropped; on Unix, also when the process is killed.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    /// Open for reading and writing.
    pub(crate) file: File,
    /// Its path, on systems that keep the name of an open file.
    path: Option<PathBuf>,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that cannot be deleted remains in the caller's folder, which the caller deletes.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl TemporaryFile {
    /// Creates an empty file in the folder; its name begins with `kind`.
    pub(crate) fn create(folder: &Path, kind: &str) -> Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{kind}-{}-{number}", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| Error::io("create a temporary file", e))?;
        // Without a name, nothing remains of it, however the process ends.
        let is_nameless = cfg!(unix) && std::fs::remove_file(&path).is_ok();
        Ok(TemporaryFile {
            file,
            path: (!is_nameless).then_some(path),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn nothing_is_left_of_it() {
        let folder = std::env::temp_dir().join(format!("likewise-kinds-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let count = || folder.read_dir().unwrap().count();
        let mut files: Vec<TemporaryFile> = (0..3)
            .map(|_| TemporaryFile::create(&folder, "kind").unwrap())
            .collect();
        assert_eq!(count(), if cfg!(unix) { 0 } else { 3 });
        for (number, of) in (0_u8..).zip(&mut files) {
            of.file.write_all(&[number; 9]).unwrap();
        }
        for (number, of) in (0_u8..).zip(&mut files) {
            let mut bytes = Vec::new();
            of.file.rewind().unwrap();
            of.file.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, [number; 9]);
        }
        drop(files);
        assert_eq!(count(), 0);
        std::fs::remove_dir(&folder).unwrap();
    }
}
