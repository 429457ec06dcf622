//! Are words of a file intact?
//!
//! Bytes of a mapped file are checked block by block when a search first reads them. The cost of checking a block is
//! paid once; afterward, a single bit is tested.
//!
//! The check costs 3 to 8% of a batch of queries in 1e7 fingerprints until all blocks of a table have been checked, and
//! nothing afterward. In return, an index opens in milliseconds, and a damaged file fails the query that reads the
//! damage. Sets in memory and files opened with `verify` skip the check.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Returns whether block `number` is intact.
pub type CheckBlock = Box<dyn Fn(usize) -> bool + Send + Sync>;

/// Which blocks of a section have been checked.
pub struct Guard {
    /// A bit for each block that was found intact.
    good: Box<[AtomicU64]>,
    num_blocks: usize,
    /// Number of blocks that were not found intact yet.
    num_left: AtomicUsize,
    /// Number of words of a block, as a power of two.
    block_shift: u32,
    check: CheckBlock,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "guard of {} blocks", self.num_blocks)
    }
}

impl Guard {
    /// Creates a guard of `num_words` words in blocks of `2^block_shift`, none of them checked.
    pub fn new(num_words: usize, block_shift: u32, check: CheckBlock) -> Self {
        let num_blocks = num_words.div_ceil(1 << block_shift);
        Guard {
            good: (0..num_blocks.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            num_blocks,
            num_left: AtomicUsize::new(num_blocks),
            block_shift,
            check,
        }
    }

    /// Whether there are blocks that were not found intact yet.
    #[inline(always)]
    pub(crate) fn is_needed(&self) -> bool {
        self.num_left.load(Ordering::Relaxed) > 0
    }

    /// Whether the words of a range are intact. Words beyond the last are not.
    #[inline(always)]
    pub(crate) fn is_good(&self, words: Range<usize>) -> bool {
        let first = words.start >> self.block_shift;
        let last = (words.end.max(words.start + 1) - 1) >> self.block_shift;
        self.is_good_block(first) && (first == last || self.are_good(first + 1..=last))
    }

    #[inline(always)]
    fn is_good_block(&self, block: usize) -> bool {
        // Only one bit is read, and nothing else depends on it: the block never changes.
        let bits = self.good.get(block / 64);
        bits.is_some_and(|bits| bits.load(Ordering::Relaxed) >> (block % 64) & 1 == 1)
            || self.check_block(block)
    }

    #[cold]
    #[inline(never)]
    fn check_block(&self, block: usize) -> bool {
        let is_good = block < self.num_blocks && (self.check)(block);
        if is_good {
            let bit = 1 << (block % 64);
            let before = self.good[block / 64].fetch_or(bit, Ordering::Relaxed);
            // Two threads may have checked it concurrently.
            self.num_left
                .fetch_sub(usize::from(before & bit == 0), Ordering::Relaxed);
        }
        is_good
    }

    #[cold]
    #[inline(never)]
    fn are_good(&self, mut blocks: std::ops::RangeInclusive<usize>) -> bool {
        blocks.all(|block| self.is_good_block(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_good_block_is_checked_once_and_a_bad_one_never_passes() {
        let num_checks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&num_checks);
        let check = move |block| {
            counted.fetch_add(1, Ordering::Relaxed);
            block != 70
        };
        let guard = Guard::new(100 * 8 - 3, 3, Box::new(check));
        assert!(guard.is_good(0..8) && guard.is_good(7..8) && guard.is_good(3..3));
        assert_eq!(num_checks.load(Ordering::Relaxed), 1);
        assert!(guard.is_good(7..9));
        assert!(guard.is_good(0..70 * 8));
        assert_eq!(num_checks.load(Ordering::Relaxed), 70);
        for range in [0..561, 560..561, 567..570, 0..790] {
            assert!(!guard.is_good(range));
        }
        assert!(guard.is_good(71 * 8..797) && guard.is_needed());
        assert!(!guard.is_good(800..801) && !guard.is_good(70_000..70_001));
        let whole = Guard::new(16, 3, Box::new(|_| true));
        assert!(whole.is_good(0..8) && whole.is_good(0..8) && whole.is_needed());
        assert!(whole.is_good(8..9) && !whole.is_needed());
        assert!(!whole.is_good(16..17));
    }
}
