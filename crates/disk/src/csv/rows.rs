//! How are the texts of known records read again?

use std::fs::File;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::map_ranges;

use super::record::RecordParser;
use super::rules::CsvRules;
use crate::column::TextColumn;
use crate::error::{Error, Result};
use crate::position::Window;

/// Records that a thread reads at a time.
const GRAIN_ROWS: usize = 256;

/// Reads the texts of records, as returned by [`CsvStream`](crate::CsvStream), in any order.
pub fn read_csv_rows(
    file: &File,
    offsets: &[u64],
    lengths: &[u32],
    rules: &CsvRules,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Vec<TextColumn>> {
    if offsets.len() != lengths.len() {
        let message = format!("{} lengths for {} offsets", lengths.len(), offsets.len());
        return Err(Error::invalid("lengths", message));
    }
    rules.check()?;
    let parts = map_ranges(
        offsets.len(),
        GRAIN_ROWS,
        threads,
        cancel,
        Window::new,
        |window, range| {
            let mut texts = TextColumn::default();
            for i in range.clone() {
                let (offset, length) = (offsets[i], u64::from(lengths[i]));
                let next = (i + 1..range.end).map(|k| (offsets[k], u64::from(lengths[k])));
                let record = window
                    .fetch(file, offset, length, next)
                    .map_err(|e| Error::read(e, offset))?;
                let mut parser = RecordParser::new(rules.dialect, rules.max_document);
                let (taken, is_complete) = parser.feed(record);
                let changed = |reason: String| Error::Changed { offset, reason };
                if taken < record.len() || !(is_complete || parser.feed(b"\n").1) {
                    return Err(changed("it is no longer one record".to_owned()));
                }
                parser.check(length, rules).map_err(changed)?;
                parser.push_text(rules, &mut texts);
            }
            Ok(texts)
        },
    )?;
    parts.into_iter().collect()
}
