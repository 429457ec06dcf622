//! How is a flat file of fingerprints searched in one sequential pass?
//!
//! A separate thread reads the file by position; it is never mapped.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use likewise_core::isa::Isa;
use likewise_core::parallel::map_filled;
use likewise_hamming::stream::{StreamHits, StreamTables};
use zerocopy::IntoBytes;

use crate::error::Error;
use crate::position::read_exact_at;

/// Bytes per read: large enough for a disk to stream, small enough that the buffers in flight take only a few
/// megabytes.
const READ_BYTES: usize = 4 << 20;

/// Fingerprints in a file: little-endian 64-bit words, row by row, from a given byte on.
#[derive(Debug)]
pub struct FingerprintFile {
    file: File,
    /// First byte of row 0.
    offset: u64,
    /// Words per row.
    num_words: usize,
}

impl FingerprintFile {
    /// Creates a view of rows of `num_words` words, from byte `offset` of the file on.
    pub fn new(file: File, offset: u64, num_words: usize) -> Self {
        FingerprintFile {
            file,
            offset,
            num_words: num_words.max(1),
        }
    }

    /// Returns every hit of these rows. Stops early, after a whole row, if more than `max_hits` are found.
    ///
    /// One thread reads, `threads` threads search. The file is read by position, sequentially, and never mapped.
    ///
    /// # Cost
    /// Memory: `threads + 2` buffers of 4 MiB, and for each thread up to `max_hits` hits of 16 bytes.
    pub fn search(
        &self,
        tables: &StreamTables,
        rows: Range<u64>,
        max_hits: usize,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<StreamHits, Error> {
        if tables.num_words() != self.num_words {
            return Err(Error::invalid(
                "queries",
                format!(
                    "have {} words a fingerprint, the file {}",
                    tables.num_words(),
                    self.num_words
                ),
            ));
        }
        let row_bytes = 8 * self.num_words as u64;
        let rows_a_read = (READ_BYTES as u64 / row_bytes).max(1);
        let first_row = |i: usize| rows.start + i as u64 * rows_a_read;
        let num_hits = AtomicUsize::new(0);
        let fill = |i: usize, buffer: &mut Vec<u64>| {
            let start = first_row(i);
            if start >= rows.end
                || num_hits.load(Ordering::Relaxed) > max_hits
                || cancel.load(Ordering::Relaxed)
            {
                return Ok::<bool, Error>(false);
            }
            let num_rows = rows_a_read.min(rows.end - start);
            buffer.resize(num_rows as usize * self.num_words, 0);
            let at = self.offset + start * row_bytes;
            read_exact_at(&self.file, buffer.as_mut_bytes(), at)
                .map_err(|error| Error::read(error, at))?;
            Ok(true)
        };
        let parts: Result<_, Error> =
            map_filled(threads, cancel, Vec::new, fill, |i, buffer: &Vec<u64>| {
                let found = tables.search_piece(buffer, first_row(i), max_hits, isa);
                if let Ok(found) = &found {
                    num_hits.fetch_add(found.hits.len(), Ordering::Relaxed);
                }
                (buffer.len() / self.num_words, found)
            });
        let mut all = StreamHits::default();
        for (num_rows, part) in parts? {
            let mut part = part?;
            all.hits.append(&mut part.hits);
            all.num_rows += part.num_rows;
            if part.num_rows < num_rows {
                break;
            }
        }
        Ok(all)
    }
}
