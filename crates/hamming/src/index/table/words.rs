//! Where are tables stored: in memory of their own, or in a mapped file?

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::guard::Guard;
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

    /// Copies 32-bit numbers; an odd number of them is followed by a 0.
    pub(crate) fn from_u32(numbers: &[u32]) -> Result<Self> {
        let mut copy = WordsMut::zeroed(numbers.len().div_ceil(2))?;
        for (word, pair) in copy.as_mut_slice().iter_mut().zip(numbers.chunks(2)) {
            *word = u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        }
        Ok(copy.freeze())
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
