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

pub(crate) const LINE_WORDS: usize = 8;
/// Number of buckets and entries that fit in a line: 512 bits without the number, the first 1 and the escape bit.
const LINE_CAPACITY: usize = 478;
/// Bit of the last word of a line which means that the ends are plain numbers.
pub(crate) const ESCAPED: u64 = 1 << 63;
/// The unary part of the first word, and of the last.
pub(crate) const FIRST_WORD: u64 = !0 << 32;
pub(crate) const LAST_WORD: u64 = !ESCAPED;

/// Maximum number of bits of a prefix.
const MAX_PREFIX_BITS: u32 = 36;
/// Maximum number of prefix bits for which plain starts stay in the caches.
const FEW_PREFIX_BITS: u32 = 16;
/// Number of starts per cache line, as a power of two.
const STARTS_SHIFT: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) prefix_bits: u32,
    /// A line holds `2^line_shift` buckets.
    pub(crate) line_shift: u32,
    /// Whether lines are unary; otherwise the directory holds plain starts.
    pub(crate) is_unary: bool,
}

impl Shape {
    /// Chooses the shape with the fewest bytes for `num_entries` entries whose prefix stays within the key, so that a
    /// bucket holds every value of its rest; a nonempty bucket costs a fraction of a byte, for its cache miss.
    pub(crate) fn choose(num_entries: usize, key_width: u32, top_bits: u32) -> Self {
        let most = key_width.min(top_bits - 1).min(MAX_PREFIX_BITS);
        let n = num_entries.max(1) as f64;
        let full = (num_entries.max(1).ilog2() + 2).min(most);
        if full <= FEW_PREFIX_BITS || n / (1_u64 << full) as f64 > 3.0 {
            // Starts take less than a number per entry.
            let prefix_bits = full.min(num_entries.max(2).ilog2());
            return Shape {
                prefix_bits,
                line_shift: STARTS_SHIFT.min(prefix_bits),
                is_unary: false,
            };
        }
        let mut best = (f64::INFINITY, 0, 0);
        for prefix_bits in full.saturating_sub(4)..=full {
            let load = n / (1_u64 << prefix_bits) as f64;
            for line_shift in (0..=8).rev() {
                let buckets = f64::from(1 << line_shift);
                // Lines should rarely overflow: the number of entries of a line has a Poisson distribution.
                let likely = buckets * (1.0 + load) + 2.3 * (buckets * load).sqrt();
                if likely > LINE_CAPACITY as f64 {
                    continue;
                }
                let bytes = f64::from(top_bits - prefix_bits) / 8.0 + 64.0 / (buckets * load);
                let occupied = 1.0 - libm::exp(-load);
                let cost = bytes + 0.3 * occupied;
                if cost < best.0 {
                    best = (cost, prefix_bits, line_shift);
                }
                break;
            }
        }
        Shape {
            prefix_bits: best.1,
            line_shift: best.2,
            is_unary: true,
        }
    }

    /// Whether a table with these numbers of key bits and first-word bits may have this shape.
    pub(crate) fn is_sound(&self, key_width: u32, top_bits: u32) -> bool {
        let most = key_width.min(top_bits - 1).min(MAX_PREFIX_BITS);
        (1..=most).contains(&self.prefix_bits) && self.line_shift <= self.prefix_bits.min(8)
    }

    /// Number of lines; plain starts count as one line for as many as fit in one.
    pub(crate) fn num_lines(&self) -> usize {
        1 << (self.prefix_bits - self.line_shift)
    }

    /// Number of words of the directory without the ends of escaped lines.
    pub(crate) fn num_words(&self) -> usize {
        match self.is_unary {
            true => self.num_lines() * LINE_WORDS,
            // Includes an additional start: the end of the last bucket.
            false => ((1_usize << self.prefix_bits) + 1).div_ceil(2),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub(crate) shape: Shape,
    /// Unary lines, or plain starts as 32-bit numbers.
    pub(crate) lines: Words,
    /// For each escaped line, the ends of its buckets, relative to the line's first entry, as 32-bit numbers.
    pub(crate) escapes: Words,
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
    /// Copies the part to word `at` of the directory (start `at` for plain starts); returns the end position.
    pub(crate) fn copy_to(
        &self,
        shape: Shape,
        target: &mut [u64],
        at: usize,
        entries_before: usize,
        escapes_before: usize,
    ) -> usize {
        if !shape.is_unary {
            for (i, &start) in (at..).zip(&self.starts) {
                let start = u64::from(start) + entries_before as u64;
                target[i / 2] |= start << (32 * (i % 2));
            }
            return at + self.starts.len();
        }
        let target = &mut target[at..][..self.lines.len()];
        target.copy_from_slice(&self.lines);
        for line in target.chunks_exact_mut(LINE_WORDS) {
            // The total number of entries is below 2^32.
            line[0] += entries_before as u64;
            if line[LINE_WORDS - 1] & ESCAPED != 0 {
                line[1] += escapes_before as u64;
            }
        }
        at + self.lines.len()
    }
}
