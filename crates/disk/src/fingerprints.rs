//! How are fingerprints read from a flat file, to be indexed or joined?

use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use likewise_core::error::invalid_if;
use likewise_core::parallel::Cancel;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{plan_for_sample, sample_step};
use likewise_hamming::plan::SearchPlan;
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zerocopy::IntoBytes;

use crate::error::{Doing, Error, Result};
use crate::position::read_exact_at;

/// Maximum number of rows of an index: rows are numbered with 32 bits, and so is the end of the last row.
pub const MAX_ROWS: u64 = u32::MAX as u64 - 1;
/// Bytes read at a time.
const READ_BYTES: usize = 4 << 20;
/// Maximum number of rows read at a time; for wider rows it is smaller by a power of two.
pub(crate) const MAX_READ_ROWS: usize = READ_BYTES / 8;

/// Fingerprints in a flat file: `bits.div_ceil(64)` little-endian words each, from a given byte of the file on.
#[derive(Debug)]
pub struct FlatFingerprints {
    file: File,
    offset: u64,
    /// Number of rows, including those of empty texts.
    pub len: usize,
    pub bits: u32,
    /// Rows of empty texts, ascending; their words are ignored.
    empty_rows: Vec<u32>,
    /// Metadata of the file when it was opened.
    metadata: Metadata,
    path: Option<PathBuf>,
    /// Checksum of all bytes of the fingerprints, as read by the first pass.
    checksum: OnceLock<u64>,
}

impl FlatFingerprints {
    /// [`new`](Self::new) for an index, which holds at most [`MAX_ROWS`].
    pub fn for_index(
        file: File,
        offset: u64,
        len: u64,
        bits: u32,
        empty_rows: Vec<u32>,
    ) -> Result<Self> {
        invalid_if(len > MAX_ROWS, "fingerprints", || {
            format!("{len}; an index holds at most {MAX_ROWS}")
        })?;
        Self::new(file, offset, len, bits, empty_rows)
    }

    /// Opens the `len` fingerprints from byte `offset` on; rows of empty texts ascend, below `len`.
    pub fn new(file: File, offset: u64, len: u64, bits: u32, empty_rows: Vec<u32>) -> Result<Self> {
        invalid_if(
            !(32..=256).contains(&bits) || !bits.is_multiple_of(32),
            "bits",
            || format!("{bits} is not a multiple of 32 from 32 to 256"),
        )?;
        let is_rising = empty_rows.is_sorted_by(|a, b| a < b);
        invalid_if(
            !is_rising || empty_rows.last().is_some_and(|&row| u64::from(row) >= len),
            "empty_rows",
            || format!("must be ascending and below {len}"),
        )?;
        let metadata = file.metadata().doing("read the size")?;
        if !metadata.is_file() {
            return Err(Error::NotRegular);
        }
        let size = metadata.len();
        let end = offset + len * 8 * u64::from(bits.div_ceil(64));
        if size < end {
            return Err(Error::Changed {
                offset: size,
                reason: format!("{end} bytes are needed for {len} fingerprints"),
            });
        }
        Ok(FlatFingerprints {
            file,
            offset,
            len: len as usize,
            bits,
            empty_rows,
            metadata,
            path: None,
            checksum: OnceLock::new(),
        })
    }

    /// Sets the path of the file, which must still refer to it when everything has been read.
    #[must_use]
    pub fn named(self, path: PathBuf) -> Self {
        FlatFingerprints {
            path: Some(path),
            ..self
        }
    }

    /// Rejects a file whose size, time or inode has changed since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let now = match &self.path {
            Some(path) => std::fs::metadata(path),
            None => self.file.metadata(),
        };
        let is_same = now.is_ok_and(|now| {
            now.len() == self.metadata.len()
                && now.modified().ok() == self.metadata.modified().ok()
                && is_same_file(&now, &self.metadata)
        });
        match is_same {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    /// Rejects a pass over all rows whose checksum differs from that of the first pass.
    pub(crate) fn check_pass(&self, checksum: u64) -> Result<()> {
        match *self.checksum.get_or_init(|| checksum) == checksum {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of fingerprints: rows other than those of empty texts.
    pub fn num_fingerprints(&self) -> usize {
        self.len - self.empty_rows.len()
    }

    /// Returns the plan that a set in memory of the same fingerprints would choose.
    pub fn plan(
        &self,
        within: u32,
        with_rows: bool,
        memory_bytes: Option<f64>,
        cancel: &AtomicBool,
    ) -> Result<SearchPlan> {
        let num_words = self.num_words();
        let num = self.num_fingerprints();
        let mut words = Vec::new();
        let mut empty = self.empty_rows.iter().copied().peekable();
        let mut num_before = 0;
        for number in (0..num).step_by(sample_step(num)) {
            // Empty texts before the row of fingerprint `number`.
            while empty
                .next_if(|&row| row as usize <= number + num_before)
                .is_some()
            {
                num_before += 1;
            }
            let mut code = [0_u64; 4];
            let offset = self.byte_of(number + num_before);
            read_exact_at(&self.file, code[..num_words].as_mut_bytes(), offset).reading(offset)?;
            words.extend_from_slice(&code[..num_words]);
        }
        let sample = Fingerprints::new(&words, self.bits);
        Ok(plan_for_sample(
            sample,
            num,
            within,
            with_rows,
            memory_bytes,
            cancel,
        )?)
    }

    /// Rows of empty texts, ascending.
    pub(crate) fn empty_rows(&self) -> &[u32] {
        &self.empty_rows
    }

    /// Returns the words of about `num_rows` rows, a few from each of many places.
    pub(crate) fn sample(&self, num_rows: usize) -> Result<Vec<u64>> {
        let stretch = num_rows.div_ceil(64).min(self.len);
        let mut words = vec![0; 64 * stretch * self.num_words()];
        let parts = words.chunks_exact_mut((stretch * self.num_words()).max(1));
        for (place, part) in parts.enumerate() {
            self.read((self.len - stretch) / 64 * place, part.as_mut_bytes())?;
        }
        Ok(words)
    }

    pub(crate) fn num_words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    /// Fills `bytes` from the fingerprint of `row` on.
    pub(crate) fn read(&self, row: usize, bytes: &mut [u8]) -> Result<()> {
        let offset = self.byte_of(row);
        read_exact_at(&self.file, bytes, offset).reading(offset)
    }

    fn byte_of(&self, row: usize) -> u64 {
        self.offset + 8 * (row * self.num_words()) as u64
    }

    /// The last row whose text is not empty.
    pub(crate) fn last_row(&self) -> Option<u32> {
        let mut last = self.len;
        for &row in self.empty_rows.iter().rev() {
            if row as usize + 1 != last {
                break;
            }
            last -= 1;
        }
        last.checked_sub(1).map(|row| row as u32)
    }

    /// Returns a bit for each row of an empty text before the last fingerprint: rows that no search finds.
    pub(crate) fn missing_rows(&self) -> Vec<u64> {
        let mut bits = Vec::new();
        let last = self.last_row().unwrap_or(0);
        for &row in self.empty_rows.iter().take_while(|&&row| row < last) {
            let word = row as usize / 64;
            if bits.len() <= word {
                bits.resize(word + 1, 0);
            }
            bits[word] |= 1 << (row % 64);
        }
        bits
    }

    /// Passes the fingerprints of a range to `take`, in runs without empty texts, each with its first row. Returns a
    /// sum of checksums that does not depend on how rows are divided at multiples of [`MAX_READ_ROWS`].
    pub(crate) fn each(
        &self,
        range: Range<usize>,
        words: &mut Vec<u64>,
        cancel: &AtomicBool,
        mut take: impl FnMut(u32, &[u64]) -> Result<()>,
    ) -> Result<u64> {
        let num_words = self.num_words();
        let step = MAX_READ_ROWS / num_words.next_power_of_two();
        let mut checksum = 0_u64;
        for start in range.clone().step_by(step) {
            cancel.check()?;
            let end = (start + step).min(range.end);
            words.resize((end - start) * num_words, 0);
            let offset = self.byte_of(start);
            read_exact_at(&self.file, words.as_mut_bytes(), offset).reading(offset)?;
            checksum = checksum.wrapping_add(xxh3_64_with_seed(words.as_bytes(), start as u64));
            let from = self
                .empty_rows
                .partition_point(|&row| (row as usize) < start);
            let mut at = start;
            for &row in &self.empty_rows[from..] {
                let row = row as usize;
                if row >= end {
                    break;
                }
                if row > at {
                    take(
                        at as u32,
                        &words[(at - start) * num_words..(row - start) * num_words],
                    )?;
                }
                at = row + 1;
            }
            if at < end {
                take(at as u32, &words[(at - start) * num_words..])?;
            }
        }
        Ok(checksum)
    }

    /// Rejects fingerprints with a bit beyond the width.
    pub(crate) fn check_width(&self, codes: &[u64]) -> Result<()> {
        let used = self.bits % 64;
        if used == 0 {
            return Ok(());
        }
        let last = codes
            .iter()
            .skip(self.num_words() - 1)
            .step_by(self.num_words());
        match last.fold(0, |all, word| all | word) >> used {
            0 => Ok(()),
            _ => Err(Error::invalid(
                "fingerprints",
                format!(
                    "a bit beyond the {} bits of a fingerprint is set",
                    self.bits
                ),
            )),
        }
    }
}

pub(crate) fn changed() -> Error {
    Error::Changed {
        offset: 0,
        reason: "its fingerprints changed between two passes".to_owned(),
    }
}

#[cfg(unix)]
fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}
