//! Where is the bucket of a prefix?
//!
//! A directory gives the entries for each value of the first bits of a permuted code. If buckets are small, it consists
//! of cache lines, so that a probe misses once: 32 bits with the number of entries before the line, then the sizes of
//! the line's buckets in unary (a 1, then for each bucket a 0 per entry and a 1). It takes a bit per bucket and a bit
//! per entry, and neighbors that flip a low bit of the prefix are in the same line. A line whose entries do not fit
//! states where their ends are stored as plain numbers. If buckets are large, the directory is the plain list of their
//! starts.

use std::ops::ControlFlow;

use super::words::Words;
use crate::plan::shape::{LINE_CAPACITY, LINE_WORDS, Shape};

/// Bit of the last word of a line which means that the ends are plain numbers.
pub(crate) const ESCAPED: u64 = 1 << 63;
/// The unary part of the first word, and of the last.
pub(crate) const FIRST_WORD: u64 = !0 << 32;
pub(crate) const LAST_WORD: u64 = !ESCAPED;

#[derive(Debug, Clone)]
pub struct Directory {
    pub shape: Shape,
    /// Unary lines, or plain starts as 32-bit numbers.
    pub lines: Words,
    /// For each escaped line, the ends of its buckets, relative to the line's first entry, as 32-bit numbers.
    pub escapes: Words,
}

impl Directory {
    /// Calls `visit(prefix, start, len)` for every bucket in order, until it returns `Break`.
    pub(crate) fn for_each_bucket(
        &self,
        mut visit: impl FnMut(u64, usize, usize) -> ControlFlow<()>,
    ) {
        let shape = self.shape;
        if !shape.is_unary {
            let starts = &self.lines.as_u32()[..(1 << shape.prefix_bits) + 1];
            for (prefix, bounds) in (0..).zip(starts.windows(2)) {
                let len = bounds[1].saturating_sub(bounds[0]);
                if visit(prefix, bounds[0] as usize, len as usize).is_break() {
                    return;
                }
            }
            return;
        }
        let (lines, _) = self.lines.as_slice().as_chunks::<LINE_WORDS>();
        let mut prefix = 0;
        for line in lines {
            let mut start = (line[0] & !FIRST_WORD) as usize;
            let num_buckets = 1_usize << shape.line_shift;
            if line[LINE_WORDS - 1] & ESCAPED != 0 {
                for bucket in 0..num_buckets {
                    let (start, len) = self.escaped_bucket(line, bucket);
                    if visit(prefix, start as usize, len as usize).is_break() {
                        return;
                    }
                    prefix += 1;
                }
                continue;
            }
            // The first 1 precedes all buckets.
            let mut last_one = 32;
            let mut bits = line[0] & FIRST_WORD & !(1 << 32);
            let mut word = 0;
            for _ in 0..num_buckets {
                while bits == 0 && word + 1 < LINE_WORDS {
                    word += 1;
                    bits = line[word];
                }
                let one = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                let len = one.saturating_sub(last_one + 1);
                if visit(prefix, start, len).is_break() {
                    return;
                }
                start += len;
                last_one = one;
                prefix += 1;
            }
        }
    }

    /// Whether the data that [`escaped_bucket`](Self::escaped_bucket) reads is intact.
    #[cold]
    pub(crate) fn is_good_escape(&self, line: &[u64], bucket: usize) -> bool {
        let at = (line[1] as usize).saturating_add(bucket);
        let first = at.saturating_sub(usize::from(bucket > 0));
        self.escapes.are_good(first / 2..at / 2 + 1)
    }

    /// Whether the line of a prefix (for plain starts, its start and end) is intact.
    #[inline(always)]
    pub(crate) fn is_good_line(&self, prefix: u64) -> bool {
        let words = match self.shape.is_unary {
            true => {
                let line = (prefix >> self.shape.line_shift) as usize;
                line * LINE_WORDS..(line + 1) * LINE_WORDS
            }
            false => prefix as usize / 2..(prefix as usize).div_ceil(2) + 1,
        };
        self.lines.are_good(words)
    }

    #[cold]
    pub(crate) fn escaped_bucket(&self, line: &[u64], bucket: usize) -> (u64, u64) {
        let base = line[0] & !FIRST_WORD;
        let ends = self.escapes.as_u32();
        // Values from a damaged file are limited to what exists.
        let at = (line[1] as usize).saturating_add(bucket);
        let end_of = |at: usize| ends.get(at).copied().unwrap_or(0);
        let start = if bucket == 0 { 0 } else { end_of(at - 1) };
        let len = end_of(at).saturating_sub(start);
        (base + u64::from(start), u64::from(len))
    }
}

/// Builds lines or starts from the lengths of buckets in order.
pub(crate) struct DirectoryWriter {
    shape: Shape,
    /// Lines, with first entries relative to the start of this part.
    lines: Vec<u64>,
    escapes: Vec<u32>,
    starts: Vec<u32>,
    /// Lengths of the buckets of the current line.
    pending: Vec<u32>,
    num_entries: usize,
}

impl DirectoryWriter {
    pub(crate) fn new(shape: Shape, num_lines: usize) -> Self {
        let buckets = num_lines << shape.line_shift;
        DirectoryWriter {
            shape,
            lines: Vec::with_capacity(if shape.is_unary {
                num_lines * LINE_WORDS
            } else {
                0
            }),
            escapes: Vec::new(),
            starts: Vec::with_capacity(if shape.is_unary { 0 } else { buckets }),
            pending: Vec::with_capacity(1 << shape.line_shift),
            num_entries: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, len: u32) {
        if !self.shape.is_unary {
            self.starts.push(self.num_entries as u32);
            self.num_entries += len as usize;
            return;
        }
        self.pending.push(len);
        if self.pending.len() == 1 << self.shape.line_shift {
            self.write_line();
        }
    }

    fn write_line(&mut self) {
        let mut line = [0_u64; LINE_WORDS];
        line[0] = self.num_entries as u64;
        let in_line: usize = self.pending.iter().map(|&len| len as usize).sum();
        if in_line + self.pending.len() <= LINE_CAPACITY {
            let mut bit = 32;
            line[0] |= 1 << bit;
            for &len in &self.pending {
                bit += len as usize + 1;
                line[bit / 64] |= 1 << (bit % 64);
            }
        } else {
            line[1] = self.escapes.len() as u64;
            line[LINE_WORDS - 1] = ESCAPED;
            let mut end = 0;
            for &len in &self.pending {
                end += len;
                self.escapes.push(end);
            }
        }
        self.num_entries += in_line;
        self.lines.extend_from_slice(&line);
        self.pending.clear();
    }

    pub(crate) fn finish(self) -> DirectoryPart {
        debug_assert!(self.pending.is_empty());
        DirectoryPart {
            lines: self.lines,
            escapes: self.escapes,
            starts: self.starts,
        }
    }
}

/// The directory of neighboring lines, relative to their own first entry.
pub(crate) struct DirectoryPart {
    pub(crate) lines: Vec<u64>,
    pub(crate) escapes: Vec<u32>,
    pub(crate) starts: Vec<u32>,
}

impl DirectoryPart {
    /// Appends the lines of a part that follows so many entries and escapes.
    pub(crate) fn append_lines(
        &self,
        words: &mut Vec<u64>,
        entries_before: usize,
        escapes_before: usize,
    ) {
        let from = words.len();
        words.extend_from_slice(&self.lines);
        for line in words[from..].chunks_exact_mut(LINE_WORDS) {
            // The total number of entries is below 2^32.
            line[0] += entries_before as u64;
            if line[LINE_WORDS - 1] & ESCAPED != 0 {
                line[1] += escapes_before as u64;
            }
        }
    }
}
