//! How are the texts of known rows read again?

use std::fs::File;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::map_ranges;

use super::parser::{Row, RowParser};
use super::rules::JsonlRules;
use crate::column::{TextColumn, TokenColumn};
use crate::error::{Error, Result};
use crate::position::Window;

/// Rows that a thread reads at a time.
const GRAIN_ROWS: usize = 256;

/// Reads the texts of rows, as returned by [`read_piece`](crate::read_piece), in any order, into consecutive columns;
/// rows close together in the file by one read.
pub fn read_rows(
    file: &File,
    offsets: &[u64],
    lengths: &[u32],
    rules: &JsonlRules,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Vec<TextColumn>> {
    let push = |row: &Row<'_>, out: &mut TextColumn| row.push_text(out);
    read_each(
        file,
        offsets,
        lengths,
        rules,
        threads,
        cancel,
        TextColumn::with_capacity,
        push,
    )
}

pub fn read_token_rows(
    file: &File,
    offsets: &[u64],
    lengths: &[u32],
    rules: &JsonlRules,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Vec<TokenColumn>> {
    let push = |row: &Row<'_>, out: &mut TokenColumn| out.push(row.encoded);
    let make = |_| TokenColumn::default();
    read_each(file, offsets, lengths, rules, threads, cancel, make, push)
}

#[expect(
    clippy::too_many_arguments,
    reason = "those of `read_rows`, and what takes the rows"
)]
fn read_each<C: Send>(
    file: &File,
    offsets: &[u64],
    lengths: &[u32],
    rules: &JsonlRules,
    threads: usize,
    cancel: &AtomicBool,
    make: impl Fn(usize) -> C + Sync,
    push: impl Fn(&Row<'_>, &mut C) + Sync,
) -> Result<Vec<C>> {
    if offsets.len() != lengths.len() {
        return Err(Error::invalid(
            "lengths",
            format!("{} lengths for {} offsets", lengths.len(), offsets.len()),
        ));
    }
    rules.tree()?;
    // Ids and further fields are not needed here, so they are not parsed.
    let rules = JsonlRules {
        id_field: None,
        id_required: false,
        fields: Vec::new(),
        ..rules.clone()
    };
    let parts = map_ranges(
        offsets.len(),
        GRAIN_ROWS,
        threads,
        cancel,
        Window::new,
        |window, range| {
            let mut parser = RowParser::new(&rules)?;
            let num_bytes = lengths[range.clone()]
                .iter()
                .map(|&length| length as usize)
                .sum();
            let mut column = make(num_bytes);
            for i in range.clone() {
                let (offset, length) = (offsets[i], u64::from(lengths[i]));
                let next = (i + 1..range.end).map(|k| (offsets[k], u64::from(lengths[k])));
                let line = window
                    .fetch(file, offset, length, next)
                    .map_err(|e| Error::read(e, offset))?;
                match parser.parse(line, offset) {
                    Ok(row) => push(&row, &mut column),
                    Err(reason) => return Err(Error::Changed { offset, reason }),
                }
            }
            Ok(column)
        },
    )?;
    parts.into_iter().collect()
}
