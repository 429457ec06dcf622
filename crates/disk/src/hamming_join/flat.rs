//! How are fingerprints partitioned into files?

use likewise_core::parallel::Cancel;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use likewise_hamming::Fingerprints;
use likewise_hamming::join::{JoinSide, PartOf};
use likewise_hamming::plan::Key;

use crate::error::{Doing, Result};
use crate::fingerprints::FlatFingerprints;
use crate::position::{read_exact_at, write_all_at};
use crate::whole::TemporaryFile;

/// Bytes read at a time.
const READ_BYTES: usize = 4 << 20;

/// Fingerprints that were read, and their rows.
pub(super) struct Rows {
    pub(super) words: Vec<u64>,
    pub(super) rows: Vec<u32>,
}

impl Rows {
    fn with_capacity(num: usize, num_words: usize) -> Self {
        Rows {
            words: Vec::with_capacity(num_words * num),
            rows: Vec::with_capacity(num),
        }
    }

    pub(super) fn side(&self, bits: u32) -> JoinSide<'_> {
        JoinSide {
            rows: Some(&self.rows),
            ..JoinSide::of(Fingerprints::new(&self.words, bits))
        }
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

/// A file of records. A record is the row as 32 bits, then the words, little-endian.
pub(super) struct Spilled {
    temporary: TemporaryFile,
    num_words: usize,
    len: usize,
}

impl Part<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Part::Flat(file) => file.len,
            Part::Spilled(spilled) => spilled.len,
        }
    }

    /// Reads the fingerprints from position `start` to `end`.
    pub(super) fn read(&self, start: usize, end: usize, cancel: &AtomicBool) -> Result<Rows> {
        match self {
            Part::Flat(file) => {
                let mut rows = Rows::with_capacity(end - start, file.num_words());
                file.each(start..end, &mut Vec::new(), cancel, |first, words| {
                    rows.words.extend_from_slice(words);
                    let num = (words.len() / file.num_words()) as u32;
                    rows.rows.extend(first..first + num);
                    Ok(())
                })?;
                Ok(rows)
            }
            Part::Spilled(spilled) => spilled.read(start, end, cancel),
        }
    }
}

impl Spilled {
    fn read(&self, start: usize, end: usize, cancel: &AtomicBool) -> Result<Rows> {
        let record_bytes = 4 + 8 * self.num_words;
        let step = READ_BYTES / record_bytes;
        let mut bytes = vec![0; step.min(end - start) * record_bytes];
        let mut rows = Rows::with_capacity(end - start, self.num_words);
        for start in (start..end).step_by(step) {
            cancel.check()?;
            let bytes = &mut bytes[..((start + step).min(end) - start) * record_bytes];
            let offset = (start * record_bytes) as u64;
            read_exact_at(&self.temporary.file, bytes, offset).reading(offset)?;
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
    let mut parts = (0..1 << num_bits)
        .map(|_| {
            Ok(Spilled {
                temporary: TemporaryFile::create(folder, name)?,
                num_words: W,
                len: 0,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    let full = (buffer_bytes >> num_bits).clamp(MIN_BUFFER, MAX_BUFFER);
    let mut buffers: Vec<Vec<u8>> = vec![Vec::with_capacity(full + 64); parts.len()];
    source.each(0..source.len, &mut Vec::new(), cancel, |first, words| {
        for (row, code) in (first..).zip(words.as_chunks::<W>().0) {
            let number = part_of.part(code);
            let buffer = &mut buffers[number];
            buffer.extend(row.to_le_bytes());
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
        write_all_at(&self.temporary.file, buffer, offset).doing("write")?;
        self.len += buffer.len() / record_bytes;
        buffer.clear();
        Ok(())
    }
}
