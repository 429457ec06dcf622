//! How is a table built that is never in memory as a whole?
//!
//! Its codes are counted by cell, the first bits of their permuted form. Then, for some cells at a time, the caller
//! copies the codes of the cells to the places given by the counts, and packs them; the pieces, in order, form the
//! table. They are emitted as words of its sections, from the first to the last, ready for a file.

use std::ops::Range;

use super::kernel::TableKernel;
use super::piece::{Layout, Part};
use super::rows::width_of;
use super::table::residual_bits;
use crate::kernels::run_kernel;
use crate::plan::Key;
use likewise_core::isa::Isa;

/// Codes that are permuted before those of the cells are copied.
const GROUP: usize = 256;

#[derive(Debug)]
pub struct TableBuilder {
    pub(crate) layout: Layout,
    /// Number of directory lines per cell, as a power of two.
    lines_a_cell: u32,
}

#[derive(Clone, Copy)]
pub(crate) enum RowsOf<'a> {
    /// Consecutive rows from this one on.
    From(u32),
    /// One row for each code.
    Given(&'a [u32]),
}

/// Space for the entries of neighboring cells.
#[derive(Debug)]
pub struct Places<'a> {
    pub first_cell: usize,
    /// For each cell, the index of its next entry.
    pub next: &'a mut [u32],
    pub entries: &'a mut [u64],
    /// Whether there were more entries than fit, which means that the codes are not those that were counted.
    pub is_over: bool,
}

/// Neighboring buckets of a table.
pub struct TablePiece(pub(crate) Part);

impl TableBuilder {
    /// Prepares a table of codes sorted by `key`, about `num_expected`, in at most `2^max_cell_bits` cells.
    pub fn new(
        bits: u32,
        key: &Key,
        num_expected: usize,
        with_rows: bool,
        max_cell_bits: u32,
    ) -> Self {
        let layout = Layout::new(bits, key, num_expected, with_rows, max_cell_bits);
        let shape = layout.shape;
        TableBuilder {
            lines_a_cell: shape.prefix_bits - shape.line_shift - layout.cell_bits,
            layout,
        }
    }

    pub fn num_cells(&self) -> usize {
        1 << self.layout.cell_bits
    }

    /// Whether cells could be smaller.
    pub fn can_be_finer(&self) -> bool {
        self.lines_a_cell > 0
    }

    pub fn entry_words(&self) -> usize {
        self.layout.entry_words()
    }

    /// The shape of the directory: number of bits of a prefix, shift of a line, and whether lines are unary.
    pub fn shape(&self) -> (u32, u32, bool) {
        let shape = self.layout.shape;
        (shape.prefix_bits, shape.line_shift, shape.is_unary)
    }

    /// Number of words of the directory without escapes, which is known in advance.
    pub fn num_line_words(&self) -> usize {
        self.layout.shape.num_words()
    }

    pub fn with_rows(&self) -> bool {
        self.layout.with_rows
    }

    /// Bytes per distinct code in addition to the directory: packed bits, and other words with the row.
    pub fn bytes_an_entry(&self, max_row: u32) -> [f64; 2] {
        let top_bits = self.layout.permutation.top_bits();
        let packed = residual_bits(top_bits, self.layout.shape.prefix_bits);
        let row = match self.layout.with_rows {
            true => width_of(max_row),
            false => 0,
        };
        let rest = 64 * (self.layout.num_words - 1) as u32;
        [packed, rest + row].map(|bits| f64::from(bits) / 8.0)
    }

    pub fn count(&self, codes: &[u64], counts: &mut [u32], isa: Isa) {
        let layout = &self.layout;
        run_kernel!(isa, layout.num_words, count, (layout: &Layout, codes: &[u64], counts: &mut [u32]));
    }

    /// Copies the codes that belong to the cells to their places; their rows are consecutive from `first_row` on.
    pub fn spread(&self, codes: &[u64], first_row: u32, places: &mut Places<'_>, isa: Isa) {
        let (layout, rows) = (&self.layout, RowsOf::From(first_row));
        run_kernel!(isa, layout.num_words, spread, (layout: &Layout, codes: &[u64], rows: RowsOf<'_>, places: &mut Places<'_>));
    }

    /// Sorts and packs all entries of neighboring cells, with memory for another copy.
    pub fn pack(&self, cells: Range<usize>, entries: &mut [u64]) -> TablePiece {
        TablePiece(self.layout.pack(cells, entries))
    }
}

/// Counts codes by cell. Safety: the kernel's instruction set, and codes of `W` words.
#[inline(always)]
pub(crate) unsafe fn count<K: TableKernel, const W: usize>(
    layout: &Layout,
    codes: &[u64],
    counts: &mut [u32],
) {
    for code in codes.as_chunks::<W>().0 {
        // SAFETY: guaranteed by the caller.
        let permuted = unsafe { K::permute(&layout.permutation, code) };
        counts[layout.cell_of(permuted[0]) as usize] += 1;
    }
}

/// Selects the codes of the cells, then copies them to their places. Safety: same as [`count`].
#[inline(always)]
pub(crate) unsafe fn spread<K: TableKernel, const W: usize>(
    layout: &Layout,
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
            let permuted = unsafe { K::permute(&layout.permutation, code) };
            let cell = layout.cell_of(permuted[0]).wrapping_sub(from);
            let row = match rows {
                RowsOf::From(row) => row.wrapping_add(position as u32),
                RowsOf::Given(rows) => rows[position],
            };
            // Always written, and overwritten by the next code unless it belongs here: no branch to mispredict.
            picked[num_picked] = (permuted, cell as u32, row);
            num_picked += usize::from(cell < num_cells);
        }
        for (permuted, cell, row) in &picked[..num_picked] {
            places.put(permuted, *cell, layout.with_rows.then_some(*row));
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
