//! How is a section of unknown length written?

use likewise_core::parallel::Cancel;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use super::ALIGNMENT;
use crate::error::{Doing, Result};
use crate::position::{read_exact_at, write_all_at};
use crate::sections::{BLOCK_BYTES, Section};
use crate::whole::TemporaryFile;

/// Writes the words of a section in order at a position of a file, and computes the checksums of their blocks.
pub(super) struct SectionWriter<'a> {
    file: &'a File,
    offset: u64,
    at: u64,
    block: Vec<u8>,
    checksums: Vec<u8>,
}

/// Size of a section in bytes, including its checksums.
pub(super) fn section_bytes(num_bytes: u64) -> u64 {
    num_bytes + 8 * num_bytes.div_ceil(BLOCK_BYTES as u64)
}

impl<'a> SectionWriter<'a> {
    /// Starts a section at the next multiple of the alignment.
    pub(super) fn new(file: &'a File, at: u64) -> Self {
        let offset = at.next_multiple_of(ALIGNMENT);
        SectionWriter {
            file,
            offset,
            at: offset,
            block: Vec::with_capacity(BLOCK_BYTES),
            checksums: Vec::new(),
        }
    }

    pub(super) fn start(&self) -> u64 {
        self.offset
    }

    pub(super) fn put(&mut self, words: &[u64]) -> Result<()> {
        let mut bytes = words.as_bytes();
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK_BYTES {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn write_block(&mut self) -> Result<()> {
        self.checksums.extend(xxh3_64(&self.block).to_le_bytes());
        write_all_at(self.file, &self.block, self.at).doing("write")?;
        self.at += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Writes the remaining words and the checksums; returns the section and its end position.
    pub(super) fn finish(mut self) -> Result<(Section, u64)> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        write_all_at(self.file, &self.checksums, self.at).doing("write")?;
        let section = Section {
            offset: self.offset,
            num_bytes: self.at - self.offset,
            checksum: xxh3_64(&self.checksums),
        };
        Ok((section, self.at + self.checksums.len() as u64))
    }
}

/// A temporary file for words that arrive while another section is being written.
pub(super) struct Spool {
    temporary: TemporaryFile,
    at: u64,
    waiting: Vec<u64>,
}

const SPOOL_WORDS: usize = 1 << 15;

impl Spool {
    pub(super) fn new(path: &Path, name: &str) -> Result<Self> {
        let beside = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Spool {
            temporary: TemporaryFile::create(folder, &format!("{beside}.{name}"))?,
            at: 0,
            waiting: Vec::new(),
        })
    }

    pub(super) fn put(&mut self, words: &[u64]) -> Result<()> {
        self.waiting.extend_from_slice(words);
        match self.waiting.len() >= SPOOL_WORDS {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let bytes = self.waiting.as_bytes();
        write_all_at(&self.temporary.file, bytes, self.at).doing("write")?;
        self.at += bytes.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Writes all words as a section after byte `at` of a file; returns the section and its end position.
    pub(super) fn copy_to(
        mut self,
        file: &File,
        at: u64,
        cancel: &AtomicBool,
    ) -> Result<(Section, u64)> {
        self.flush()?;
        let mut section = SectionWriter::new(file, at);
        let mut words = vec![0; SPOOL_WORDS];
        let mut done = 0;
        while done < self.at {
            cancel.check()?;
            let num_bytes = (self.at - done).min(8 * SPOOL_WORDS as u64);
            let words = &mut words[..num_bytes as usize / 8];
            read_exact_at(&self.temporary.file, words.as_mut_bytes(), done).reading(done)?;
            section.put(words)?;
            done += num_bytes;
        }
        section.finish()
    }
}
