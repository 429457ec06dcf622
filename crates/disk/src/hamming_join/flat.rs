//! How are fingerprints read from a flat file?

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use likewise_hamming::Fingerprints;
use likewise_hamming::join::JoinSide;

use crate::error::{Error, Result};
use crate::position::read_exact_at;

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
        if len > 1 << 31 {
            return Err(Error::invalid(
                "fingerprints",
                format!("{len} rows; at most 2147483648 are joined"),
            ));
        }
        let is_rising = empty_rows.is_sorted_by(|a, b| a < b);
        if !is_rising || empty_rows.last().is_some_and(|&row| row as usize >= len) {
            return Err(Error::invalid(
                "empty_rows",
                format!("must be ascending and below {len}"),
            ));
        }
        let size = file
            .metadata()
            .map_err(|e| Error::io("read the size", e))?
            .len();
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
        read_exact_at(&self.file, &mut bytes, offset).map_err(|e| Error::read(e, offset))?;
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
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Canceled);
            }
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
