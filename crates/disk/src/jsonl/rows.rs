//! How are the texts of known rows read again?

use likewise_core::error::invalid_if;
use likewise_core::text::Without;

use super::escape::Escape;
use super::parser::{Row, RowParser};
use super::rules::JsonlRules;
use crate::column::{TextColumn, TokenColumn};
use crate::error::{Error, Result};
use crate::position::Rows;
use crate::rewrite::{Rewritten, Stretches, rewrite};

/// Rows that a thread reads at a time.
const GRAIN_ROWS: usize = 256;

/// Reads the texts of rows, as returned by [`read_piece`](crate::read_piece), into consecutive columns.
pub fn read_rows(rows: Rows<'_>, rules: &JsonlRules) -> Result<Vec<TextColumn>> {
    let push = |row: &Row<'_>, out: &mut TextColumn| row.push_text(out);
    read_each(rows, rules, TextColumn::with_capacity, push)
}

pub fn read_token_rows(rows: Rows<'_>, rules: &JsonlRules) -> Result<Vec<TokenColumn>> {
    let push = |row: &Row<'_>, out: &mut TokenColumn| out.push(row.encoded);
    read_each(rows, rules, |_| TokenColumn::default(), push)
}

fn read_each<C: Send>(
    rows: Rows<'_>,
    rules: &JsonlRules,
    make: impl Fn(usize) -> C + Sync,
    push: impl Fn(&Row<'_>, &mut C) + Sync,
) -> Result<Vec<C>> {
    let rules = of_texts(rules)?;
    let take = |(parser, column): &mut (RowParser<'_>, C), i: usize, line: &[u8]| {
        let offset = rows.offsets[i];
        match parser.parse(line, offset) {
            Ok(row) => push(&row, column),
            Err(reason) => return Err(Error::Changed { offset, reason }),
        }
        Ok(())
    };
    let make = |num_bytes| Ok((RowParser::new(&rules)?, make(num_bytes)));
    rows.read(GRAIN_ROWS, make, take)
}

/// The checked rules without ids and further fields, which are not parsed again.
fn of_texts(rules: &JsonlRules) -> Result<JsonlRules> {
    rules.tree()?;
    Ok(JsonlRules {
        id_field: None,
        id_required: false,
        fields: Vec::new(),
        ..rules.clone()
    })
}

/// Removes the spans `gone` from the texts of lines; the rest stays byte for byte the same, including escapes in the
/// remaining text.
pub fn rewrite_rows(rows: Rows<'_>, rules: &JsonlRules, gone: Stretches<'_>) -> Result<Rewritten> {
    invalid_if(
        rules.text_fields.len() != 1,
        "text_fields",
        || "must name exactly one field",
    )?;
    let rules = of_texts(rules)?;
    rewrite(rows, gone, || {
        let mut parser = RowParser::new(&rules)?;
        Ok(
            move |line: &[u8], offset, text: &mut Without<'_>, out: &mut Vec<u8>| {
                let places = parser
                    .text_places(line, offset)
                    .map_err(|reason| Error::Changed { offset, reason })?;
                let mut done = 0;
                for (i, place) in places.into_iter().enumerate() {
                    if i > 0 {
                        // The newline between strings of a list is part of the text, but not of the line.
                        text.plain(b"\n", &mut Vec::new());
                    }
                    // The range includes the quotes.
                    out.extend_from_slice(&line[done..=place.start]);
                    cut(&line[place.start + 1..place.end - 1], text, out);
                    done = place.end - 1;
                }
                out.extend_from_slice(&line[done..]);
                Ok(())
            },
        )
    })
}

/// Appends the remaining part of the inside of a string.
fn cut(mut raw: &[u8], text: &mut Without<'_>, out: &mut Vec<u8>) {
    while !raw.is_empty() {
        let plain = memchr::memchr(b'\\', raw).unwrap_or(raw.len());
        let (stretch, rest) = raw.split_at(plain);
        text.plain(stretch, out);
        raw = rest;
        if let Some(escape) = Escape::read(raw) {
            let (written, rest) = raw.split_at(escape.num_raw);
            text.escape(written, escape.character, escape.num_bytes, out);
            raw = rest;
        }
    }
}
