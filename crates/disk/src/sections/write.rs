//! How are consecutive sections written?

use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use super::{BLOCK_BYTES, Section};
use crate::error::{Error, Result};

/// Bytes buffered before they are written.
const WRITE_BYTES: usize = 1 << 20;

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
    ) -> Result<Self> {
        file.seek(SeekFrom::Start(at))
            .map_err(|e| Error::io("write", e))?;
        Ok(SectionStream {
            file: BufWriter::with_capacity(WRITE_BYTES, file),
            at,
            alignment,
            cancel,
        })
    }

    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Canceled);
        }
        self.at += bytes.len() as u64;
        self.file
            .write_all(bytes)
            .map_err(|e| Error::io("write", e))
    }

    pub(crate) fn align(&mut self) -> Result<()> {
        let padding = self.at.next_multiple_of(self.alignment) - self.at;
        self.put(&vec![0; padding as usize])
    }

    /// Writes bytes, followed by the checksums of their blocks.
    pub(crate) fn section(&mut self, bytes: &[u8]) -> Result<Section> {
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

    pub(crate) fn words(&mut self, words: &[u64]) -> Result<Section> {
        self.section(words.as_bytes())
    }

    pub(crate) fn into_file(self) -> Result<W> {
        self.file
            .into_inner()
            .map_err(|e| Error::io("write", e.into_error()))
    }
}
