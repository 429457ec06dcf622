//! What the targets share: files, since the readers read files.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

/// The path of a file of this process and this name.
#[must_use]
pub fn temporary_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("likewise-fuzz-{}-{name}", std::process::id()))
}

/// A new file of these bytes, open for reading and writing.
///
/// # Panics
/// Where the directory for temporary files takes none.
#[must_use]
pub fn temporary(name: &str, bytes: &[u8]) -> File {
    let path = temporary_path(name);
    // Never written in place: the one before may still be mapped.
    let _ = fs::remove_file(&path);
    fs::write(&path, bytes).expect("write");
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .expect("open")
}
