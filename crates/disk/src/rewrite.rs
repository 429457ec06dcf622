//! What are rows of a file when stretches of their texts go?

use std::fs::File;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::map_ranges;
use likewise_core::text::Without;

use crate::error::Error;
use crate::position::Window;

/// Rows that one thread writes anew at a time.
const GRAIN_ROWS: usize = 64;

/// Stretches of texts, by row and then by where they begin: bytes of the UTF-8 of the text, a lone surrogate being three.
/// They may overlap.
#[derive(Debug, Clone, Copy)]
pub struct Stretches<'a> {
    /// How many there are of each row.
    pub counts: &'a [u32],
    /// Where each begins.
    pub starts: &'a [u32],
    /// Where each ends.
    pub ends: &'a [u32],
    /// Whether a space goes where two words would become one.
    pub keeps_words_apart: bool,
}

impl<'a> Stretches<'a> {
    /// What is left of each of `num_texts` texts, begun.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the arrays do not fit each other.
    pub fn of_texts(&self, num_texts: usize) -> Result<Vec<Without<'a>>, Error> {
        let num_stretches: usize = self.counts.iter().map(|&count| count as usize).sum();
        let is_even = self.counts.len() == num_texts
            && self.starts.len() == num_stretches
            && self.ends.len() == num_stretches;
        if !is_even {
            return Err(Error::invalid(
                "counts",
                "the arrays do not fit each other".to_owned(),
            ));
        }
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

/// Rows without stretches of their texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// The rows one after another, each with a newline; of a row of whose text nothing but whitespace is left none.
    pub lines: Vec<u8>,
    /// Where each row ends in `lines`.
    pub ends: Vec<u64>,
    /// Bytes of text that went.
    pub num_removed_bytes: u64,
}

/// Writes the rows at `offsets` anew, `lengths` bytes long without their line end.
///
/// For each thread `make` gives what takes a row and its offset, and adds the new one, without a line end, by what is left
/// of its text.
///
/// # Errors
/// Those of `make` and of what it gives; [`Error::Invalid`] if lengths do not fit; [`Error::Io`]; [`Error::Canceled`].
///
/// # Cost
/// A pass over the rows. Memory for what comes of them.
pub(crate) fn rewrite<F>(
    file: &File,
    offsets: &[u64],
    lengths: &[u32],
    gone: Stretches<'_>,
    threads: usize,
    cancel: &AtomicBool,
    make: impl Fn() -> Result<F, Error> + Sync,
) -> Result<Rewritten, Error>
where
    F: FnMut(&[u8], u64, &mut Without<'_>, &mut Vec<u8>) -> Result<(), Error>,
{
    if lengths.len() != offsets.len() {
        let message = format!("{} lengths for {} offsets", lengths.len(), offsets.len());
        return Err(Error::invalid("lengths", message));
    }
    let texts = gone.of_texts(offsets.len())?;
    let parts = map_ranges(
        offsets.len(),
        GRAIN_ROWS,
        threads,
        cancel,
        Window::new,
        |window, range| {
            let mut write = make()?;
            let mut made = Rewritten::default();
            for i in range.clone() {
                let (offset, length) = (offsets[i], u64::from(lengths[i]));
                let next = (i + 1..range.end).map(|k| (offsets[k], u64::from(lengths[k])));
                let row = window
                    .fetch(file, offset, length, next)
                    .map_err(|e| Error::read(e, offset))?;
                let (mut text, before) = (texts[i].clone(), made.lines.len());
                write(row, offset, &mut text, &mut made.lines)?;
                made.num_removed_bytes += text.num_removed();
                match text.is_blank() {
                    true => made.lines.truncate(before),
                    false => made.lines.push(b'\n'),
                }
                made.ends.push(made.lines.len() as u64);
            }
            Ok::<_, Error>(made)
        },
    )?;
    let mut all = Rewritten::default();
    for part in parts {
        let part = part?;
        let base = all.lines.len() as u64;
        all.lines.extend_from_slice(&part.lines);
        all.ends.extend(part.ends.iter().map(|end| base + end));
        all.num_removed_bytes += part.num_removed_bytes;
    }
    Ok(all)
}
