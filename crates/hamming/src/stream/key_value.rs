//! What is the value of a key in a code?

use super::kernels::CheckKernel;
use crate::code_planes::CodePlanes;
use crate::kernels::Plain;
use crate::plan::Key;

/// Bits of one word that belong to a key, and their place in its value.
#[derive(Debug, Clone, Copy)]
struct Part {
    word: usize,
    mask: u64,
    shift: u32,
}

/// Extracts the bits of a key from a code: those of word 0 lowest, in order of position.
#[derive(Debug)]
pub(crate) struct KeyValue {
    parts: Vec<Part>,
    mask: [u64; 4],
    radius: u32,
}

impl KeyValue {
    /// Creates the extractor of a key of at most 64 bits.
    pub(crate) fn new(key: &Key) -> Self {
        let mut shift = 0;
        let mut parts = Vec::new();
        for (word, &mask) in key.mask.iter().enumerate() {
            if mask != 0 {
                parts.push(Part { word, mask, shift });
                shift += mask.count_ones();
            }
        }
        KeyValue {
            parts,
            mask: key.mask,
            radius: key.radius,
        }
    }

    /// Returns the value of the key.
    ///
    /// # Safety
    /// The processor must have the kernel's instruction set.
    #[inline(always)]
    pub(crate) unsafe fn of<K: CheckKernel, const W: usize>(&self, code: &[u64; W]) -> u64 {
        let mut value = 0;
        for part in &self.parts {
            // SAFETY: guaranteed by the caller.
            value |= unsafe { K::extract(code[part.word % W], part.mask) } << part.shift;
        }
        value
    }

    /// Returns the value of the key in one of several codes.
    pub(crate) fn of_row(&self, codes: &CodePlanes, row: usize) -> u64 {
        let code: [u64; 4] = std::array::from_fn(|word| {
            if word < codes.num_words() {
                codes.plane(word)[row]
            } else {
                0
            }
        });
        // SAFETY: the plain kernel needs no instruction set.
        unsafe { self.of::<Plain, 4>(&code) }
    }

    /// Whether codes that differ in these bits agree in the key up to its radius.
    #[inline(always)]
    pub(super) fn finds<const W: usize>(&self, differing: &[u64; W]) -> bool {
        let errors: u32 = (0..W)
            .map(|word| (differing[word] & self.mask[word]).count_ones())
            .sum();
        errors <= self.radius
    }
}
