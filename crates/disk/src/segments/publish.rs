//! Which files are there, and which may go?

use std::path::Path;

use super::files::Files;
use crate::error::Error;

/// Deletes the files of segments that the store names no longer; files that are there no more are well.
///
/// # Errors
/// [`Error::Io`].
pub fn unlink_segments(dir: &Path, files: &dyn Files, names: &[String]) -> Result<(), Error> {
    let _ = (dir, files, names);
    todo!()
}

/// Deletes the files that a dead writer left: all of segments that are not `live`. Only the writer calls it, while it builds nothing.
///
/// Returns how many there were. Other files, and what cannot be deleted, stay.
///
/// # Errors
/// [`Error::Io`] where the directory cannot be read; one that is not there is well.
pub fn delete_orphans(dir: &Path, files: &dyn Files, live: &[String]) -> Result<usize, Error> {
    let _ = (dir, files, live);
    todo!()
}

/// Bytes of the files of a segment; 0 where they are not there.
pub fn segment_bytes(dir: &Path, name: &str) -> u64 {
    let _ = (dir, name);
    todo!()
}
