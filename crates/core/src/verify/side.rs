//! What is one side of an intersection?

/// One side of an intersection: sorted distinct features and their weights, both padded to [`Side::LANES`] by repeating
/// the last, which is masked on one side and changes nothing on the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    padded_features: &'a [u64],
    /// Empty if every weight is 1.
    padded_weights: &'a [u32],
    len: usize,
}

impl<'a> Side<'a> {
    /// Padded lengths are multiples of this.
    pub(super) const LANES: usize = 8;

    /// Creates a side with `len` features; both slices must be padded, since kernels read whole vectors.
    #[inline]
    pub(super) fn new(padded_features: &'a [u64], padded_weights: &'a [u32], len: usize) -> Self {
        let padded_len = len.next_multiple_of(Self::LANES);
        assert!(padded_features.len() == padded_len);
        assert!(padded_weights.is_empty() || padded_weights.len() == padded_len);
        Side {
            padded_features,
            padded_weights,
            len,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn padded_features(&self) -> &'a [u64] {
        self.padded_features
    }

    #[inline]
    pub(super) fn padded_weights(&self) -> &'a [u32] {
        self.padded_weights
    }

    #[inline]
    pub(super) fn features(&self) -> &'a [u64] {
        &self.padded_features[..self.len]
    }

    #[inline]
    pub(super) fn weight(&self, i: usize) -> u32 {
        self.padded_weights.get(i).copied().unwrap_or(1)
    }
}

/// Returns how many blocks (0 or 1) to advance on each side; `a` and `b` are the maxima of the two blocks.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn steps(mut a: u64, b: u64) -> (usize, usize) {
    // SAFETY: the assembly is a comment.
    //
    // It hides from the compiler that the comparisons read neighboring memory. The compiler would otherwise use one
    // vector comparison, whose transfer through the mask register doubles the loop's time.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) a, options(pure, nomem, nostack, preserves_flags));
    }
    (usize::from(a <= b), usize::from(b <= a))
}
