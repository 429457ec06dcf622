//! Where can a file be cut so that every piece holds whole lines?

use std::fs::File;

use crate::error::{Doing, Result};
use crate::position::read_exact_at;
use likewise_core::error::invalid_if;

/// Maximum length of a piece, in bytes: line numbers inside a piece are 32 bits.
pub const MAX_PIECE_BYTES: u64 = 1 << 30;

/// Bytes read at a time while searching for a line end.
const PROBE_BYTES: u64 = 64 << 10;

/// Cuts a file into consecutive pieces `(offset, length)` of about `piece_bytes`, each with the rest of its last line;
/// an empty file has none.
pub fn split_lines(file: &File, piece_bytes: u64) -> Result<Vec<(u64, u64)>> {
    invalid_if(
        piece_bytes == 0 || piece_bytes > MAX_PIECE_BYTES,
        "piece_bytes",
        || format!("{piece_bytes} is outside 1..{MAX_PIECE_BYTES}"),
    )?;
    let length = file.metadata().doing("read the size")?.len();
    let mut pieces = Vec::with_capacity((length / piece_bytes) as usize + 1);
    let mut probe = Vec::new();
    let mut start = 0;
    while start < length {
        let end = match start + piece_bytes < length {
            true => line_end(file, start + piece_bytes - 1, length, &mut probe)?,
            false => length,
        };
        pieces.push((start, end - start));
        start = end;
    }
    Ok(pieces)
}

/// Returns the position after the first newline at or after `from`, or the end of the file.
fn line_end(file: &File, from: u64, length: u64, probe: &mut Vec<u8>) -> Result<u64> {
    let mut position = from;
    while position < length {
        let num_bytes = PROBE_BYTES.min(length - position) as usize;
        probe.resize(num_bytes, 0);
        read_exact_at(file, probe, position).reading(position)?;
        if let Some(at) = memchr::memchr(b'\n', probe) {
            return Ok(position + at as u64 + 1);
        }
        position += num_bytes as u64;
    }
    Ok(length)
}
