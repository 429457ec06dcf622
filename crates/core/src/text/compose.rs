//! How is a sequence of combining characters converted to NFC?

use super::{tables, utf8};

/// Interacting scalars, as `rank << 21 | scalar`: a starter, its marks, and what may compose with them.
#[derive(Debug, Default)]
pub(crate) struct Run {
    entries: Vec<u32>,
}

const SCALAR: u32 = (1 << 21) - 1;

impl Run {
    /// Adds the canonical decomposition of a scalar of NFC text.
    pub(crate) fn push(&mut self, c: u32) {
        match tables::decompose(c) {
            // The recursion depth is that of the decomposition, at most four.
            Some((first, second)) => {
                self.push(first);
                self.push(second);
            }
            None => self.entries.push(u32::from(tables::order(c).0) << 21 | c),
        }
    }

    /// Appends the NFC form to `out` and clears the sequence. Cost: n log n in its length, at worst.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let entries = &mut self.entries;
        for marks in entries.split_mut(|&e| e <= SCALAR) {
            // A stable sort: marks of one class keep their order.
            marks.sort_by_key(|&e| e >> 21);
        }
        let mut starter: Option<usize> = None;
        let mut last_rank: Option<u32> = None;
        let mut kept = 0;
        for i in 0..entries.len() {
            let (rank, c) = (entries[i] >> 21, entries[i] & SCALAR);
            if let Some(s) = starter
                && last_rank.is_none_or(|last| last < rank)
                && let Some(composite) = tables::compose(entries[s], c)
            {
                entries[s] = composite;
                continue;
            }
            if rank == 0 {
                starter = Some(kept);
                last_rank = None;
            } else {
                last_rank = Some(rank);
            }
            entries[kept] = entries[i];
            kept += 1;
        }
        for &entry in &entries[..kept] {
            utf8::push(entry & SCALAR, out);
        }
        entries.clear();
    }
}
