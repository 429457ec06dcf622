//! How is a column of numbers stored in a file that is written once and then mapped?

use std::io::Write;
use std::path::Path;

use memmap2::Mmap;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::{Error, Result};
use crate::temporary::TemporaryFile;

/// A file that numbers are appended to. It is deleted when it is dropped.
pub(super) struct ColumnFile {
    spilled: TemporaryFile,
    num_bytes: usize,
}

/// The numbers of a file, mapped.
#[derive(Debug)]
pub(super) struct Column {
    /// `None` if the file is empty: an empty file cannot be mapped.
    map: Option<Mmap>,
}

impl ColumnFile {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        Ok(ColumnFile {
            spilled: TemporaryFile::create(folder, "bands")?,
            num_bytes: 0,
        })
    }

    /// Number of values of `value_bytes` bytes written so far.
    pub(super) fn len(&self, value_bytes: usize) -> usize {
        self.num_bytes / value_bytes
    }

    pub(super) fn append<T: IntoBytes + Immutable>(&mut self, values: &[T]) -> Result<()> {
        let bytes = values.as_bytes();
        self.spilled
            .file
            .write_all(bytes)
            .map_err(|e| Error::io("write", e))?;
        self.num_bytes += bytes.len();
        Ok(())
    }

    /// Maps the file and removes its name.
    pub(super) fn map(self) -> Result<Column> {
        if self.num_bytes == 0 {
            return Ok(Column { map: None });
        }
        // SAFETY: the file was created here, no other code knows it, and `self` is consumed, so nothing writes to it
        // afterward.
        let map = unsafe { Mmap::map(&self.spilled.file) }.map_err(|e| Error::io("map", e))?;
        Ok(Column { map: Some(map) })
    }
}

impl Column {
    pub(super) fn num_bytes(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }

    pub(super) fn u32s(&self) -> &[u32] {
        self.values()
    }

    pub(super) fn u64s(&self) -> &[u64] {
        self.values()
    }

    /// A mapping starts at a page boundary and holds whole values, as they were appended.
    fn values<T: FromBytes + Immutable>(&self) -> &[T] {
        self.map
            .as_ref()
            .and_then(|map| <[T]>::ref_from_bytes(map).ok())
            .unwrap_or(&[])
    }
}
