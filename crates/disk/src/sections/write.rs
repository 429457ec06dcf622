//! How are consecutive sections written?

use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use super::{BLOCK_BYTES, Section};
use crate::error::Error;

/// Bytes buffered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// A file to which sections are appended.
pub(crate) struct SectionStream<'a, W: Write> {
    file: BufWriter<W>,
    at: u64,
    /// Alignment of sections, in bytes.
    alignment: u64,
    cancel: &'a AtomicBool,
}

impl<'a, W: Write + Seek> SectionStream<'a, W> {
    /// Starts writing at byte `at` of the file.
    pub(crate) fn new(
        mut file: W,
        at: u64,
        alignment: u64,
        cancel: &'a AtomicBool,
    ) -> Result<Self, Error> {
        file.seek(SeekFrom::Start(at))
            .map_err(|e| Error::io("write", e))?;
        Ok(SectionStream {
            file: BufWriter::with_capacity(WRITE_BYTES, file),
            at,
            alignment,
            cancel,
        })
    }

    /// The current end position.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Canceled);
        }
        self.at += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(|e| Error::io("write", e))
    }

    pub(crate) fn align(&mut self) -> Result<(), Error> {
        let padding = self.at.next_multiple_of(self.alignment) - self.at;
        self.put(&vec![0; padding as usize])
    }

    /// Writes bytes, followed by the checksums of their blocks.
    pub(crate) fn section(&mut self, bytes: &[u8]) -> Result<Section, Error> {
        self.align()?;
        let offset = self.at;
        let mut checksums = Vec::new();
        for block in bytes.chunks(BLOCK_BYTES) {
            checksums.extend(xxh3_64(block).to_le_bytes());
            self.put(block)?;
        }
        let num_bytes = self.at - offset;
        self.put(&checksums)?;
        Ok(Section {
            offset,
            num_bytes,
            checksum: xxh3_64(&checksums),
        })
    }

    /// Same as [`section`](Self::section), for words.
    pub(crate) fn words(&mut self, words: &[u64]) -> Result<Section, Error> {
        self.section(words.as_bytes())
    }

    /// Returns the file after flushing everything.
    pub(crate) fn into_file(self) -> Result<W, Error> {
        self.file
            .into_inner()
            .map_err(|e| Error::io("write", e.into_error()))
    }
}
