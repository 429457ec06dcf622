//! Where are tables stored: in memory of their own, or in a mapped file?

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use likewise_core::error::{Error, Result};
use memmap2::MmapMut;

/// Bytes that do not move while they are held, such as a mapped file.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Size in bytes from which huge pages are requested.
#[cfg(target_os = "linux")]
const HUGE_BYTES: usize = 4 << 20;

/// Read-only 64-bit words at an address divisible by 64, cheap to clone.
#[derive(Clone)]
pub struct Words {
    start: *const u64,
    len: usize,
    /// Keeps the memory alive.
    owner: SharedBytes,
    /// Checks whether the words are intact, if that is not yet known.
    guard: Option<Arc<Guard>>,
}

// SAFETY: the memory is read-only, and `owner`, which keeps it alive, may be sent and shared.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} words of {} bytes",
            self.len,
            self.owner.as_ref().as_ref().len()
        )
    }
}

impl Words {
    /// Creates a view of `len` words of shared bytes, or `None` unless inside and at an address divisible by 64.
    pub fn shared(bytes: &SharedBytes, offset: usize, len: usize) -> Option<Self> {
        let all: &[u8] = bytes.as_ref().as_ref();
        let part = all.get(offset..offset.checked_add(len.checked_mul(8)?)?)?;
        let start = part.as_ptr();
        (start as usize).is_multiple_of(64).then(|| Words {
            start: start.cast(),
            len,
            owner: Arc::clone(bytes),
            guard: None,
        })
    }

    /// Returns the same words, to be checked before they are used.
    pub fn guarded(self, guard: Guard) -> Self {
        Words {
            guard: Some(Arc::new(guard)),
            ..self
        }
    }

    /// Whether there are words that were not found intact yet.
    #[inline(always)]
    pub(crate) fn is_guarded(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.is_needed())
    }

    /// Whether the words of a range are intact, as far as a guard can tell.
    #[inline(always)]
    pub fn are_good(&self, words: Range<usize>) -> bool {
        match &self.guard {
            None => true,
            Some(guard) => guard.is_good(words),
        }
    }

    /// Whether all words are intact, as far as a guard can tell.
    pub fn all_good(&self) -> bool {
        self.len == 0 || self.are_good(0..self.len)
    }

    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        // SAFETY: the constructors found `len` aligned words there, and `owner` keeps them in place.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Returns the words, each as two 32-bit numbers, the lower half first.
    #[inline(always)]
    pub fn as_u32(&self) -> &[u32] {
        // SAFETY: as above; u32 needs less alignment.
        unsafe { std::slice::from_raw_parts(self.start.cast(), 2 * self.len) }
    }

    pub(crate) fn first(self, len: usize) -> Self {
        Words {
            len: len.min(self.len),
            ..self
        }
    }

    pub fn num_bytes(&self) -> usize {
        8 * self.len
    }
}

/// A hint for large memory: without huge pages everything works, only slower.
#[cfg(target_os = "linux")]
fn wish_for_huge_pages(memory: &MmapMut) {
    if memory.len() >= HUGE_BYTES {
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
}

/// Other systems decide automatically.
#[cfg(not(target_os = "linux"))]
fn wish_for_huge_pages(_: &MmapMut) {}

/// Owned words, initially 0, on huge pages if they are large.
pub struct WordsMut {
    memory: MmapMut,
    len: usize,
}

impl WordsMut {
    /// Allocates `len` words of value 0.
    pub fn zeroed(len: usize) -> Result<Self> {
        let num_bytes = 8 * len;
        let memory =
            MmapMut::map_anon(num_bytes.max(1)).map_err(|_| Error::OutOfMemory { num_bytes })?;
        wish_for_huge_pages(&memory);
        Ok(WordsMut { memory, len })
    }

    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        // SAFETY: a mapping starts at a page boundary, is writable, and holds `len` words.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }

    /// Makes the words read-only.
    pub fn freeze(self) -> Words {
        Words {
            start: self.memory.as_ptr().cast(),
            len: self.len,
            owner: Arc::new(self.memory),
            guard: None,
        }
    }
}

impl TryFrom<&[u64]> for Words {
    type Error = Error;

    fn try_from(words: &[u64]) -> Result<Self> {
        let mut copy = WordsMut::zeroed(words.len())?;
        copy.as_mut_slice().copy_from_slice(words);
        Ok(copy.freeze())
    }
}

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
