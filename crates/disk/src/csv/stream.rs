//! What are the records of a piece of a CSV file?

use std::fs::File;

use super::record::{RecordParser, as_json};
use super::rules::CsvRules;
use crate::column::TextColumn;
use crate::error::Error;
use crate::jsonl::piece::{BadRow, Piece};
use crate::position::read_exact_at;

/// Bytes read at a time.
const BLOCK_BYTES: u64 = 1 << 20;

/// Room made for texts before any is read: a quote that is never closed makes one piece of the rest of a file.
const MOST_RESERVED_BYTES: u64 = 64 << 20;

/// Reads the records of a range that begins and ends between records, from the first to the last.
pub struct CsvStream {
    file: File,
    rules: CsvRules,
    /// End of the range in the file.
    end: u64,
    parser: RecordParser,
    block: Vec<u8>,
    /// Position of the first byte of the block that is not used up.
    position: u64,
    /// That byte in the block.
    from: usize,
    /// Whether the byte before was a carriage return that ended a record.
    after_return: bool,
}

impl CsvStream {
    /// Begins at byte `offset`, where a record does, to read `length` bytes.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for impossible rules.
    pub fn open(file: File, rules: CsvRules, offset: u64, length: u64) -> Result<Self, Error> {
        rules.check()?;
        Ok(CsvStream {
            parser: RecordParser::new(rules.delimiter, rules.max_document),
            file,
            rules,
            end: offset.saturating_add(length),
            block: Vec::new(),
            position: offset,
            from: 0,
            after_return: false,
        })
    }

    /// The records of the range. Lines are counted as a spreadsheet does: a record is one, however many line ends its fields
    /// hold; `num_lines_before` of them stand before the range and belong to this piece, such as the header.
    ///
    /// # Errors
    /// [`Error::Changed`] if the file has become shorter; [`Error::Io`].
    pub fn read(mut self, num_lines_before: u64) -> Result<Piece, Error> {
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

    /// Reads one record or blank line; false at the end.
    fn record(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        loop {
            match self.peek()? {
                None => return Ok(false),
                Some(b'\n') if self.after_return => {}
                Some(b'\n') => {
                    piece.num_lines += 1;
                    piece.num_blank += 1;
                }
                Some(b'\r') => {}
                Some(_) => break,
            }
            self.skip(1);
            self.after_return = false;
        }
        let offset = self.position;
        let line_number = piece.num_lines as u32;
        piece.num_lines += 1;
        self.parser.clear();
        let mut is_complete = false;
        while !is_complete && self.peek()?.is_some() {
            let (taken, complete) = self.parser.feed(&self.block[self.from..]);
            is_complete = complete;
            self.after_return = complete && self.block[self.from + taken - 1] == b'\r';
            self.skip(taken);
        }
        // The carriage return of "\r\n" is part of the line, as in JSON Lines; one that stands alone is the line end.
        let mut length = self.position - offset;
        let mut is_closed = true;
        match is_complete {
            true if self.after_return && self.peek()? == Some(b'\n') => {}
            true => length -= 1,
            false => is_closed = self.parser.feed(b"\n").1,
        }
        let checked = match is_closed {
            true => self.parser.check(length, &self.rules),
            false => {
                // The reader is lost inside the quotes; nothing follows.
                Err(
                    "a quote is open that is never closed: the rest of the file is one field"
                        .to_owned(),
                )
            }
        };
        match checked {
            Ok(()) => self.push(offset, length as u32, line_number, piece),
            Err(reason) => piece.bad.push(BadRow {
                line_number,
                offset,
                length,
                reason,
            }),
        }
        Ok(true)
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

    fn peek(&mut self) -> Result<Option<u8>, Error> {
        if self.from == self.block.len() {
            let room = BLOCK_BYTES.min(self.end - self.position) as usize;
            self.block.resize(room, 0);
            self.from = 0;
            read_exact_at(&self.file, &mut self.block, self.position)
                .map_err(|e| Error::read(e, self.position))?;
        }
        Ok(self.block.get(self.from).copied())
    }

    fn skip(&mut self, num_bytes: usize) {
        self.from += num_bytes;
        self.position += num_bytes as u64;
    }
}
