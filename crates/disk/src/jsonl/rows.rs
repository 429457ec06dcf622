//! What are the texts of rows that were read before?

use std::fs::File;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::map_ranges;

use super::parser::RowParser;
use super::rules::JsonlRules;
use crate::column::TextColumn;
use crate::error::Error;
use crate::position::Window;

/// Rows that one thread reads at a time.
const GRAIN_ROWS: usize = 256;

/// Reads the texts of the rows at `offsets`, `lengths` bytes long without their newline, as
/// [`read_piece`](crate::read_piece) gave them, in any order.
///
/// Returns consecutive columns that together hold the texts in the order asked. Rows that lie close together in the
/// file are fetched by one read.
///
/// # Errors
/// [`Error::Changed`] if a row is no longer one; [`Error::Io`]; [`Error::Canceled`].
pub fn read_rows(
    file: &File,
    offsets: &[u64],
    lengths: &[u32],
    rules: &JsonlRules,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Vec<TextColumn>, Error> {
    if offsets.len() != lengths.len() {
        return Err(Error::invalid(
            "lengths",
            format!("{} lengths for {} offsets", lengths.len(), offsets.len()),
        ));
    }
    rules.tree()?;
    // Ids and further fields are not wanted here, so they are not looked at.
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
            let mut texts = TextColumn::with_capacity(num_bytes);
            for i in range.clone() {
                let (offset, length) = (offsets[i], u64::from(lengths[i]));
                let next = (i + 1..range.end).map(|k| (offsets[k], u64::from(lengths[k])));
                let line = window
                    .fetch(file, offset, length, next)
                    .map_err(|e| Error::read(e, offset))?;
                match parser.parse(line, offset) {
                    Ok(row) => row.push_text(&mut texts),
                    Err(reason) => return Err(Error::Changed { offset, reason }),
                }
            }
            Ok(texts)
        },
    )?;
    parts.into_iter().collect()
}
