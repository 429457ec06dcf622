//! How far apart are two fingerprints?

use likewise_core::error::{Error, Result, invalid_if};

/// Fingerprints of one width, stored consecutively.
#[derive(Debug, Clone, Copy)]
pub struct Fingerprints<'a> {
    /// `bits.div_ceil(64)` words per fingerprint, word 0 lowest. Bits from `bits` on are ignored.
    pub words: &'a [u64],
    /// A multiple of 32 from 32 to 256.
    pub bits: u32,
}

impl<'a> Fingerprints<'a> {
    pub fn new(words: &'a [u64], bits: u32) -> Self {
        Fingerprints { words, bits }
    }

    pub fn len(&self) -> usize {
        // A width of 0, which `check` rejects, must not divide by zero.
        self.words.len() / self.num_words().max(1)
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn num_words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    /// Checks that the width is allowed and that the words are whole fingerprints.
    pub(super) fn check(&self) -> Result<()> {
        invalid_if(
            !(32..=256).contains(&self.bits) || !self.bits.is_multiple_of(32),
            "bits",
            || format!("{} is not a multiple of 32 from 32 to 256", self.bits),
        )?;
        if !self.words.len().is_multiple_of(self.num_words()) {
            return Err(Error::invalid(
                "fingerprints",
                format!(
                    "{} words are not whole fingerprints of {} words",
                    self.words.len(),
                    self.num_words()
                ),
            ));
        }
        Ok(())
    }
}

/// Returns the number of bits in which `a` and `b` differ. Both must have the same number of words.
#[inline]
pub fn distance(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| (x ^ y).count_ones()).sum()
}
