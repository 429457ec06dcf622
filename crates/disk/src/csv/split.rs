//! Where can a CSV file be cut so that every piece holds whole records?
//!
//! The scan runs at several gigabytes a second and finds the ends of records exactly as the parser does, even while the
//! file is still being decompressed. So quotes are never guessed, and all threads can parse.

use std::fs::File;

use super::rules::CsvDialect;
use crate::error::{Doing, Result};
use crate::position::read_exact_at;

/// Bytes read at a time.
const BLOCK_BYTES: u64 = 1 << 20;

/// Bytes that may be scanned twice, in total and for each byte of the file; only an adversarial file, in which every
/// line opens a quote that is closed wrongly much later, reaches it.
const MOST_REPEATED_BYTES: u64 = 256 << 20;
const MOST_REPEATED_TIMES: u64 = 8;

/// How the previous byte affects the next one, as in the `csv-core` reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the start of a field: only here does a quote open one.
    FieldStart,
    /// Inside an unquoted field, or after the closing quote of a quoted one.
    Plain,
    Quoted,
    /// Inside quotes, after a carriage return; a following newline belongs to the same line end.
    QuotedReturn,
    /// After a quote inside quotes: if doubled, it is a literal quote; otherwise it closed the field.
    QuoteInQuoted,
    /// After a carriage return that ended a record; a following newline belongs to it.
    AfterReturn,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPiece {
    pub offset: u64,
    /// Number of bytes, including the last line end.
    pub length: u64,
    /// Offsets of lines that are not records, because a quote opens a field that is not closed properly.
    pub stray_lines: Vec<u64>,
}

/// Cuts a file into pieces that each end with a record, in one scan, which may run ahead of the writer of the file. A
/// quoted field with a line end must be closed before a delimiter or an end; if not, the first line of its record is a
/// stray line, and the next record begins after it.
pub struct RecordSplitter {
    file: File,
    dialect: CsvDialect,
    state: State,
    block: Vec<u8>,
    /// The next byte of the block to examine, and its position in the file.
    from: usize,
    position: u64,
    piece_start: u64,
    record_start: u64,
    /// The position after the first line end inside quotes in the current record.
    first_line_end: Option<u64>,
    /// Whether the current quoted field holds a line end.
    field_has_line_end: bool,
    stray_lines: Vec<u64>,
    num_repeated: u64,
    most_repeated: u64,
}

impl RecordSplitter {
    /// Starts at byte `start`, which must be the start of a record.
    pub fn new(file: File, dialect: CsvDialect, start: u64) -> Self {
        RecordSplitter {
            file,
            dialect,
            state: State::FieldStart,
            block: Vec::new(),
            from: 0,
            position: start,
            piece_start: start,
            record_start: start,
            first_line_end: None,
            field_has_line_end: false,
            stray_lines: Vec::new(),
            num_repeated: 0,
            most_repeated: MOST_REPEATED_BYTES,
        }
    }

    /// Returns the next piece, which ends with a record at least `piece_bytes` after its start, or `None` if none ends
    /// before byte `limit`; with `is_end`, the last piece is the remainder.
    pub fn next_piece(
        &mut self,
        limit: u64,
        piece_bytes: u64,
        is_end: bool,
    ) -> Result<Option<RecordPiece>> {
        let wanted = self.piece_start + piece_bytes;
        loop {
            while self.position < limit {
                self.fill(limit)?;
                if let Some(end) = self.scan(limit, wanted) {
                    return Ok(Some(self.cut(end)));
                }
            }
            let is_open = matches!(self.state, State::Quoted | State::QuotedReturn);
            if !is_end || !is_open {
                break;
            }
            if self.state == State::QuotedReturn {
                self.meet_line_end(self.position);
            }
            let end = self.leave_stray_line();
            if end >= wanted {
                return Ok(Some(self.cut(end)));
            }
        }
        match is_end && self.position > self.piece_start {
            true => Ok(Some(self.cut(self.position))),
            false => Ok(None),
        }
    }

    fn cut(&mut self, end: u64) -> RecordPiece {
        let piece = RecordPiece {
            offset: self.piece_start,
            length: end - self.piece_start,
            stray_lines: std::mem::take(&mut self.stray_lines),
        };
        self.piece_start = end;
        piece
    }

    fn fill(&mut self, limit: u64) -> Result<()> {
        if self.from == self.block.len() {
            self.block
                .resize(BLOCK_BYTES.min(limit - self.position) as usize, 0);
            self.from = 0;
            read_exact_at(&self.file, &mut self.block, self.position).reading(self.position)?;
        }
        Ok(())
    }

    /// Scans the block up to the first record end at or after `wanted`.
    fn scan(&mut self, limit: u64, wanted: u64) -> Option<u64> {
        let start = self.position - self.from as u64;
        let end = self.block.len().min((limit - start) as usize);
        while self.from < end {
            if self.state == State::QuoteInQuoted && self.is_closed_wrongly(self.block[self.from]) {
                let end = self.leave_stray_line();
                return (end >= wanted).then_some(end);
            }
            let (num_taken, record_end) = self.step(start, end);
            self.from += num_taken;
            self.position = start + self.from as u64;
            if self.field_has_line_end && self.state == State::Quoted && self.is_spent() {
                let end = self.leave_stray_line();
                return (end >= wanted).then_some(end);
            }
            if let Some(record_end) = record_end.map(|at| start + at as u64) {
                self.record_start = record_end;
                self.first_line_end = None;
                if record_end >= wanted {
                    return Some(record_end);
                }
            }
        }
        None
    }

    /// Scans the block, which begins at byte `start` of the file, up to `end` or the next byte that changes the state;
    /// returns how many bytes that takes, and the place of the record end there.
    fn step(&mut self, start: u64, end: usize) -> (usize, Option<usize>) {
        let rest = &self.block[self.from..end];
        let mut record_end = None;
        let num_taken = match self.state {
            State::Quoted => {
                let found = self.next_in_quotes(rest);
                let byte = found.map(|at| rest[at]);
                let num_taken = found.map_or(rest.len(), |at| at + 1);
                match byte {
                    Some(b'"') => self.state = State::QuoteInQuoted,
                    Some(b'\r') => self.state = State::QuotedReturn,
                    Some(_) => self.meet_line_end(start + (self.from + num_taken) as u64),
                    None => {}
                }
                num_taken
            }
            State::QuotedReturn => {
                let is_newline = usize::from(rest[0] == b'\n');
                self.meet_line_end(start + (self.from + is_newline) as u64);
                self.state = State::Quoted;
                is_newline
            }
            State::QuoteInQuoted if rest[0] == b'"' => {
                self.state = State::Quoted;
                1
            }
            State::FieldStart if rest[0] == b'"' && self.dialect.has_quotes => {
                self.state = State::Quoted;
                self.field_has_line_end = false;
                1
            }
            State::AfterReturn => {
                let is_newline = rest[0] == b'\n';
                self.state = State::FieldStart;
                record_end = Some(self.from + usize::from(is_newline));
                usize::from(is_newline)
            }
            State::FieldStart | State::Plain | State::QuoteInQuoted => {
                let found = match self.dialect.has_quotes {
                    true => memchr::memchr3(self.dialect.delimiter, b'\n', b'\r', rest),
                    // If quotes do not open fields, fields need not be distinguished.
                    false => memchr::memchr2(b'\n', b'\r', rest),
                };
                let num_taken = found.map_or(rest.len(), |at| at + 1);
                self.state = match found.map(|at| rest[at]) {
                    Some(b'\r') => State::AfterReturn,
                    Some(b'\n') => {
                        record_end = Some(self.from + num_taken);
                        State::FieldStart
                    }
                    Some(_) => State::FieldStart,
                    None => State::Plain,
                };
                num_taken
            }
        };
        (num_taken, record_end)
    }

    /// The next significant byte inside quotes; in a field known to hold a line end, the next quote.
    fn next_in_quotes(&self, rest: &[u8]) -> Option<usize> {
        match self.field_has_line_end {
            true => memchr::memchr(b'"', rest),
            false => memchr::memchr3(b'"', b'\n', b'\r', rest),
        }
    }

    fn meet_line_end(&mut self, behind: u64) {
        self.field_has_line_end = true;
        self.first_line_end.get_or_insert(behind);
    }

    /// Whether this byte may not follow a quote inside quotes.
    fn is_closed_wrongly(&self, next: u8) -> bool {
        let is_end = next == self.dialect.delimiter || matches!(next, b'\n' | b'\r' | b'"');
        self.field_has_line_end && !is_end
    }

    fn is_spent(&self) -> bool {
        self.num_repeated > self.most_repeated + MOST_REPEATED_TIMES * self.record_start
    }

    /// Ends the record after its first line and continues from there; returns that position.
    fn leave_stray_line(&mut self) -> u64 {
        let end = self.first_line_end.take().unwrap_or(self.position);
        self.stray_lines.push(self.record_start);
        self.num_repeated += self.position - end;
        // The following lines in the block are read again.
        self.block.clear();
        (self.from, self.position, self.record_start) = (0, end, end);
        (self.state, self.field_has_line_end) = (State::FieldStart, false);
        end
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use csv_core::ReadRecordResult;

    const QUOTED: CsvDialect = CsvDialect {
        delimiter: b',',
        has_quotes: true,
    };
    const PLAIN: CsvDialect = CsvDialect {
        delimiter: b',',
        has_quotes: false,
    };

    /// Position after the line end that is at `at`.
    fn behind_line_end(bytes: &[u8], at: usize) -> usize {
        at + 1 + usize::from(bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n'))
    }

    fn is_line_end(byte: u8) -> bool {
        matches!(byte, b'\n' | b'\r')
    }

    /// Where the record that begins at `start` ends, and whether it is a stray line.
    fn record(bytes: &[u8], start: usize, dialect: CsvDialect) -> (usize, bool) {
        let (mut at, mut first_line_end) = (start, None);
        loop {
            if dialect.has_quotes && bytes.get(at) == Some(&b'"') {
                let mut holds_line_end = false;
                at += 1;
                loop {
                    match (bytes.get(at), bytes.get(at + 1)) {
                        (None, _) => return (first_line_end.unwrap_or(bytes.len()), true),
                        (Some(b'"'), Some(b'"')) => at += 2,
                        (Some(b'"'), _) => break,
                        (Some(&byte), _) if is_line_end(byte) => {
                            holds_line_end = true;
                            at = behind_line_end(bytes, at);
                            first_line_end.get_or_insert(at);
                        }
                        _ => at += 1,
                    }
                }
                at += 1;
                let is_closed = bytes
                    .get(at)
                    .is_none_or(|&byte| byte == b',' || is_line_end(byte));
                if holds_line_end && !is_closed {
                    return (first_line_end.unwrap(), true);
                }
            }
            while at < bytes.len() && bytes[at] != b',' && !is_line_end(bytes[at]) {
                at += 1;
            }
            if at == bytes.len() {
                return (at, false);
            }
            if is_line_end(bytes[at]) {
                return (behind_line_end(bytes, at), false);
            }
            at += 1;
        }
    }

    /// Whether `csv-core` parses these bytes as one record.
    fn is_one_record(bytes: &[u8], dialect: CsvDialect) -> bool {
        let mut core = csv_core::ReaderBuilder::new()
            .quoting(dialect.has_quotes)
            .build();
        let _ = core.read_record(b"\n", &mut [0], &mut [0]);
        let (mut output, mut ends) = (vec![0; 4096], vec![0; 4096]);
        let closed = [bytes, b"\n"].concat();
        let (result, read, _, _) = core.read_record(&closed, &mut output, &mut ends);
        result == ReadRecordResult::Record && read + 1 >= bytes.len()
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

    /// Returns the pieces while the file grows to each of `limits`.
    fn pieces(
        bytes: &[u8],
        dialect: CsvDialect,
        piece_bytes: u64,
        limits: &[u64],
    ) -> Vec<RecordPiece> {
        let mut splitter = RecordSplitter::new(file_of(bytes), dialect, 0);
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
    fn pieces_end_where_records_do_and_name_stray_lines() {
        let alphabet = b"ab,\"\"\"\n\n\r,x";
        let mut state = 1u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        let mut num_stray = 0;
        for round in 0..6000 {
            let dialect = if round % 3 == 0 { PLAIN } else { QUOTED };
            let length = next() % 60;
            let bytes: Vec<u8> = (0..length)
                .map(|_| alphabet[next() % alphabet.len()])
                .collect();
            let text = String::from_utf8_lossy(&bytes);
            let size = bytes.len() as u64;
            let piece_bytes = 1 + next() as u64 % 9;
            let mut expected = Vec::new();
            let (mut start, mut at, mut stray_lines) = (0, 0, Vec::new());
            while at < bytes.len() {
                let (end, is_stray) = record(&bytes, at, dialect);
                if is_stray {
                    stray_lines.push(at as u64);
                    num_stray += 1;
                } else {
                    let is_blank = bytes[at..end].iter().all(|&byte| is_line_end(byte));
                    assert!(
                        is_blank || is_one_record(&bytes[at..end], dialect),
                        "{text:?}"
                    );
                }
                at = end;
                let length = at as u64 - start;
                if length >= piece_bytes || at == bytes.len() {
                    let stray_lines = std::mem::take(&mut stray_lines);
                    expected.push(RecordPiece {
                        offset: start,
                        length,
                        stray_lines,
                    });
                    start = at as u64;
                }
            }
            let middle = next() as u64 % (size + 1);
            for limits in [vec![size], vec![middle, size], (0..=size).collect()] {
                let found = pieces(&bytes, dialect, piece_bytes, &limits);
                assert_eq!(found, expected, "{text:?} by {piece_bytes} to {limits:?}");
            }
        }
        assert!(num_stray > 1000);
    }

    #[test]
    fn a_file_of_nothing_but_traps_is_scanned_a_bounded_number_of_times() {
        // Each line opens a quote that is closed incorrectly at the end of the file, after all others.
        let bytes = [b"x\",\"y\n".repeat(10_000), b"x\"z".to_vec()].concat();
        let mut splitter = RecordSplitter::new(file_of(&bytes), QUOTED, 0);
        splitter.most_repeated = 1 << 20;
        let mut num_stray = 0;
        while let Some(piece) = splitter
            .next_piece(bytes.len() as u64, 1 << 16, true)
            .unwrap()
        {
            num_stray += piece.stray_lines.len();
        }
        assert_eq!(num_stray, 10_000);
        let most = splitter.most_repeated + (MOST_REPEATED_TIMES + 2) * bytes.len() as u64;
        assert!(splitter.num_repeated < most);
    }
}
