//! How are fingerprints stored that are not yet in a table, or that no table would help to find?

use crate::kernels::{Kernel, LANES, run_kernel};
use likewise_core::error::{Error, Result, invalid_if};
use likewise_core::isa::Isa;

/// Codes compared with all queries before the next: they stay in the L1 cache.
const BLOCK: usize = 1024;

/// A few fingerprints by word, in order of insertion, and their rows.
#[derive(Debug, Clone)]
pub(crate) struct Planes {
    /// All words 0, then all words 1, and so on; a vector can be read from any code on.
    words: Vec<u64>,
    num_words: usize,
    capacity: usize,
    rows: Vec<u32>,
}

/// A code of the planes near a query.
pub(crate) struct NearCode {
    pub(crate) query: u32,
    pub(crate) row: u32,
    pub(crate) distance: u32,
}

impl Planes {
    pub(crate) fn with_capacity(capacity: usize, num_words: usize) -> Self {
        Planes {
            words: vec![0; (capacity + LANES) * num_words],
            num_words,
            capacity,
            rows: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Number of codes that still fit.
    pub(crate) fn room(&self) -> usize {
        self.capacity - self.rows.len()
    }

    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    fn stride(&self) -> usize {
        self.capacity + LANES
    }

    /// Appends codes, which must fit.
    pub(crate) fn extend(&mut self, codes: &[u64], rows: &[u32]) {
        let (stride, first) = (self.stride(), self.rows.len());
        for (i, code) in codes.chunks_exact(self.num_words).enumerate() {
            for (w, &word) in code.iter().enumerate() {
                self.words[w * stride + first + i] = word;
            }
        }
        self.rows.extend_from_slice(rows);
    }

    /// Appends all codes, row-major, to `codes`.
    pub(crate) fn copy_codes(&self, codes: &mut Vec<u64>) {
        for i in 0..self.len() {
            codes.extend((0..self.num_words).map(|w| self.words[w * self.stride() + i]));
        }
    }

    /// Appends the codes within the radius of each query to `near`.
    pub(crate) fn search(&self, queries: &[u64], within: u32, isa: Isa, near: &mut Vec<NearCode>) {
        let planes = self;
        run_kernel!(isa, self.num_words, scan, (planes: &Planes, queries: &[u64], within: u32, near: &mut Vec<NearCode>));
    }
}

/// Compares every code with every query. Safety: the kernel's instructions, and codes of `W` words.
#[inline(always)]
unsafe fn scan<K: Kernel, const W: usize>(
    planes: &Planes,
    queries: &[u64],
    within: u32,
    near: &mut Vec<NearCode>,
) {
    let stride = planes.stride();
    let len = planes.len();
    let (queries, _) = queries.as_chunks::<W>();
    for first in (0..len).step_by(BLOCK) {
        let end = len.min(first + BLOCK);
        for (index, query) in (0..).zip(queries) {
            let mut at = first;
            while at < end {
                // SAFETY: padding follows the last code of every plane.
                let mask = unsafe {
                    K::within8::<W>(planes.words.as_ptr().add(at), stride, query, within)
                };
                if mask != 0 {
                    planes.take((index, query), at, end, mask, near);
                }
                at += LANES;
            }
        }
    }
}

impl Planes {
    /// Appends the codes of a mask that are before `end`.
    #[inline(never)]
    fn take(
        &self,
        (query, code): (u32, &[u64]),
        at: usize,
        end: usize,
        mask: u8,
        near: &mut Vec<NearCode>,
    ) {
        for i in (at..end.min(at + LANES)).filter(|i| mask >> (i - at) & 1 == 1) {
            let distance = (0..self.num_words)
                .map(|w| (self.words[w * self.stride() + i] ^ code[w]).count_ones())
                .sum();
            near.push(NearCode {
                query,
                row: self.rows[i],
                distance,
            });
        }
    }
}

/// Rejects rows that do not ascend from `next_row` on.
pub(crate) fn check_rows(rows: &[u32], len: usize, next_row: u64) -> Result<()> {
    invalid_if(rows.len() != len, "rows", || {
        format!("{} rows for {len} fingerprints", rows.len())
    })?;
    let ascend = rows.is_sorted_by(|a, b| a < b)
        && rows
            .first()
            .is_none_or(|&first| u64::from(first) >= next_row);
    match ascend {
        true => Ok(()),
        false => Err(Error::invalid(
            "rows",
            format!("must ascend, from {next_row} on"),
        )),
    }
}
