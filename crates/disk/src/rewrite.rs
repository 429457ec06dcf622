//! How are spans of text removed from the rows of a file?

use likewise_core::error::invalid_if;
use likewise_core::text::Without;

use crate::error::Result;
use crate::position::Rows;

/// Rows that a thread rewrites at a time.
const GRAIN_ROWS: usize = 64;

/// Spans of texts, sorted by row and start, in bytes of UTF-8 (three for a lone surrogate); they may overlap.
#[derive(Debug, Clone, Copy)]
pub struct Stretches<'a> {
    pub counts: &'a [u32],
    pub starts: &'a [u32],
    pub ends: &'a [u32],
    /// Whether a space is inserted if two words would otherwise be joined.
    pub keeps_words_apart: bool,
}

impl<'a> Stretches<'a> {
    /// Returns, for each of `num_texts` texts, a filter that removes its spans.
    pub fn of_texts(&self, num_texts: usize) -> Result<Vec<Without<'a>>> {
        let num_stretches: usize = self.counts.iter().map(|&count| count as usize).sum();
        let is_even = self.counts.len() == num_texts
            && self.starts.len() == num_stretches
            && self.ends.len() == num_stretches;
        invalid_if(!is_even, "counts", || "the arrays do not fit each other")?;
        let mut first = 0;
        let begun = self.counts.iter().map(|&count| {
            let own = first..first + count as usize;
            first = own.end;
            Without::new(
                &self.starts[own.clone()],
                &self.ends[own],
                self.keeps_words_apart,
            )
        });
        Ok(begun.collect())
    }
}

/// Rows after the removal of spans from their texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// The rows one after another, each with a newline.
    pub lines: Vec<u8>,
    /// End of each row in `lines`.
    pub ends: Vec<u64>,
    /// Number of removed bytes of text.
    pub num_removed_bytes: u64,
}

/// Rewrites rows; each thread's function from `make` takes a row, its offset and the filter of its text, and appends the
/// new row without a line end.
pub(crate) fn rewrite<F>(
    rows: Rows<'_>,
    gone: Stretches<'_>,
    make: impl Fn() -> Result<F> + Sync,
) -> Result<Rewritten>
where
    F: FnMut(&[u8], u64, &mut Without<'_>, &mut Vec<u8>) -> Result<()>,
{
    let texts = gone.of_texts(rows.offsets.len())?;
    let take = |(write, made): &mut (F, Rewritten), i: usize, row: &[u8]| {
        let mut text = texts[i].clone();
        write(row, rows.offsets[i], &mut text, &mut made.lines)?;
        made.num_removed_bytes += text.num_removed;
        made.lines.push(b'\n');
        made.ends.push(made.lines.len() as u64);
        Ok(())
    };
    let mut all = Rewritten::default();
    for part in rows.read(GRAIN_ROWS, |_| Ok((make()?, Rewritten::default())), take)? {
        let base = all.lines.len() as u64;
        all.lines.extend_from_slice(&part.lines);
        all.ends.extend(part.ends.iter().map(|end| base + end));
        all.num_removed_bytes += part.num_removed_bytes;
    }
    Ok(all)
}
