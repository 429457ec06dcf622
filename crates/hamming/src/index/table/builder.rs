//! How is a table built that is never in memory as a whole?
//!
//! Its codes are counted by cell, the first bits of their permuted form. Then, for some cells at a time, the caller
//! copies the codes of the cells to the places given by the counts, and packs them; the pieces, in order, form the
//! table. They are emitted as words of its sections, from the first to the last, ready for a file.

use std::ops::Range;

use likewise_core::isa::Isa;

use super::directory::{DirectoryPart, DirectoryWriter};
use super::kernel::TableKernel;
use super::packed::{PackedPart, PackedWriter};
use super::permutation::Permutation;
use super::rows::{RowsPart, width_of};
use crate::kernels::run_kernel;
use crate::plan::Key;
use crate::plan::shape::{Shape, residual_bits};

/// Codes that are permuted before those of the cells are copied.
const GROUP: usize = 256;

#[derive(Clone, Copy)]
pub enum RowsOf<'a> {
    /// Consecutive rows from this one on.
    From(u32),
    /// One row for each code.
    Given(&'a [u32]),
}

/// Neighboring cells, and the number of codes in them.
#[derive(Debug)]
pub struct Slice {
    pub cells: Range<usize>,
    pub num_codes: usize,
}

/// Divides the cells into slices of about equal numbers of codes, at most `most` unless a cell has more, and at least
/// `least`: one for each thread of each wave, and each wave is to be in memory at once.
pub fn waves(counts: &[u32], (least, most): (usize, usize), threads: usize) -> Vec<Vec<Slice>> {
    let total: usize = counts.iter().map(|&count| count as usize).sum();
    let most = most.max(least).max(1);
    // Equal waves of equal slices.
    let num_slices = total.div_ceil(most).max(1).next_multiple_of(threads);
    let fair = total.div_ceil(num_slices).max(least);
    let mut slices = Vec::new();
    let (mut start, mut num_codes) = (0, 0);
    for (cell, &count) in counts.iter().enumerate() {
        let count = count as usize;
        let is_full = num_codes + count > most || num_codes + count / 2 > fair;
        if is_full && num_codes > 0 {
            slices.push(Slice {
                cells: start..cell,
                num_codes,
            });
            (start, num_codes) = (cell, 0);
        }
        num_codes += count;
    }
    slices.push(Slice {
        cells: start..counts.len(),
        num_codes,
    });
    let mut slices = slices.into_iter().peekable();
    let mut waves = Vec::new();
    while slices.peek().is_some() {
        waves.push(slices.by_ref().take(threads).collect());
    }
    waves
}

/// Space for the entries of a slice.
#[derive(Debug)]
pub struct Places<'a> {
    first_cell: usize,
    counts: &'a [u32],
    /// For each cell, the index of its next entry.
    next: Vec<u32>,
    entries: &'a mut [u64],
    /// Whether there were more entries than fit, which means that the codes are not those that were counted.
    is_over: bool,
}

impl<'a> Places<'a> {
    /// Prepares space for as many entries as the cells of the slice have by the counts of all cells.
    pub fn new(slice: &Slice, counts: &'a [u32], entries: &'a mut [u64]) -> Self {
        let counts = &counts[slice.cells.clone()];
        let mut end = 0;
        let next = counts.iter().map(|count| {
            end += count;
            end - count
        });
        Places {
            first_cell: slice.cells.start,
            next: next.collect(),
            counts,
            entries,
            is_over: false,
        }
    }

    /// Whether each cell has as many entries as were counted.
    pub fn are_full(&self) -> bool {
        let mut end = 0;
        let mut cells = self.next.iter().zip(self.counts);
        !self.is_over
            && cells.all(|(&next, &count)| {
                end += count;
                next == end
            })
    }
}

/// Cells that are packed together, and their entries.
pub type Group<'a> = (Range<usize>, &'a mut [u64]);

/// Counts codes by cell. Safety: the kernel's instruction set, and codes of `W` words.
#[inline(always)]
unsafe fn count<K: TableKernel, const W: usize>(
    builder: &TableBuilder,
    codes: &[u64],
    counts: &mut [u32],
) {
    for code in codes.as_chunks::<W>().0 {
        // SAFETY: guaranteed by the caller.
        let permuted = unsafe { K::permute(&builder.permutation, code) };
        counts[builder.cell_of(permuted[0]) as usize] += 1;
    }
}

/// Selects the codes of the cells, then copies them to their places. Safety: same as [`count`].
#[inline(always)]
unsafe fn spread<K: TableKernel, const W: usize>(
    builder: &TableBuilder,
    codes: &[u64],
    rows: RowsOf<'_>,
    places: &mut Places<'_>,
) {
    let (from, num_cells) = (places.first_cell as u64, places.next.len() as u64);
    let mut picked = [([0; W], 0_u32, 0_u32); GROUP];
    let codes = codes.as_chunks::<W>().0;
    for (number, codes) in codes.chunks(GROUP).enumerate() {
        let first = number * GROUP;
        let mut num_picked = 0;
        for (position, code) in (first..).zip(codes) {
            // SAFETY: guaranteed by the caller.
            let permuted = unsafe { K::permute(&builder.permutation, code) };
            let cell = builder.cell_of(permuted[0]).wrapping_sub(from);
            let row = match rows {
                RowsOf::From(row) => row.wrapping_add(position as u32),
                RowsOf::Given(rows) => rows[position],
            };
            // Always written, and overwritten by the next code unless it belongs here: no branch to mispredict.
            picked[num_picked] = (permuted, cell as u32, row);
            num_picked += usize::from(cell < num_cells);
        }
        for (permuted, cell, row) in &picked[..num_picked] {
            places.put(permuted, *cell, builder.with_rows.then_some(*row));
        }
    }
}

impl Places<'_> {
    #[inline(always)]
    fn put<const W: usize>(&mut self, code: &[u64; W], cell: u32, row: Option<u32>) {
        let width = W + usize::from(row.is_some());
        let next = &mut self.next[cell as usize];
        let at = *next as usize * width;
        let Some(slot) = self.entries.get_mut(at..at + width) else {
            self.is_over = true;
            return;
        };
        slot[..W].copy_from_slice(code);
        if let Some(row) = row {
            slot[W] = u64::from(row);
        }
        *next += 1;
    }
}

/// How a table is laid out.
#[derive(Debug)]
pub struct TableBuilder {
    pub(crate) permutation: Permutation,
    pub(crate) shape: Shape,
    /// Number of prefix bits that determine the cell of a code.
    cell_bits: u32,
    pub(crate) num_words: usize,
    pub(crate) with_rows: bool,
}

/// The packed codes of neighboring cells.
pub struct TablePiece {
    pub(crate) directory: DirectoryPart,
    pub(crate) residuals: PackedPart,
    pub(crate) rest: Vec<u64>,
    pub(crate) rows: RowsPart,
    pub(crate) num_entries: usize,
}

impl TableBuilder {
    /// Prepares a table of codes sorted by `key`, about `num_expected`, in at most `2^max_cell_bits` cells. A cell is one
    /// or more lines of the directory.
    pub fn new(
        bits: u32,
        key: &Key,
        num_expected: usize,
        with_rows: bool,
        max_cell_bits: u32,
    ) -> Self {
        let permutation = Permutation::new(bits, key);
        let shape = Shape::choose(num_expected, key.width(), permutation.top_bits());
        TableBuilder {
            cell_bits: (shape.prefix_bits - shape.line_shift).min(max_cell_bits),
            permutation,
            shape,
            num_words: bits.div_ceil(64) as usize,
            with_rows,
        }
    }

    pub fn num_cells(&self) -> usize {
        1 << self.cell_bits
    }

    /// Whether cells could be smaller.
    pub fn can_be_finer(&self) -> bool {
        self.shape.prefix_bits - self.shape.line_shift > self.cell_bits
    }

    /// Number of words of an entry: the permuted code and, if rows are kept, its row.
    pub fn entry_words(&self) -> usize {
        self.num_words + usize::from(self.with_rows)
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of words of the directory without escapes, which is known in advance.
    pub fn num_line_words(&self) -> usize {
        self.shape.num_words()
    }

    pub fn with_rows(&self) -> bool {
        self.with_rows
    }

    /// Number of stored bits of the first word of a code.
    pub(crate) fn residual_bits(&self) -> u32 {
        residual_bits(self.permutation.top_bits(), self.shape.prefix_bits)
    }

    /// Number of bits of the number of a row or of a group, if rows are kept.
    pub(crate) fn row_bits(&self, max_row: u32) -> u32 {
        match self.with_rows {
            true => width_of(max_row),
            false => 0,
        }
    }

    /// Bytes per distinct code in addition to the directory: packed bits, and other words with the row.
    pub fn bytes_an_entry(&self, max_row: u32) -> [f64; 2] {
        let rest = 64 * (self.num_words - 1) as u32;
        [self.residual_bits(), rest + self.row_bits(max_row)].map(|bits| f64::from(bits) / 8.0)
    }

    /// Counts codes by cell.
    pub fn count(&self, codes: &[u64], counts: &mut [u32], isa: Isa) {
        let builder = self;
        run_kernel!(isa, self.num_words, count, (builder: &TableBuilder, codes: &[u64], counts: &mut [u32]));
    }

    /// Copies the codes that belong to the cells to their places.
    pub fn spread(&self, codes: &[u64], rows: RowsOf<'_>, places: &mut Places<'_>, isa: Isa) {
        let builder = self;
        run_kernel!(isa, self.num_words, spread, (builder: &TableBuilder, codes: &[u64], rows: RowsOf<'_>, places: &mut Places<'_>));
    }

    /// Divides the entries of a slice into groups of about `num_packed`, each of at most `most_cells` cells.
    pub fn groups<'a>(
        &self,
        slice: &Slice,
        counts: &[u32],
        mut entries: &'a mut [u64],
        (num_packed, most_cells): (usize, usize),
    ) -> Vec<Group<'a>> {
        let mut groups = Vec::new();
        let (mut start, mut num) = (slice.cells.start, 0);
        for cell in slice.cells.clone() {
            let count = counts[cell] as usize;
            let is_full = num > 0 && num + count > num_packed;
            if is_full || cell - start == most_cells {
                let (group, others) = entries.split_at_mut(num * self.entry_words());
                groups.push((start..cell, group));
                (entries, start, num) = (others, cell, 0);
            }
            num += count;
        }
        groups.push((start..slice.cells.end, entries));
        groups
    }

    #[inline(always)]
    fn cell_of(&self, top: u64) -> u64 {
        // Two shifts, since a single shift by 64 is invalid.
        top >> (self.permutation.top_bits() - self.cell_bits - 1) >> 1
    }

    /// Sorts the entries of all codes of a group and packs the distinct ones, with memory for another copy.
    pub fn pack(&self, (cells, entries): Group<'_>) -> TablePiece {
        match self.entry_words() {
            1 => self.sort_and_pack::<1>(cells, entries),
            2 => self.sort_and_pack::<2>(cells, entries),
            3 => self.sort_and_pack::<3>(cells, entries),
            4 => self.sort_and_pack::<4>(cells, entries),
            _ => self.sort_and_pack::<5>(cells, entries),
        }
    }

    /// Sorts entries of `N` words, the last of which is the row if rows are kept, and packs the distinct codes.
    fn sort_and_pack<const N: usize>(&self, cells: Range<usize>, flat: &mut [u64]) -> TablePiece {
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
        let buckets_a_cell = self.shape.prefix_bits - self.cell_bits;
        let buckets = cells.start << buckets_a_cell..cells.end << buckets_a_cell;
        let num_lines = buckets.len() >> self.shape.line_shift;
        let mut directory = DirectoryWriter::new(self.shape, num_lines);
        let mut residuals = PackedWriter::new(self.residual_bits(), entries.len());
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
        TablePiece {
            directory: directory.finish(),
            residuals: residuals.finish(),
            rest,
            rows,
            num_entries,
        }
    }
}

/// Number of entries from which radix passes beat comparisons.
const FEW: usize = 48;
/// Maximum number of bits per pass: this many write positions stay in the caches.
const MAX_DIGIT_BITS: u32 = 10;

/// Sorts entries that agree from bit `bits` of their first word on, with `scratch` of the same length.
pub(crate) fn sort<const N: usize>(entries: &mut [[u64; N]], scratch: &mut [[u64; N]], bits: u32) {
    let len = entries.len();
    if len <= FEW {
        sort_few(entries);
        return;
    }
    if bits == 0 {
        entries.sort_unstable();
        return;
    }
    let digit_bits = (len.ilog2() - 2).clamp(1, MAX_DIGIT_BITS).min(bits);
    let shift = bits - digit_bits;
    let mask = (1_u64 << digit_bits) - 1;
    let mut starts = [0_u32; (1 << MAX_DIGIT_BITS) + 1];
    let starts = &mut starts[..(1 << digit_bits) + 1];
    for entry in entries.iter() {
        starts[(entry[0] >> shift & mask) as usize + 1] += 1;
    }
    if starts.iter().any(|&count| count as usize == len) {
        sort(entries, scratch, shift);
        return;
    }
    let mut total = 0;
    for start in starts.iter_mut() {
        total += *start;
        *start = total;
    }
    for entry in entries.iter() {
        let next = &mut starts[(entry[0] >> shift & mask) as usize];
        scratch[*next as usize] = *entry;
        *next += 1;
    }
    entries.copy_from_slice(scratch);
    // Each start has moved to the end of its part.
    let mut from = 0;
    for &end in &starts[..1 << digit_bits] {
        let end = end as usize;
        if end - from > 1 {
            sort(&mut entries[from..end], &mut scratch[from..end], shift);
        }
        from = end;
    }
}

/// Sorts by insertion, with comparisons that mostly end at the first word.
#[inline(always)]
fn sort_few<const N: usize>(entries: &mut [[u64; N]]) {
    for i in 1..entries.len() {
        let entry = entries[i];
        let mut at = i;
        while at > 0 && is_less(&entry, &entries[at - 1]) {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        entries[at] = entry;
    }
}

#[inline(always)]
fn is_less<const N: usize>(left: &[u64; N], right: &[u64; N]) -> bool {
    for (left, right) in left.iter().zip(right) {
        if left != right {
            return left < right;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use likewise_core::hash::mix64;

    #[test]
    fn sorts_as_comparison_does() {
        for len in [0, 1, 48, 49, 1000, 70_000] {
            for mask in [u64::MAX, 0xff, 0xff00_0000_0000_0000, 0] {
                let mut entries: Vec<[u64; 3]> = (0..len)
                    .map(|i| [mix64(i) & mask, mix64(i) >> 60, len - i])
                    .collect();
                let mut expected = entries.clone();
                expected.sort();
                let mut scratch = entries.clone();
                sort(&mut entries, &mut scratch, 64);
                assert!(entries == expected, "{len} {mask:x}");
            }
        }
    }
}
