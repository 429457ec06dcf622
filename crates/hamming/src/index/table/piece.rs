//! How are the codes of neighboring cells packed into a piece of a table?

use std::ops::Range;

use super::directory::{DirectoryPart, DirectoryWriter, Shape};
use super::packed::{PackedPart, PackedWriter};
use super::permutation::Permutation;
use super::rows::RowsPart;
use super::sort::sort;
use super::table::residual_bits;
use crate::plan::Key;

#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) permutation: Permutation,
    pub(crate) shape: Shape,
    /// Number of prefix bits that determine the cell of a code.
    pub(crate) cell_bits: u32,
    pub(crate) num_words: usize,
    pub(crate) with_rows: bool,
}

/// The packed codes of neighboring cells.
pub(crate) struct Part {
    pub(crate) directory: DirectoryPart,
    pub(crate) residuals: PackedPart,
    pub(crate) rest: Vec<u64>,
    pub(crate) rows: RowsPart,
    pub(crate) num_entries: usize,
}

impl Layout {
    /// Creates the layout for about `num_expected` distinct codes. A cell is one or more lines of the directory.
    pub(crate) fn new(
        bits: u32,
        key: &Key,
        num_expected: usize,
        with_rows: bool,
        max_cell_bits: u32,
    ) -> Self {
        let permutation = Permutation::new(bits, key);
        let shape = Shape::choose(num_expected, key.width(), permutation.top_bits());
        Layout {
            cell_bits: (shape.prefix_bits - shape.line_shift).min(max_cell_bits),
            permutation,
            shape,
            num_words: bits.div_ceil(64) as usize,
            with_rows,
        }
    }

    /// Number of words of an entry: the permuted code and, if rows are kept, its row.
    pub(crate) fn entry_words(&self) -> usize {
        self.num_words + usize::from(self.with_rows)
    }

    #[inline(always)]
    pub(crate) fn cell_of(&self, top: u64) -> u64 {
        // Two shifts, since a single shift by 64 is invalid.
        top >> (self.permutation.top_bits() - self.cell_bits - 1) >> 1
    }

    /// Sorts the entries of all codes of these cells and packs the distinct ones.
    pub(crate) fn pack(&self, cells: Range<usize>, entries: &mut [u64]) -> Part {
        match self.entry_words() {
            1 => self.sort_and_pack::<1>(cells, entries),
            2 => self.sort_and_pack::<2>(cells, entries),
            3 => self.sort_and_pack::<3>(cells, entries),
            4 => self.sort_and_pack::<4>(cells, entries),
            _ => self.sort_and_pack::<5>(cells, entries),
        }
    }

    /// Sorts entries of `N` words, the last of which is the row if rows are kept, and packs the distinct codes.
    fn sort_and_pack<const N: usize>(&self, cells: Range<usize>, flat: &mut [u64]) -> Part {
        let (entries, _) = flat.as_chunks_mut::<N>();
        let mut scratch = vec![[0; N]; entries.len()];
        let top_bits = self.permutation.top_bits();
        // All entries agree in the bits that the cells have in common.
        let differing = cells.start ^ cells.end.saturating_sub(1).max(cells.start);
        let open_bits = top_bits - self.cell_bits + (usize::BITS - differing.leading_zeros());
        sort(entries, &mut scratch, open_bits);
        drop(scratch);
        let num_words = self.num_words;
        let prefix_shift = top_bits - self.shape.prefix_bits;
        let low = u64::MAX >> (64 - prefix_shift);
        let residual_width = residual_bits(top_bits, self.shape.prefix_bits);
        let buckets_a_cell = self.shape.prefix_bits - self.cell_bits;
        let buckets = cells.start << buckets_a_cell..cells.end << buckets_a_cell;
        let num_lines = buckets.len() >> self.shape.line_shift;
        let mut directory = DirectoryWriter::new(self.shape, num_lines);
        let mut residuals = PackedWriter::new(residual_width, entries.len());
        let mut rest = Vec::with_capacity(entries.len() * (num_words - 1));
        let mut rows = RowsPart::default();
        let mut num_entries = 0;
        let mut at = 0;
        for bucket in buckets {
            let mut len = 0;
            while let Some(entry) = entries.get(at)
                && entry[0] >> prefix_shift == bucket as u64
            {
                let is_new = at == 0 || entries[at - 1][..num_words] != entry[..num_words];
                if is_new {
                    residuals.push(entry[0] & low);
                    rest.extend_from_slice(&entry[1..num_words]);
                    len += 1;
                }
                if self.with_rows {
                    let row = entry[N - 1] as u32;
                    match is_new {
                        true => rows.push(row),
                        false => rows.push_to_last(row),
                    }
                }
                at += 1;
            }
            directory.push(len);
            num_entries += len as usize;
        }
        Part {
            directory: directory.finish(),
            residuals: residuals.finish(),
            rest,
            rows,
            num_entries,
        }
    }
}
