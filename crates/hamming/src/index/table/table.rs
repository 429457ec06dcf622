//! How is one table organized?

use super::directory::Directory;
use super::kernel::Unpacking;
use super::packed;
use super::permutation::{Flips, Permutation};
use super::words::Words;
use crate::plan::Key;
use crate::plan::shape::{Shape, residual_bits};

/// The distinct codes sorted by one key: a directory over the first bits, and the other bits of each code, packed in
/// the first word; an entry's number is its rank.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) key: Key,
    pub(crate) permutation: Permutation,
    pub(crate) directory: Directory,
    pub(crate) num_entries: usize,
    /// Number of stored bits of the first word: those after the prefix, or 64 if fewer would not be faster to read.
    pub(crate) residual_bits: u32,
    /// The first word's remaining bits, packed and padded.
    pub(crate) residuals: Words,
    /// The other words of each code.
    pub(crate) rest: Words,
    pub(crate) unpacking: Box<[Unpacking; 8]>,
    /// Masks that turn a prefix into its neighbors by XOR: above the line, and within it.
    pub(crate) line_flips: Flips,
    pub(crate) bucket_flips: Flips,
}

impl Table {
    /// Creates a table from these parts, whose lengths must have been checked.
    pub(crate) fn new(
        key: Key,
        bits: u32,
        directory: Directory,
        num_entries: usize,
        residuals: Words,
        rest: Words,
    ) -> Self {
        let permutation = Permutation::new(bits, &key);
        let Shape {
            prefix_bits,
            line_shift,
            ..
        } = directory.shape;
        let residual_bits = residual_bits(permutation.top_bits(), prefix_bits);
        Table {
            residual_bits,
            unpacking: Unpacking::of_width(residual_bits),
            line_flips: Flips::new(prefix_bits - line_shift, line_shift, key.radius),
            bucket_flips: Flips::new(line_shift, 0, key.radius),
            key,
            permutation,
            directory,
            num_entries,
            residuals,
            rest,
        }
    }

    /// Number of bits of the first word after the prefix.
    #[inline(always)]
    pub(crate) fn prefix_shift(&self) -> u32 {
        self.permutation.top_bits() - self.directory.shape.prefix_bits
    }

    /// Whether there is a part, apart from escapes, that was not found intact yet.
    pub(crate) fn is_guarded(&self) -> bool {
        [&self.directory.lines, &self.residuals, &self.rest]
            .into_iter()
            .any(Words::is_guarded)
    }

    /// Whether the remaining bits of consecutive entries, at least one, are intact.
    #[inline(always)]
    pub(crate) fn are_good_residuals(&self, start: usize, len: usize) -> bool {
        let width = self.residual_bits as usize;
        let end = ((start + len) * width).div_ceil(64);
        self.residuals.are_good(start * width / 64..end)
    }

    /// Whether the other words of consecutive entries are intact.
    #[inline(always)]
    pub(crate) fn are_good_rest(&self, start: usize, len: usize, num_words: usize) -> bool {
        num_words == 1
            || self
                .rest
                .are_good(start * (num_words - 1)..(start + len) * (num_words - 1))
    }

    pub(crate) fn parts(&self) -> [&Words; 4] {
        let directory = &self.directory;
        [
            &directory.lines,
            &directory.escapes,
            &self.residuals,
            &self.rest,
        ]
    }

    /// Returns the permuted code of an entry in the bucket of `prefix`.
    #[inline(always)]
    pub(crate) fn entry<const W: usize>(&self, prefix: u64, rank: usize) -> [u64; W] {
        let mut code = [0; W];
        let shift = self.prefix_shift();
        let residual = packed::get(self.residuals.as_slice(), self.residual_bits, rank);
        code[0] = prefix << shift | residual & (u64::MAX >> (64 - shift));
        code[1..].copy_from_slice(&self.rest.as_slice()[rank * (W - 1)..][..W - 1]);
        code
    }

    pub(crate) fn num_bytes(&self) -> usize {
        self.directory.lines.num_bytes()
            + self.directory.escapes.num_bytes()
            + self.residuals.num_bytes()
            + self.rest.num_bytes()
    }
}
