//! Sections of a file, with a checksum for each block: how they are written, mapped and checked.

use likewise_core::parallel::Cancel;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use likewise_hamming::index::{Guard, SharedBytes, Words};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use crate::environment::Fault;
use crate::error::{Doing, Error, Result};

/// Bytes covered by one checksum.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// The location of a section and the checksum of its block checksums.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) num_bytes: u64,
    /// XXH3 of the block checksums, which follow the section as 64-bit numbers.
    pub(crate) checksum: u64,
}

impl Section {
    pub(crate) fn checksums_offset(&self) -> u64 {
        self.offset.saturating_add(self.num_bytes)
    }
}

/// The first damage found in an open file.
#[derive(Debug, Clone, Default)]
pub struct Damage {
    reason: Arc<OnceLock<String>>,
    fault: Fault,
}

impl Damage {
    /// Creates a record without damage for a file with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Damage {
            reason: Arc::default(),
            fault: Fault::of(bytes),
        }
    }

    /// Checks whether the file has changed. Cost: about half a microsecond.
    pub fn look(&self) {
        self.fault.look();
    }

    /// Whether the file was changed or could not be read. If so, nothing read from it since can be used.
    pub fn is_unreadable(&self) -> bool {
        self.fault.is_set()
    }

    /// The damage, if any was found.
    pub fn reason(&self) -> Option<&str> {
        if self.is_unreadable() {
            self.note(|| {
                "it was changed while it was in use, or its disk could not be read".to_owned()
            });
        }
        self.reason.get().map(String::as_str)
    }

    /// Records damage, unless some was recorded before.
    pub(crate) fn note(&self, reason: impl FnOnce() -> String) {
        self.reason.get_or_init(reason);
    }
}

pub(crate) fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged {
        reason: reason.into(),
    }
}

fn damaged_block(name: &str, section: Section, number: usize) -> String {
    format!(
        "block {number} of {name} is damaged, at byte {}",
        section.offset + (number * BLOCK_BYTES) as u64
    )
}

#[derive(Clone)]
pub(crate) struct Sections {
    /// All bytes of the file.
    bytes: SharedBytes,
    /// Whether all blocks have been checked.
    is_verified: bool,
    pub(crate) damage: Damage,
}

impl Sections {
    /// Opens the sections of a file.
    pub(crate) fn new(bytes: SharedBytes, is_verified: bool) -> Self {
        let damage = Damage::of(bytes.as_ref().as_ref());
        Sections {
            bytes,
            is_verified,
            damage,
        }
    }

    pub(crate) fn all(&self) -> &[u8] {
        self.bytes.as_ref().as_ref()
    }

    /// Returns the 64-bit number at a byte of the file. Panics if it reaches beyond the end.
    pub(crate) fn number(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.all()[at + i]))
    }

    pub(crate) fn part(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let offset = usize::try_from(offset).ok()?;
        let len = usize::try_from(len).ok()?;
        self.all().get(offset..offset.checked_add(len)?)
    }

    pub(crate) fn bytes_of(&self, name: &str, section: Section) -> Result<&[u8]> {
        self.part(section.offset, section.num_bytes)
            .ok_or_else(|| damaged(format!("{name} reaches beyond the end")))
    }

    pub(crate) fn checksums(&self, name: &str, section: Section) -> Result<&[u8]> {
        let num_blocks = section.num_bytes.div_ceil(BLOCK_BYTES as u64);
        self.bytes_of(name, section)
            .ok()
            .and_then(|_| self.part(section.checksums_offset(), 8 * num_blocks))
            .filter(|checksums| xxh3_64(checksums) == section.checksum)
            .ok_or_else(|| damaged(format!("the checksums of {name} are damaged")))
    }

    /// Checks every block of a section.
    pub(crate) fn verify(&self, name: &str, section: Section, cancel: &AtomicBool) -> Result<()> {
        let content = self.bytes_of(name, section)?;
        let checksums = self.checksums(name, section)?;
        let blocks = content.chunks(BLOCK_BYTES).zip(checksums.chunks_exact(8));
        for (number, (block, checksum)) in blocks.enumerate() {
            cancel.check()?;
            if xxh3_64(block).to_le_bytes() != checksum {
                return Err(damaged(damaged_block(name, section, number)));
            }
        }
        Ok(())
    }

    /// Returns the words of a section, whose blocks are checked when they are first read.
    pub(crate) fn guarded(&self, name: &str, section: Section) -> Result<Words> {
        let words = self.words(section)?;
        if self.is_verified {
            return Ok(words);
        }
        let (bytes, damage, name) = (self.bytes.clone(), self.damage.clone(), name.to_owned());
        let check = move |number: usize| {
            // Both ranges were found to lie in the file.
            let all: &[u8] = bytes.as_ref().as_ref();
            let content = &all[section.offset as usize..][..section.num_bytes as usize];
            let start = number * BLOCK_BYTES;
            let block = &content[start..content.len().min(start + BLOCK_BYTES)];
            let checksum = &all[section.checksums_offset() as usize + 8 * number..][..8];
            let is_good = xxh3_64(block).to_le_bytes() == checksum;
            if !is_good {
                damage.note(|| damaged_block(&name, section, number));
            }
            is_good
        };
        let num_words = (section.num_bytes / 8) as usize;
        let block_shift = (BLOCK_BYTES / 8).ilog2();
        Ok(words.guarded(Guard::new(num_words, block_shift, Box::new(check))))
    }

    pub(crate) fn words(&self, section: Section) -> Result<Words> {
        let words = usize::try_from(section.offset)
            .ok()
            .filter(|_| section.num_bytes.is_multiple_of(8))
            .and_then(|at| Words::shared(&self.bytes, at, (section.num_bytes / 8) as usize));
        words.ok_or_else(|| damaged("a section reaches beyond the end"))
    }
}

/// Bytes buffered before they are written.
const WRITE_BYTES: usize = 1 << 20;

pub(crate) struct SectionStream<'a, W: Write> {
    file: BufWriter<W>,
    pub(crate) at: u64,
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
        file.seek(SeekFrom::Start(at)).doing("write")?;
        Ok(SectionStream {
            file: BufWriter::with_capacity(WRITE_BYTES, file),
            at,
            alignment,
            cancel,
        })
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.cancel.check()?;
        self.at += bytes.len() as u64;
        self.file.write_all(bytes).doing("write")
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
