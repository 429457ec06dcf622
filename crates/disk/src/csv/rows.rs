//! How are the texts of known records read again?

use std::ops::Range;

use likewise_core::text::Without;

use super::record::RecordParser;
use super::rules::{CsvDialect, CsvRules};
use crate::column::TextColumn;
use crate::error::{Error, Result};
use crate::position::Rows;
use crate::rewrite::{Rewritten, Stretches, rewrite};

/// Records that a thread reads at a time.
const GRAIN_ROWS: usize = 256;

/// Reads the texts of records, as returned by [`CsvStream`](crate::CsvStream).
pub fn read_csv_rows(rows: Rows<'_>, rules: &CsvRules) -> Result<Vec<TextColumn>> {
    rules.check()?;
    let take = |(_, texts): &mut ((), TextColumn), i: usize, record: &[u8]| {
        let mut parser = RecordParser::new(rules.dialect, rules.max_document);
        let (taken, is_complete) = parser.feed(record);
        let offset = rows.offsets[i];
        let changed = |reason: String| Error::Changed { offset, reason };
        if taken < record.len() || !(is_complete || parser.feed(b"\n").1) {
            return Err(changed("it is no longer one record".to_owned()));
        }
        parser.check(record.len() as u64, rules).map_err(changed)?;
        parser.push_text(rules, texts);
        Ok(())
    };
    rows.read(GRAIN_ROWS, |_| Ok(((), TextColumn::default())), take)
}

/// Removes the spans `gone` from the texts of records; all other fields stay byte for byte. A quoted field stays quoted;
/// an unquoted one gets quotes if its text now begins with one.
pub fn rewrite_csv_rows(
    rows: Rows<'_>,
    rules: &CsvRules,
    gone: Stretches<'_>,
) -> Result<Rewritten> {
    rules.check()?;
    let &[column] = rules.text_columns.as_slice() else {
        return Err(Error::invalid(
            "text_columns",
            "must name exactly one column",
        ));
    };
    rewrite(rows, gone, || {
        Ok(
            move |record: &[u8], offset, text: &mut Without<'_>, out: &mut Vec<u8>| {
                let place = field(record, column, rules.dialect).ok_or_else(|| Error::Changed {
                    offset,
                    reason: "it is no longer a record of these columns".to_owned(),
                })?;
                out.extend_from_slice(&record[..place.start]);
                cut(&record[place.clone()], rules.dialect, text, out);
                out.extend_from_slice(&record[place.end..]);
                Ok(())
            },
        )
    })
}

/// Range of field `column` of a record, quotes included.
fn field(record: &[u8], column: usize, dialect: CsvDialect) -> Option<Range<usize>> {
    let mut start = 0;
    for i in 0..=column {
        let end = start + field_length(&record[start..], dialect);
        if i == column {
            return Some(start..end);
        }
        if record.get(end) != Some(&dialect.delimiter) {
            return None;
        }
        start = end + 1;
    }
    None
}

/// Length of the field that begins here, up to the delimiter or the end of the record.
fn field_length(rest: &[u8], dialect: CsvDialect) -> usize {
    let quoted = match dialect.has_quotes && rest.first() == Some(&b'"') {
        true => 2 + quoted_length(&rest[1..]),
        false => 0,
    }
    .min(rest.len());
    let plain = memchr::memchr3(dialect.delimiter, b'\r', b'\n', &rest[quoted..]);
    plain.map_or(rest.len(), |length| quoted + length)
}

/// Number of bytes before the closing quote, given the bytes after the opening one.
fn quoted_length(inside: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next) = memchr::memchr(b'"', &inside[at..]) {
        at += next;
        if inside.get(at + 1) != Some(&b'"') {
            return at;
        }
        at += 2;
    }
    inside.len()
}

/// Appends the remaining part of a field.
fn cut(raw: &[u8], dialect: CsvDialect, text: &mut Without<'_>, out: &mut Vec<u8>) {
    if !dialect.has_quotes {
        text.plain(raw, out);
        return;
    }
    if raw.first() != Some(&b'"') {
        let before = out.len();
        text.plain(raw, out);
        if out.get(before) == Some(&b'"') {
            let left = out.split_off(before);
            out.push(b'"');
            for part in left.split_inclusive(|&byte| byte == b'"') {
                out.extend_from_slice(part);
                if part.ends_with(b"\"") {
                    out.push(b'"');
                }
            }
            out.push(b'"');
        }
        return;
    }
    let inside = &raw[1..];
    let length = quoted_length(inside);
    out.push(b'"');
    let mut rest = &inside[..length];
    while let Some(at) = memchr::memchr(b'"', rest) {
        text.plain(&rest[..at], out);
        text.escape(b"\"\"", '"', 1, out);
        rest = &rest[at + 2..];
    }
    text.plain(rest, out);
    out.push(b'"');
    // Bytes after the closing quote belong to the text unchanged.
    text.plain(inside.get(length + 1..).unwrap_or_default(), out);
}
