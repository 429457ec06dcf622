//! How is a large bucket searched?

use super::pass::{Pass, Probe};
use crate::index::table::kernel::TableKernel;
use crate::index::table::packed;

/// Number of entries of a part that is compared at once.
const SMALL_PART: usize = 512;

// Safety: the processor has the kernel's instruction set.
impl<const W: usize> Pass<'_, '_, W> {
    /// Compares a large bucket in parts: sorted entries between two that begin alike do so too, so a part is skipped if
    /// these bits differ too much, and otherwise divided at the next bit.
    #[inline(always)]
    pub(crate) unsafe fn refine<K: TableKernel>(
        &mut self,
        probe: &Probe,
        start: usize,
        end: usize,
    ) {
        let table = self.table;
        let query = self.queries[probe.query as usize][0];
        let residuals = table.residuals.as_slice();
        let mask = u64::MAX >> (64 - table.prefix_shift());
        let residual = |rank: usize| packed::get(residuals, table.residual_bits, rank) & mask;
        let left = self.request.within - probe.errors;
        let mut waiting = vec![(start, end)];
        while let Some((low, high)) = waiting.pop() {
            if high - low < SMALL_PART {
                // SAFETY: guaranteed by the caller; the part is inside the bucket.
                unsafe { self.compare_entries::<K>(probe, low, high) };
                continue;
            }
            let (first, last) = (residual(low), residual(high - 1));
            let num_open = 64 - (first ^ last).leading_zeros();
            let shared = !(u64::MAX.checked_shr(64 - num_open).unwrap_or(0));
            if ((first ^ query) & mask & shared).count_ones() > left {
                continue;
            }
            if num_open == 0 {
                // Codes of several words that agree in the first one.
                // SAFETY: as above.
                unsafe { self.compare_entries::<K>(probe, low, high) };
                continue;
            }
            let bit = num_open - 1;
            let (mut below, mut above) = (low, high);
            while below < above {
                let middle = below.midpoint(above);
                match residual(middle) >> bit & 1 {
                    0 => below = middle + 1,
                    _ => above = middle,
                }
            }
            if low < below && below < high {
                waiting.push((low, below));
                waiting.push((below, high));
            } else {
                // Only a damaged table is out of order.
                self.hits.is_damaged = true;
            }
        }
    }
}
