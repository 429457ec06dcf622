//! What are the columns of a CSV file called?

use std::fs::File;

use super::record::RecordParser;
use super::rules::CsvDialect;
use super::split::RecordSplitter;
use crate::error::{Doing, Error, Result};
use crate::position::read_exact_at;

/// Longest header that is read, in bytes.
const MAX_HEADER_BYTES: u64 = 16 << 20;

/// Bytes read at a time while searching for the end of the header.
const PROBE_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CsvHeader {
    /// Names of the columns; invalid UTF-8 is replaced.
    pub names: Vec<String>,
    /// Bytes of the file up to the end of the header's line, including everything before it.
    pub num_bytes: u64,
    pub num_blank: u64,
}

/// Reads the header, which must end within 16 MB; that of an empty file has no columns.
pub fn read_csv_header(file: &File, dialect: CsvDialect) -> Result<CsvHeader> {
    let size = file.metadata().doing("read the size")?.len();
    let mut bytes = Vec::new();
    let mut parser = RecordParser::new(dialect, MAX_HEADER_BYTES);
    let mut header = CsvHeader::default();
    let mut from = 0; // first byte that the parser has not seen
    let mut first = 0; // first byte of the header itself
    let mut is_inside = false;
    loop {
        let start = bytes.len();
        let room = PROBE_BYTES.min(size - start as u64) as usize;
        if room == 0 || start as u64 > MAX_HEADER_BYTES {
            break;
        }
        bytes.resize(start + room, 0);
        read_exact_at(file, &mut bytes[start..], start as u64).reading(start as u64)?;
        if start == 0 && bytes.starts_with(b"\xef\xbb\xbf") {
            from = 3;
        }
        while !is_inside && from < bytes.len() && matches!(bytes[from], b'\r' | b'\n') {
            header.num_blank += u64::from(bytes[from] == b'\n');
            from += 1;
        }
        if from == bytes.len() {
            continue;
        }
        if !is_inside {
            (is_inside, first) = (true, from);
        }
        let (taken, is_complete) = parser.feed(&bytes[from..]);
        from += taken;
        if is_complete {
            // The second half of a line end may be in the next block.
            let mut next = [0];
            let is_return = bytes[from - 1] == b'\r';
            if is_return && (from as u64) < size {
                read_exact_at(file, &mut next, from as u64).reading(from as u64)?;
            }
            header.num_bytes = from as u64 + u64::from(is_return && next[0] == b'\n');
            check_closed(file, dialect, first as u64, header.num_bytes)?;
            return Ok(named(header, &parser));
        }
    }
    if !is_inside {
        header.num_bytes = size;
        return Ok(header);
    }
    // A file that holds only a header may end without a newline.
    if bytes.len() as u64 == size && parser.feed(b"\n").1 {
        header.num_bytes = size;
        check_closed(file, dialect, first as u64, size)?;
        return Ok(named(header, &parser));
    }
    Err(open_header())
}

/// Rejects a header that is a stray line: by the rule of [`RecordSplitter`] its first line is not a record.
fn check_closed(file: &File, dialect: CsvDialect, start: u64, end: u64) -> Result<()> {
    let file = file.try_clone().doing("read")?;
    let piece = RecordSplitter::new(file, dialect, start).next_piece(end, end - start, true)?;
    match piece.is_some_and(|piece| !piece.stray_lines.is_empty()) {
        true => Err(open_header()),
        false => Ok(()),
    }
}

fn open_header() -> Error {
    Error::Damaged {
        reason: "a quote in the header is not closed; if quotes are plain characters here, add --quote none"
            .to_owned(),
    }
}

fn named(mut header: CsvHeader, parser: &RecordParser) -> CsvHeader {
    header.names = (0..parser.len())
        .map(|i| String::from_utf8_lossy(parser.field(i)).into_owned())
        .collect();
    header
}
