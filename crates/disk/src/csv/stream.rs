//! What are the records of a piece of a CSV file?

use std::collections::VecDeque;
use std::fs::File;

use super::record::{RecordParser, as_json};
use super::rules::CsvRules;
use crate::column::TextColumn;
use crate::error::{Doing, Result};
use crate::jsonl::piece::{BadRow, Piece};
use crate::position::read_exact_at;

/// Bytes read at a time.
const BLOCK_BYTES: u64 = 1 << 20;

/// Maximum capacity reserved for texts before any is read: a record may be as long as the rest of a file.
const MOST_RESERVED_BYTES: u64 = 64 << 20;

/// Why a stray line is bad.
const STRAY: &str = "a field begins with a quote that is not properly closed on this line or a later one (only this line \
is skipped); if quotes are plain characters here, add --quote none";

/// Reads all records of a range that begins and ends between records.
pub struct CsvStream {
    file: File,
    rules: CsvRules,
    end: u64,
    parser: RecordParser,
    block: Vec<u8>,
    /// Position of the first unused byte of the block.
    position: u64,
    /// Index of that byte in the block.
    from: usize,
    /// Whether the previous byte was a carriage return that ended a record.
    after_return: bool,
    /// Offsets of the remaining stray lines.
    stray_lines: VecDeque<u64>,
}

impl CsvStream {
    /// Starts at a record, to read a [`RecordPiece`](super::split::RecordPiece) with its stray lines.
    pub fn open(
        file: File,
        rules: CsvRules,
        offset: u64,
        length: u64,
        stray_lines: Vec<u64>,
    ) -> Result<Self> {
        rules.check()?;
        Ok(CsvStream {
            parser: RecordParser::new(rules.dialect, rules.max_document),
            file,
            rules,
            end: offset.saturating_add(length),
            block: Vec::new(),
            position: offset,
            from: 0,
            after_return: false,
            stray_lines: stray_lines.into(),
        })
    }

    /// Returns the records of the range. A record counts as one line, as in a spreadsheet; `num_lines_before` lines,
    /// such as the header, belong to the piece.
    pub fn read(mut self, num_lines_before: u64) -> Result<Piece> {
        let room = (self.end - self.position).min(MOST_RESERVED_BYTES);
        let mut piece = Piece {
            texts: TextColumn::with_capacity(room as usize),
            fields: vec![TextColumn::default(); self.rules.field_columns.len()],
            num_lines: num_lines_before,
            ..Piece::default()
        };
        while self.record(&mut piece)? {}
        Ok(piece)
    }

    /// Reads one record; returns false at the end.
    fn record(&mut self, piece: &mut Piece) -> Result<bool> {
        if !self.skip_blank(piece)? {
            return Ok(false);
        }
        let offset = self.position;
        let line_number = piece.num_lines as u32;
        piece.num_lines += 1;
        if self.stray_lines.front() == Some(&offset) {
            self.stray_lines.pop_front();
            self.stray_line(offset, line_number, piece)?;
            return Ok(true);
        }
        self.parser.clear();
        let mut is_complete = false;
        while !is_complete && self.peek()?.is_some() {
            let (taken, complete) = self.parser.feed(&self.block[self.from..]);
            is_complete = complete;
            self.after_return = complete && self.block[self.from + taken - 1] == b'\r';
            self.skip(taken);
        }
        // The carriage return of "\r\n" is part of the line, as in JSON Lines; a lone one is the line end.
        let mut length = self.position - offset;
        let mut is_closed = true;
        match is_complete {
            true if self.after_return && self.peek()? == Some(b'\n') => {}
            true => length -= 1,
            false => is_closed = self.parser.feed(b"\n").1,
        }
        // Unless a quote is left open, the splitter found the whole record.
        let checked = match is_closed {
            true => self.parser.check(length, &self.rules),
            false => Err(STRAY.to_owned()),
        };
        match checked {
            Ok(()) => self.push(offset, length as u32, line_number, piece),
            Err(reason) => {
                let num_lines = self.num_lines(offset, length)?;
                let reason = match num_lines {
                    1 => reason,
                    _ => format!("{reason}; it spans {num_lines} lines"),
                };
                piece.bad.push(BadRow {
                    line_number,
                    offset,
                    length,
                    num_lines,
                    reason,
                });
            }
        }
        Ok(true)
    }

    /// Skips blank lines, and the rest of the last line end; returns false at the end.
    fn skip_blank(&mut self, piece: &mut Piece) -> Result<bool> {
        loop {
            match self.peek()? {
                None => return Ok(false),
                Some(b'\n') if self.after_return => {}
                Some(b'\n') => {
                    piece.num_lines += 1;
                    piece.num_blank += 1;
                }
                Some(b'\r') => {}
                Some(_) => return Ok(true),
            }
            self.skip(1);
            self.after_return = false;
        }
    }

    /// Number of lines of the file that a record spans, counted by newlines.
    fn num_lines(&self, offset: u64, length: u64) -> Result<u64> {
        let (mut at, end) = (offset, offset + length);
        let mut block = vec![0; BLOCK_BYTES.min(length) as usize];
        let mut num_lines = 1;
        while at < end {
            let part = &mut block[..BLOCK_BYTES.min(end - at) as usize];
            read_exact_at(&self.file, part, at).reading(at)?;
            num_lines += memchr::memchr_iter(b'\n', part).count() as u64;
            at += part.len() as u64;
        }
        Ok(num_lines)
    }

    /// Skips a line that is not a record, up to its first line end.
    fn stray_line(&mut self, offset: u64, line_number: u32, piece: &mut Piece) -> Result<()> {
        let mut num_end_bytes = 0;
        self.after_return = false;
        while self.peek()?.is_some() && num_end_bytes == 0 {
            let rest = &self.block[self.from..];
            let taken = match memchr::memchr2(b'\n', b'\r', rest) {
                Some(at) => {
                    self.after_return = rest[at] == b'\r';
                    num_end_bytes = 1;
                    at + 1
                }
                None => rest.len(),
            };
            self.skip(taken);
        }
        // As for a record, the carriage return of "\r\n" is part of the line.
        if self.after_return && self.peek()? == Some(b'\n') {
            num_end_bytes = 0;
        }
        piece.bad.push(BadRow {
            line_number,
            offset,
            length: self.position - offset - num_end_bytes,
            num_lines: 1,
            reason: STRAY.to_owned(),
        });
        Ok(())
    }

    fn push(&self, offset: u64, length: u32, line_number: u32, piece: &mut Piece) {
        let (parser, rules) = (&self.parser, &self.rules);
        parser.push_text(rules, &mut piece.texts);
        let id = rules.id_column.map_or("", |column| parser.text(column));
        piece.has_id.push(u8::from(!id.is_empty()));
        piece.ids.push(id);
        for (field, column) in piece.fields.iter_mut().zip(&rules.field_columns) {
            let value = column.map_or(String::new(), |column| as_json(parser.text(column)));
            field.push(&value);
        }
        piece.offsets.push(offset);
        piece.lengths.push(length);
        piece.line_numbers.push(line_number);
    }

    fn peek(&mut self) -> Result<Option<u8>> {
        if self.from == self.block.len() {
            let room = BLOCK_BYTES.min(self.end - self.position) as usize;
            self.block.resize(room, 0);
            self.from = 0;
            read_exact_at(&self.file, &mut self.block, self.position).reading(self.position)?;
        }
        Ok(self.block.get(self.from).copied())
    }

    fn skip(&mut self, num_bytes: usize) {
        self.from += num_bytes;
        self.position += num_bytes as u64;
    }
}
