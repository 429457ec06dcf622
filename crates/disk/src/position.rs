//! How are bytes read and written at a position, independently of the file's cursor?
//!
//! Several threads may use one open file at once.

use std::fs::File;
use std::io;
use std::ops::Range;

use likewise_core::error::invalid_if;
use likewise_core::parallel::Run;

use crate::error::{Doing, Result};

/// Fills `buffer` from byte `offset` of the file on.
#[cfg(unix)]
pub fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Writes all of `buffer` from byte `offset` of the file on.
#[cfg(unix)]
pub fn write_all_at(file: &File, buffer: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, buffer, offset)
}

/// Fills `buffer` from byte `offset` of the file on.
#[cfg(windows)]
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok(num_read) => {
                buffer = &mut buffer[num_read..];
                offset += num_read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `buffer` from byte `offset` of the file on.
#[cfg(windows)]
pub fn write_all_at(file: &File, mut buffer: &[u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, buffer, offset) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(num_written) => {
                buffer = &buffer[num_written..];
                offset += num_written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A buffer with a range of a file, filled for several rows by one read, even across gaps of 8 kB.
#[derive(Default)]
pub struct Window {
    bytes: Vec<u8>,
    start: u64,
    length: usize,
}

/// Maximum gap between two rows that are fetched together, in bytes.
const MAX_GAP: u64 = 8 << 10;

/// Maximum length of a range that is fetched for several rows, in bytes. A longer row is fetched alone.
pub const MAX_WINDOW: u64 = 1 << 20;

impl Window {
    /// Returns the bytes of `(offset, length)`; one read also fetches rows of `next` that follow closely.
    pub fn fetch(
        &mut self,
        file: &File,
        offset: u64,
        length: u64,
        next: impl Iterator<Item = (u64, u64)>,
    ) -> io::Result<&[u8]> {
        if offset < self.start || offset.saturating_add(length) > self.start + self.length as u64 {
            let mut end = offset.saturating_add(length);
            for (next_offset, next_length) in next {
                let next_end = next_offset.saturating_add(next_length);
                if next_offset < end
                    || next_offset - end > MAX_GAP
                    || next_end - offset > MAX_WINDOW
                {
                    break;
                }
                end = next_end;
            }
            let needed = (end - offset) as usize;
            if self.bytes.len() < needed {
                self.bytes.resize(needed, 0);
            }
            // A failed read leaves the window empty instead of half old and half new.
            self.length = 0;
            read_exact_at(file, &mut self.bytes[..needed], offset)?;
            self.start = offset;
            self.length = needed;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.bytes[from..from + length as usize])
    }
}

/// Rows of a file that are read again, in any order.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    pub file: &'a File,
    pub offsets: &'a [u64],
    pub lengths: &'a [u32],
    pub run: Run<'a>,
}

impl Rows<'_> {
    /// Passes each row and its number to `take`, with what `make` returned for the `grain` rows around it, given their
    /// bytes: what reads them, and what is made of them. Returns the latter, in order.
    pub(crate) fn read<S, T: Send>(
        &self,
        grain: usize,
        make: impl Fn(usize) -> Result<(S, T)> + Sync,
        take: impl Fn(&mut (S, T), usize, &[u8]) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let (offsets, lengths) = (self.offsets, self.lengths);
        invalid_if(offsets.len() != lengths.len(), "lengths", || {
            format!("{} lengths for {} offsets", lengths.len(), offsets.len())
        })?;
        let place = |i: usize| (offsets[i], u64::from(lengths[i]));
        let work = |window: &mut Window, range: Range<usize>| {
            let num_bytes = range.clone().map(|i| lengths[i] as usize).sum();
            let mut made = make(num_bytes)?;
            for i in range.clone() {
                let (offset, length) = place(i);
                let next = (i + 1..range.end).map(place);
                let row = window.fetch(self.file, offset, length, next);
                take(&mut made, i, row.reading(offset)?)?;
            }
            Ok(made.1)
        };
        self.run
            .map(offsets.len(), grain, Window::default, work)?
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    struct Reader<'a>(&'a AtomicUsize);

    impl Drop for Reader<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_reads_rows_is_dropped_with_them() {
        let path = std::env::temp_dir().join(format!("likewise-rows-{}", std::process::id()));
        std::fs::write(&path, b"abcdef").unwrap();
        let (stop, num_readers) = (AtomicBool::new(false), AtomicUsize::new(0));
        let rows = Rows {
            file: &File::open(&path).unwrap(),
            offsets: &[4, 0, 2],
            lengths: &[2, 2, 2],
            run: Run::alone(&stop),
        };
        let make = |_| {
            assert_eq!(num_readers.fetch_add(1, Ordering::Relaxed), 0);
            Ok((Reader(&num_readers), Vec::new()))
        };
        let take = |made: &mut (Reader<'_>, Vec<u8>), _: usize, row: &[u8]| {
            made.1.extend(row);
            Ok(())
        };
        assert_eq!(rows.read(1, make, take).unwrap(), [b"ef", b"ab", b"cd"]);
        std::fs::remove_file(&path).unwrap();
    }
}
