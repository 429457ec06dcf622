//! Where may a CSV file be cut so that every piece holds whole records?

use std::fs::File;

use crate::error::Error;
use crate::position::read_exact_at;

/// Bytes read at a time.
const BLOCK_BYTES: u64 = 1 << 20;

/// What the byte before says about the next one; as the `csv-core` reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A field begins: only here a quote opens one.
    FieldStart,
    /// Inside a field without quotes, or behind the closing quote of one.
    Plain,
    /// Inside quotes.
    Quoted,
    /// Behind a quote inside quotes: doubled it stands for itself, else it closed the field.
    QuoteInQuoted,
    /// Behind a carriage return that ended a record; a newline still belongs to it.
    AfterReturn,
}

/// Cuts a file into consecutive pieces that end with a record, scanning it once from front to back.
///
/// It may run ahead of who writes the file: what is not there yet is asked for again.
///
/// # Cost
/// Long quoted texts are passed over at the speed of `memchr`; each plain field costs a few nanoseconds.
pub struct RecordSplitter {
    file: File,
    delimiter: u8,
    state: State,
    block: Vec<u8>,
    /// The next byte of the block to look at, and its position in the file.
    from: usize,
    position: u64,
    piece_start: u64,
}

impl RecordSplitter {
    /// Begins at byte `start`, where a record does.
    pub fn new(file: File, delimiter: u8, start: u64) -> Self {
        RecordSplitter {
            file,
            delimiter,
            state: State::FieldStart,
            block: Vec::new(),
            from: 0,
            position: start,
            piece_start: start,
        }
    }

    /// The next piece `(offset, length)`: it ends with the first record that ends `piece_bytes` or more behind its start.
    /// `None` if no such record ends before byte `limit`. With `is_end`, where `limit` is the end of the file, the last piece
    /// is what is left.
    ///
    /// # Errors
    /// [`Error::Changed`] if the file ends before `limit`; [`Error::Io`].
    pub fn next_piece(
        &mut self,
        limit: u64,
        piece_bytes: u64,
        is_end: bool,
    ) -> Result<Option<(u64, u64)>, Error> {
        let wanted = self.piece_start + piece_bytes;
        while self.position < limit {
            self.fill(limit)?;
            if let Some(end) = self.scan(limit, wanted) {
                return Ok(Some(self.cut(end)));
            }
        }
        match is_end && self.position > self.piece_start {
            true => Ok(Some(self.cut(self.position))),
            false => Ok(None),
        }
    }

    fn cut(&mut self, end: u64) -> (u64, u64) {
        let piece = (self.piece_start, end - self.piece_start);
        self.piece_start = end;
        piece
    }

    fn fill(&mut self, limit: u64) -> Result<(), Error> {
        if self.from == self.block.len() {
            self.block
                .resize(BLOCK_BYTES.min(limit - self.position) as usize, 0);
            self.from = 0;
            read_exact_at(&self.file, &mut self.block, self.position)
                .map_err(|e| Error::read(e, self.position))?;
        }
        Ok(())
    }

    /// Goes through the block, up to the first end of a record at `wanted` or behind it.
    fn scan(&mut self, limit: u64, wanted: u64) -> Option<u64> {
        let start = self.position - self.from as u64;
        let end = self.block.len().min((limit - start) as usize);
        while self.from < end {
            let rest = &self.block[self.from..end];
            let mut record_end = None;
            let num_taken = match self.state {
                State::Quoted => match memchr::memchr(b'"', rest) {
                    Some(at) => {
                        self.state = State::QuoteInQuoted;
                        at + 1
                    }
                    None => rest.len(),
                },
                State::QuoteInQuoted if rest[0] == b'"' => {
                    self.state = State::Quoted;
                    1
                }
                State::FieldStart if rest[0] == b'"' => {
                    self.state = State::Quoted;
                    1
                }
                State::AfterReturn => {
                    let is_newline = rest[0] == b'\n';
                    self.state = State::FieldStart;
                    record_end = Some(self.from + usize::from(is_newline));
                    usize::from(is_newline)
                }
                State::FieldStart | State::Plain | State::QuoteInQuoted => {
                    match memchr::memchr3(self.delimiter, b'\n', b'\r', rest) {
                        Some(at) if rest[at] == b'\r' => {
                            self.state = State::AfterReturn;
                            at + 1
                        }
                        Some(at) => {
                            self.state = State::FieldStart;
                            record_end = (rest[at] == b'\n').then_some(self.from + at + 1);
                            at + 1
                        }
                        None => {
                            self.state = State::Plain;
                            rest.len()
                        }
                    }
                }
            };
            self.from += num_taken;
            self.position = start + self.from as u64;
            if let Some(record_end) = record_end.map(|at| start + at as u64)
                && record_end >= wanted
            {
                return Some(record_end);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use csv_core::{ReadRecordResult, Reader};

    /// Ends of records as `csv-core` sees them, a newline behind a carriage return included.
    fn record_ends(bytes: &[u8]) -> Vec<u64> {
        let mut core = Reader::new();
        let _ = core.read_record(b"\n", &mut [0], &mut [0]);
        let (mut output, mut ends) = (vec![0; 4096], vec![0; 4096]);
        let (mut at, mut found) = (0, Vec::new());
        while at < bytes.len() {
            // Blank lines are records of their own to the splitter.
            if matches!(bytes[at], b'\r' | b'\n') {
                at += 1;
                if bytes[at - 1] == b'\n' || bytes.get(at) != Some(&b'\n') {
                    found.push(at as u64);
                }
                continue;
            }
            loop {
                let (result, read, _, _) = core.read_record(&bytes[at..], &mut output, &mut ends);
                at += read;
                match result {
                    ReadRecordResult::Record => {
                        at += usize::from(bytes[at - 1] == b'\r' && bytes.get(at) == Some(&b'\n'));
                        found.push(at as u64);
                        break;
                    }
                    _ if at == bytes.len() => return found,
                    _ => {}
                }
            }
        }
        found
    }

    fn file_of(bytes: &[u8]) -> File {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("likewise-split-{}-{number}", std::process::id()));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// Pieces as they come while the file grows to each of `limits`.
    fn pieces(bytes: &[u8], piece_bytes: u64, limits: &[u64]) -> Vec<(u64, u64)> {
        let mut splitter = RecordSplitter::new(file_of(bytes), b',', 0);
        let mut found = Vec::new();
        for (i, &limit) in limits.iter().enumerate() {
            let is_end = i + 1 == limits.len();
            while let Some(piece) = splitter.next_piece(limit, piece_bytes, is_end).unwrap() {
                found.push(piece);
            }
        }
        found
    }

    #[test]
    fn pieces_end_where_the_reader_ends_records() {
        let alphabet = b"ab,\"\"\"\n\n\r,x";
        let mut state = 1u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        for _ in 0..3000 {
            let length = next() % 60;
            let bytes: Vec<u8> = (0..length)
                .map(|_| alphabet[next() % alphabet.len()])
                .collect();
            let size = bytes.len() as u64;
            let piece_bytes = 1 + next() as u64 % 9;
            let ends = record_ends(&bytes);
            let mut expected = Vec::new();
            let mut start = 0;
            for &end in &ends {
                if end - start >= piece_bytes {
                    expected.push((start, end - start));
                    start = end;
                }
            }
            if start < size {
                expected.push((start, size - start));
            }
            let middle = next() as u64 % (size + 1);
            for limits in [vec![size], vec![middle, size], (0..=size).collect()] {
                let found = pieces(&bytes, piece_bytes, &limits);
                let text = String::from_utf8_lossy(&bytes);
                assert_eq!(found, expected, "{text:?} by {piece_bytes} to {limits:?}");
            }
        }
    }
}
