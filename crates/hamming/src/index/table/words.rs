//! Where do tables live: in memory of their own, or in a mapped file?

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::guard::Guard;
use likewise_core::error::Error;
use memmap2::MmapMut;

/// Bytes that stay where they are as long as they are held: a mapped file.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Bytes from which huge pages are asked for.
#[cfg(target_os = "linux")]
const HUGE_BYTES: usize = 4 << 20;

/// Read-only 64-bit words at an address divisible by 64, cheap to clone.
#[derive(Clone)]
pub struct Words {
    start: *const u64,
    len: usize,
    /// Keeps the memory alive.
    owner: SharedBytes,
    /// Tells whether they are what was written, where that is not known.
    guard: Option<Arc<Guard>>,
}

// SAFETY: the memory is read only, and `owner`, which keeps it alive, may be sent and shared.
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
    /// A view of `len` words from byte `offset` of shared bytes; `None` unless they lie inside and at an address divisible by 64.
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

    /// The same words, which are checked before they are used.
    pub fn guarded(self, guard: Guard) -> Self {
        Words {
            guard: Some(Arc::new(guard)),
            ..self
        }
    }

    /// Whether there are words that were not found to be what was written.
    #[inline(always)]
    pub(crate) fn is_guarded(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.is_needed())
    }

    /// Whether the words of a range are what was written, as far as there is a guard to tell.
    #[inline(always)]
    pub fn are_good(&self, words: Range<usize>) -> bool {
        match &self.guard {
            None => true,
            Some(guard) => guard.is_good(words),
        }
    }

    /// Whether all words are what was written, as far as there is a guard to tell.
    pub fn all_good(&self) -> bool {
        self.len == 0 || self.are_good(0..self.len)
    }

    /// The words.
    #[inline(always)]
    pub fn as_slice(&self) -> &[u64] {
        // SAFETY: the constructors found `len` aligned words there, and `owner` keeps them in place.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// The words, each as two 32-bit numbers, the lower half first.
    #[inline(always)]
    pub fn as_u32(&self) -> &[u32] {
        // SAFETY: as above; alignment of u32 is less.
        unsafe { std::slice::from_raw_parts(self.start.cast(), 2 * self.len) }
    }

    /// The first `len` of these words.
    pub(crate) fn first(self, len: usize) -> Self {
        Words {
            len: len.min(self.len),
            ..self
        }
    }

    /// A copy of 32-bit numbers, with a 0 behind an odd number of them.
    pub(crate) fn from_u32(numbers: &[u32]) -> Result<Self, Error> {
        let mut copy = WordsMut::zeroed(numbers.len().div_ceil(2))?;
        for (word, pair) in copy.as_mut_slice().iter_mut().zip(numbers.chunks(2)) {
            *word = u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        }
        Ok(copy.freeze())
    }

    /// Bytes in use.
    pub fn num_bytes(&self) -> usize {
        8 * self.len
    }
}

/// A wish where they are many: without huge pages everything works, only slower.
#[cfg(target_os = "linux")]
fn wish_for_huge_pages(memory: &MmapMut) {
    if memory.len() >= HUGE_BYTES {
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
}

/// Other systems decide by themselves.
#[cfg(not(target_os = "linux"))]
fn wish_for_huge_pages(_: &MmapMut) {}

/// Words of one's own, 0 at first, on huge pages where they are many.
pub struct WordsMut {
    memory: MmapMut,
    len: usize,
}

impl WordsMut {
    /// `len` words of value 0.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where the system refuses.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let num_bytes = 8 * len;
        let memory =
            MmapMut::map_anon(num_bytes.max(1)).map_err(|_| Error::OutOfMemory { num_bytes })?;
        wish_for_huge_pages(&memory);
        Ok(WordsMut { memory, len })
    }

    /// The words.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        // SAFETY: a mapping starts at a page, is writable, and holds `len` words.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }

    /// The words, read-only from now on.
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

    fn try_from(words: &[u64]) -> Result<Self, Error> {
        let mut copy = WordsMut::zeroed(words.len())?;
        copy.as_mut_slice().copy_from_slice(words);
        Ok(copy.freeze())
    }
}
