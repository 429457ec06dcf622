//! What are the rows of a piece of a file?

use std::fs::File;

use super::parser::RowParser;
use super::rules::JsonlRules;
use crate::column::{TextColumn, TokenColumn};
use crate::error::{Doing, Result};
use crate::position::read_exact_at;

/// Bytes read at a time: small enough to stay in the cache until they are parsed.
const BLOCK_BYTES: usize = 1 << 20;

/// Maximum memory reserved initially for the texts of a piece; beyond that, the buffer grows as needed.
const MAX_RESERVED_BYTES: u64 = 64 << 20;

/// The rows of a piece, with bad rows listed separately.
#[derive(Debug, Default)]
pub struct Piece {
    /// Texts of the good rows; empty if tokens are read.
    pub texts: TextColumn,
    /// Tokens of the good rows, if the rules ask for them.
    pub tokens: TokenColumn,
    /// Ids of the good rows; "" if a row has none.
    pub ids: TextColumn,
    /// 1 where the row has an id.
    pub has_id: Vec<u8>,
    /// The further fields as they are written; "" if a row has none.
    pub fields: Vec<TextColumn>,
    /// Offset of each good row in the file.
    pub offsets: Vec<u64>,
    /// Bytes of each good row without its newline; a carriage return is included.
    pub lengths: Vec<u32>,
    /// Line number of each good row in the piece, from 0.
    pub line_numbers: Vec<u32>,
    /// Number of lines in the piece: rows, bad rows and blank lines.
    pub num_lines: u64,
    /// Number of lines that hold only whitespace.
    pub num_blank: u64,
    /// Bad rows in order.
    pub bad: Vec<BadRow>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// Line number in the piece, from 0.
    pub line_number: u32,
    pub offset: u64,
    /// Bytes without the newline.
    pub length: u64,
    /// Number of lines of the file that it spans: a CSV record may span several.
    pub num_lines: u64,
    pub reason: String,
}

/// Reads and parses the lines in `length` bytes from `offset` on, a range of whole lines, with a megabyte of scratch.
pub fn read_piece(file: &File, offset: u64, length: u64, rules: &JsonlRules) -> Result<Piece> {
    let mut reader = PieceReader {
        reads_tokens: rules.tokens.is_some(),
        parser: RowParser::new(rules)?,
        piece: Piece {
            texts: TextColumn::with_capacity(length.min(MAX_RESERVED_BYTES) as usize),
            fields: vec![TextColumn::default(); rules.fields.len()],
            ..Piece::default()
        },
    };
    // Longer lines are not kept; the extra byte shows that they are longer.
    let max_kept = rules.max_document as usize + 1;
    let end = offset + length;
    let mut buffer = vec![0; BLOCK_BYTES.min(length as usize)];
    let mut num_kept = 0; // bytes at the start of the buffer that belong to an unfinished line
    let mut num_dropped = 0; // bytes of the unfinished line that were too many to keep
    let mut position = offset; // of the next byte to read
    let mut line_start = offset;
    while position < end {
        let room = (BLOCK_BYTES as u64).min(end - position) as usize;
        if buffer.len() < num_kept + room {
            buffer.resize(num_kept + room, 0);
        }
        read_exact_at(file, &mut buffer[num_kept..num_kept + room], position).reading(position)?;
        let filled = num_kept + room;
        position += room as u64;
        let mut from = 0;
        for at in memchr::memchr_iter(b'\n', &buffer[num_kept..filled]) {
            let line_end = num_kept + at;
            reader.line(&buffer[from..line_end], line_start, num_dropped);
            line_start += (line_end - from) as u64 + num_dropped + 1;
            num_dropped = 0;
            from = line_end + 1;
        }
        buffer.copy_within(from..filled, 0);
        num_kept = filled - from;
        if num_kept > max_kept {
            num_dropped += (num_kept - max_kept) as u64;
            num_kept = max_kept;
        }
    }
    if line_start < end {
        reader.line(&buffer[..num_kept], line_start, num_dropped);
    }
    Ok(reader.piece)
}

struct PieceReader<'r> {
    reads_tokens: bool,
    parser: RowParser<'r>,
    piece: Piece,
}

impl PieceReader<'_> {
    /// Processes one line. `num_dropped` of its bytes were not kept because it is too long.
    fn line(&mut self, line: &[u8], offset: u64, num_dropped: u64) {
        let piece = &mut self.piece;
        let line_number = piece.num_lines as u32;
        let length = line.len() as u64 + num_dropped;
        piece.num_lines += 1;
        // Most lines begin with a brace, so they are not blank.
        if line.first() != Some(&b'{') && num_dropped == 0 && RowParser::is_blank(line, offset) {
            piece.num_blank += 1;
            return;
        }
        let row = match self.parser.check_length(length) {
            Ok(()) => self.parser.parse(line, offset),
            Err(reason) => Err(reason),
        };
        match row {
            Ok(row) => {
                match self.reads_tokens {
                    true => piece.tokens.push(row.encoded),
                    false => row.push_text(&mut piece.texts),
                }
                piece.has_id.push(u8::from(row.id.is_some()));
                piece.ids.push(row.id.as_deref().unwrap_or_default());
                for (i, field) in piece.fields.iter_mut().enumerate() {
                    field.push(row.field(i));
                }
                piece.offsets.push(offset);
                // Lines are under 4 GiB because of max_document.
                piece.lengths.push(length as u32);
                piece.line_numbers.push(line_number);
            }
            Err(reason) => piece.bad.push(BadRow {
                line_number,
                offset,
                length,
                num_lines: 1,
                reason,
            }),
        }
    }
}
