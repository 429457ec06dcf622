//! What are the records of a CSV file, one piece after another?

use std::fs::File;

use super::record::{RecordParser, as_json};
use super::rules::{CsvHeader, CsvRules};
use crate::column::TextColumn;
use crate::error::Error;
use crate::jsonl::piece::{BadRow, Piece};
use crate::position::read_exact_at;

/// Bytes read at a time.
const BLOCK_BYTES: u64 = 1 << 20;

/// Reads the records behind the header from the first to the last.
pub struct CsvStream {
    file: File,
    rules: CsvRules,
    size: u64,
    parser: RecordParser,
    block: Vec<u8>,
    /// Position of the first byte of the block that is not used up.
    position: u64,
    /// That byte in the block.
    from: usize,
    /// Whether the byte before was a carriage return that ended a record.
    after_return: bool,
    /// Lines before the first piece: blank ones and the header.
    num_lines_before: u64,
}

impl CsvStream {
    /// Begins behind the header.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for impossible rules; [`Error::Io`].
    pub fn open(file: File, header: &CsvHeader, rules: CsvRules) -> Result<Self, Error> {
        rules.check()?;
        let size = file
            .metadata()
            .map_err(|e| Error::io("read the size", e))?
            .len();
        Ok(CsvStream {
            parser: RecordParser::new(rules.delimiter, rules.max_document),
            file,
            rules,
            size,
            block: Vec::new(),
            position: header.num_bytes,
            from: 0,
            after_return: false,
            num_lines_before: header.num_blank + u64::from(!header.names.is_empty()),
        })
    }

    /// Where the next piece begins in the file.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The records of about `piece_bytes` more; `None` at the end. Lines are counted as a spreadsheet does: a record is
    /// one, however many line ends its fields hold, and the header belongs to the first piece.
    ///
    /// # Errors
    /// [`Error::Changed`] if the file has become shorter; [`Error::Io`].
    pub fn next_piece(&mut self, piece_bytes: u64) -> Result<Option<Piece>, Error> {
        let start = self.position;
        let mut piece = Piece {
            texts: TextColumn::with_capacity(piece_bytes.min(self.size - start) as usize),
            fields: vec![TextColumn::default(); self.rules.field_columns.len()],
            num_lines: self.num_lines_before,
            ..Piece::default()
        };
        while self.position - start < piece_bytes && self.record(&mut piece)? {}
        // Nothing but the header, or a few blank lines, still count their lines once.
        match self.position == start && self.num_lines_before == 0 {
            true => Ok(None),
            false => {
                self.num_lines_before = 0;
                Ok(Some(piece))
            }
        }
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
            let room = BLOCK_BYTES.min(self.size - self.position) as usize;
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
