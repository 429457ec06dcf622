//! How are fingerprints read from a flat file?

use likewise_core::error::invalid_if;
use likewise_core::parallel::Cancel;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use likewise_hamming::Fingerprints;
use likewise_hamming::join::{JoinSide, PartOf};
use likewise_hamming::plan::Key;

use crate::error::{Doing, Error, Result};
use crate::position::{read_exact_at, write_all_at};

/// Bytes read at a time.
const READ_BYTES: usize = 4 << 20;

/// Consecutive fingerprints in a file: `words` little-endian 64-bit numbers each, word 0 lowest, from byte `offset` on.
#[derive(Debug)]
pub struct FlatFingerprints {
    file: File,
    offset: u64,
    len: usize,
    num_words: usize,
    empty_rows: Vec<u32>,
}

/// Fingerprints that were read, and their rows.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) words: Vec<u64>,
    pub(super) rows: Vec<u32>,
}

impl Rows {
    pub(super) fn side(&self, bits: u32) -> JoinSide<'_> {
        JoinSide {
            rows: Some(&self.rows),
            ..JoinSide::of(Fingerprints {
                words: &self.words,
                bits,
            })
        }
    }
}

impl FlatFingerprints {
    /// Opens the fingerprints of a file, at most 2^31; `empty_rows`, ascending, are the rows of empty texts.
    pub fn new(
        file: File,
        offset: u64,
        len: usize,
        num_words: usize,
        empty_rows: Vec<u32>,
    ) -> Result<Self> {
        invalid_if(len > 1 << 31, "fingerprints", || {
            format!("{len} rows; at most 2147483648 are joined")
        })?;
        let is_rising = empty_rows.is_sorted_by(|a, b| a < b);
        invalid_if(
            !is_rising || empty_rows.last().is_some_and(|&row| row as usize >= len),
            "empty_rows",
            || format!("must be ascending and below {len}"),
        )?;
        let size = file.metadata().doing("read the size")?.len();
        let end = offset + 8 * (len * num_words) as u64;
        if size < end {
            return Err(Error::Changed {
                offset: size,
                reason: format!("{end} bytes are needed for {len} fingerprints"),
            });
        }
        Ok(FlatFingerprints {
            file,
            offset,
            len,
            num_words,
            empty_rows,
        })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Rows of empty texts, ascending.
    pub fn empty_rows(&self) -> &[u32] {
        &self.empty_rows
    }

    pub(super) fn num_words(&self) -> usize {
        self.num_words
    }

    /// Whether the text of a row is empty.
    pub(super) fn is_empty_row(&self, row: usize) -> bool {
        !self.empty_rows.is_empty() && self.empty_rows.binary_search(&(row as u32)).is_ok()
    }

    /// Appends the words of the rows from `start` to `end`.
    fn read_words(&self, start: usize, end: usize, words: &mut Vec<u64>) -> Result<()> {
        let mut bytes = vec![0; 8 * self.num_words * (end - start)];
        let offset = self.offset + 8 * (self.num_words * start) as u64;
        read_exact_at(&self.file, &mut bytes, offset).reading(offset)?;
        words.extend(
            bytes
                .as_chunks::<8>()
                .0
                .iter()
                .map(|&word| u64::from_le_bytes(word)),
        );
        Ok(())
    }

    /// Passes the words of all rows to `take`, some megabytes at a time, with the first row of each run.
    pub(super) fn each(
        &self,
        range: std::ops::Range<usize>,
        cancel: &AtomicBool,
        mut take: impl FnMut(usize, &[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut words = Vec::new();
        let step = READ_BYTES / 8 / self.num_words;
        for start in range.clone().step_by(step) {
            cancel.check()?;
            words.clear();
            self.read_words(start, (start + step).min(range.end), &mut words)?;
            take(start, &words)?;
        }
        Ok(())
    }

    /// Reads the rows from `start` to `end`, except those of empty texts.
    pub(super) fn read_part(&self, start: usize, end: usize, cancel: &AtomicBool) -> Result<Rows> {
        let mut rows = Rows::default();
        rows.words.reserve(self.num_words * (end - start));
        rows.rows.reserve(end - start);
        self.each(start..end, cancel, |first, words| {
            for (index, code) in words.chunks_exact(self.num_words).enumerate() {
                if !self.is_empty_row(first + index) {
                    rows.words.extend(code);
                    rows.rows.push((first + index) as u32);
                }
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns the words of rows sampled from the whole file.
    pub(super) fn sample(&self, num_rows: usize) -> Result<Vec<u64>> {
        // A few rows from each of many places.
        let stretch = num_rows.div_ceil(64).min(self.len);
        let mut words = Vec::new();
        for place in 0..64 {
            let start = (self.len - stretch) / 64 * place;
            self.read_words(start, start + stretch, &mut words)?;
        }
        Ok(words)
    }
}

/// Minimum and maximum number of bytes buffered for a file before they are written.
const MIN_BUFFER: usize = 4 << 10;
const MAX_BUFFER: usize = 1 << 20;

/// Fingerprints that are joined together.
pub(super) enum Part<'a> {
    /// All fingerprints of an input file.
    Flat(&'a FlatFingerprints),
    /// The fingerprints with one value of the first bits of a key.
    Spilled(Spilled),
}

/// A file of records, deleted on drop. A record is the row as 32 bits, then the words, little-endian.
pub(super) struct Spilled {
    file: File,
    path: PathBuf,
    num_words: usize,
    len: usize,
}

impl Drop for Spilled {
    fn drop(&mut self) {
        // A file that cannot be deleted remains in the caller's folder, which the caller deletes.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl<'a> Part<'a> {
    pub(super) fn of_flat(file: &'a FlatFingerprints) -> Self {
        Part::Flat(file)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Part::Flat(file) => file.len(),
            Part::Spilled(spilled) => spilled.len,
        }
    }

    /// Reads the fingerprints from position `start` to `end`.
    pub(super) fn read(&self, start: usize, end: usize, cancel: &AtomicBool) -> Result<Rows> {
        match self {
            Part::Flat(file) => file.read_part(start, end, cancel),
            Part::Spilled(spilled) => spilled.read(start, end, cancel),
        }
    }
}

impl Spilled {
    fn read(&self, start: usize, end: usize, cancel: &AtomicBool) -> Result<Rows> {
        let record_bytes = 4 + 8 * self.num_words;
        let step = READ_BYTES / record_bytes;
        let mut bytes = vec![0; step.min(end - start) * record_bytes];
        let mut rows = Rows::default();
        rows.words.reserve(self.num_words * (end - start));
        rows.rows.reserve(end - start);
        for start in (start..end).step_by(step) {
            cancel.check()?;
            let bytes = &mut bytes[..((start + step).min(end) - start) * record_bytes];
            let offset = (start * record_bytes) as u64;
            read_exact_at(&self.file, bytes, offset).reading(offset)?;
            for record in bytes.chunks_exact(record_bytes) {
                let (row, words) = record.split_at(4);
                rows.rows
                    .extend(row.as_chunks().0.iter().map(|&row| u32::from_le_bytes(row)));
                rows.words.extend(
                    words
                        .as_chunks()
                        .0
                        .iter()
                        .map(|&word| u64::from_le_bytes(word)),
                );
            }
        }
        Ok(rows)
    }
}

/// Partitions the fingerprints, without those of empty texts, into files by the first `num_bits` bits of the key.
pub(super) fn spill<'a>(
    source: &FlatFingerprints,
    key: &Key,
    num_bits: u32,
    (folder, name): (&Path, &str),
    buffer_bytes: usize,
    cancel: &AtomicBool,
) -> Result<Vec<Part<'a>>> {
    match source.num_words() {
        1 => spill_words::<1>(source, key, num_bits, (folder, name), buffer_bytes, cancel),
        2 => spill_words::<2>(source, key, num_bits, (folder, name), buffer_bytes, cancel),
        3 => spill_words::<3>(source, key, num_bits, (folder, name), buffer_bytes, cancel),
        _ => spill_words::<4>(source, key, num_bits, (folder, name), buffer_bytes, cancel),
    }
}

fn spill_words<'a, const W: usize>(
    source: &FlatFingerprints,
    key: &Key,
    num_bits: u32,
    (folder, name): (&Path, &str),
    buffer_bytes: usize,
    cancel: &AtomicBool,
) -> Result<Vec<Part<'a>>> {
    let part_of = PartOf::new(key, num_bits);
    let mut parts = Vec::new();
    for number in 0..1_usize << num_bits {
        let path = folder.join(format!("{name}-{number:03}.part"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .doing("create a temporary file")?;
        parts.push(Spilled {
            file,
            path,
            num_words: W,
            len: 0,
        });
    }
    let full = (buffer_bytes >> num_bits).clamp(MIN_BUFFER, MAX_BUFFER);
    let mut buffers: Vec<Vec<u8>> = vec![Vec::with_capacity(full + 64); parts.len()];
    source.each(0..source.len(), cancel, |first, words| {
        for (index, code) in words.as_chunks::<W>().0.iter().enumerate() {
            let row = first + index;
            if source.is_empty_row(row) {
                continue;
            }
            let number = part_of.part(code);
            let buffer = &mut buffers[number];
            buffer.extend((row as u32).to_le_bytes());
            for word in code {
                buffer.extend(word.to_le_bytes());
            }
            if buffer.len() >= full {
                parts[number].append(buffer)?;
            }
        }
        Ok(())
    })?;
    for (part, buffer) in parts.iter_mut().zip(&mut buffers) {
        part.append(buffer)?;
    }
    Ok(parts.into_iter().map(Part::Spilled).collect())
}

impl Spilled {
    fn append(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let record_bytes = 4 + 8 * self.num_words;
        let offset = (self.len * record_bytes) as u64;
        write_all_at(&self.file, buffer, offset).doing("write")?;
        self.len += buffer.len() / record_bytes;
        buffer.clear();
        Ok(())
    }
}
