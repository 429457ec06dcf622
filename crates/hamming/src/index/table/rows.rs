//! Which rows have a code?

use super::packed;
use super::words::Words;
use likewise_core::prefetch::prefetch_read;

/// Rows of the distinct codes by rank: the number of a row, or of a group of several.
#[derive(Debug, Clone)]
pub struct Rows {
    /// For each rank `2 * row` or `2 * group + 1`, packed and padded.
    pub numbers: Words,
    /// Number of bits of such a number.
    pub width: u32,
    /// End of each group, as 32-bit numbers.
    pub group_ends: Words,
    /// Rows of the groups, ascending within each, as 32-bit numbers.
    pub group_rows: Words,
    /// Total number of rows.
    pub num_rows: usize,
}

/// Number of bits for row numbers up to `max_row`.
pub(crate) fn width_of(max_row: u32) -> u32 {
    33 - max_row.leading_zeros()
}

impl Rows {
    /// Whether these can be the rows of so many codes.
    pub(crate) fn fit(&self, num_entries: usize) -> bool {
        (1..=33).contains(&self.width)
            && self.numbers.as_slice().len() == packed::num_words(num_entries, self.width)
            && self.num_rows >= num_entries
    }

    /// Returns the row of a rank, or the rows of its group. Values from a damaged file are limited to what exists.
    #[inline(always)]
    pub(crate) fn of_rank(&self, rank: usize) -> Postings<'_> {
        self.of_number(self.number_of(rank))
    }

    /// Returns `2 * row` or `2 * group + 1` for a rank.
    #[inline(always)]
    pub(crate) fn number_of(&self, rank: usize) -> u64 {
        packed::get(self.numbers.as_slice(), self.width, rank)
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, rank: usize) {
        prefetch_read(self.numbers.as_slice(), rank * self.width as usize / 64);
    }

    /// Returns the row or rows for a number from [`number_of`](Self::number_of).
    #[inline(always)]
    pub(crate) fn of_number(&self, number: u64) -> Postings<'_> {
        if number & 1 == 0 {
            return Postings::One((number >> 1) as u32);
        }
        let ends = self.group_ends.as_u32();
        let end_of = |group: usize| ends.get(group).copied().unwrap_or(0) as usize;
        let group = (number >> 1) as usize;
        let start = if group == 0 { 0 } else { end_of(group - 1) };
        Postings::Many(
            self.group_rows
                .as_u32()
                .get(start..end_of(group))
                .unwrap_or_default(),
        )
    }

    /// Whether the data that [`of_rank`](Self::of_rank) reads is intact.
    #[inline(always)]
    pub(crate) fn is_good(&self, rank: usize) -> bool {
        if !self.parts().into_iter().any(Words::is_guarded) {
            return true;
        }
        let width = self.width as usize;
        let end = ((rank + 1) * width).div_ceil(64);
        if !self.numbers.are_good(rank * width / 64..end) {
            return false;
        }
        let number = packed::get(self.numbers.as_slice(), self.width, rank);
        number & 1 == 0 || self.is_good_group((number >> 1) as usize)
    }

    #[cold]
    fn is_good_group(&self, group: usize) -> bool {
        let first = group.saturating_sub(1);
        if !self.group_ends.are_good(first / 2..group / 2 + 1) {
            return false;
        }
        let ends = self.group_ends.as_u32();
        let end_of = |group: usize| ends.get(group).copied().unwrap_or(0) as usize;
        let start = if group == 0 { 0 } else { end_of(group - 1) };
        self.group_rows
            .are_good(start / 2..end_of(group).div_ceil(2))
    }

    pub(crate) fn parts(&self) -> [&Words; 3] {
        [&self.numbers, &self.group_ends, &self.group_rows]
    }

    pub(crate) fn num_bytes(&self) -> usize {
        self.numbers.num_bytes() + self.group_ends.num_bytes() + self.group_rows.num_bytes()
    }
}

pub(crate) enum Postings<'a> {
    One(u32),
    Many(&'a [u32]),
}

/// Rows of neighboring ranks, before packing.
#[derive(Default)]
pub(crate) struct RowsPart {
    /// For each rank its row or, if it has several, the number of its group within this part.
    pub(crate) numbers: Vec<u32>,
    /// Ranks with several rows, ascending, relative to the first of this part.
    pub(crate) multiple: Vec<u32>,
    pub(crate) group_ends: Vec<u32>,
    pub(crate) group_rows: Vec<u32>,
}

impl RowsPart {
    #[inline(always)]
    pub(crate) fn push(&mut self, row: u32) {
        self.numbers.push(row);
    }

    pub(crate) fn push_to_last(&mut self, row: u32) {
        let last = self.numbers.len() - 1;
        if self.multiple.last() != Some(&(last as u32)) {
            self.multiple.push(last as u32);
            self.group_rows.push(self.numbers[last]);
            self.numbers[last] = self.group_ends.len() as u32;
            self.group_ends.push(0);
        }
        self.group_rows.push(row);
        let end = self.group_rows.len() as u32;
        if let Some(last) = self.group_ends.last_mut() {
            *last = end;
        }
    }
}
