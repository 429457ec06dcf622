//! How are numbers of a few bits packed?

/// Number of words after the last number, so that vectors can be read from any number on.
pub(crate) const PADDING: usize = 9;

/// Number of words that hold `len` numbers of `width` bits, including padding.
pub(crate) fn num_words(len: usize, width: u32) -> usize {
    (len * width as usize).div_ceil(64) + PADDING
}

/// Returns number `index` of packed numbers of `width` bits (1 to 64).
#[inline(always)]
pub(crate) fn get(words: &[u64], width: u32, index: usize) -> u64 {
    let bit = index * width as usize;
    let (word, shift) = (bit / 64, bit % 64);
    // Two shifts, since a single shift by 64 is invalid.
    let value = words[word] >> shift | words[word + 1] << 1 << (63 - shift);
    value & (u64::MAX >> (64 - width))
}

pub(crate) struct PackedWriter {
    words: Vec<u64>,
    width: u32,
    current: u64,
    filled: u32,
    len: usize,
}

impl PackedWriter {
    pub(crate) fn new(width: u32, capacity: usize) -> Self {
        PackedWriter {
            words: Vec::with_capacity(num_words(capacity, width)),
            width,
            current: 0,
            filled: 0,
            len: 0,
        }
    }

    /// Appends a number below `2^width`.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: u64) {
        self.current |= value << self.filled;
        self.filled += self.width;
        if self.filled >= 64 {
            self.words.push(self.current);
            self.filled -= 64;
            // The bits of the value that did not fit; after a shift by the full width, none.
            let taken = self.width - self.filled;
            self.current = if taken < 64 { value >> taken } else { 0 };
        }
        self.len += 1;
    }

    pub(crate) fn finish(mut self) -> PackedPart {
        if self.filled > 0 {
            self.words.push(self.current);
        }
        PackedPart {
            words: self.words,
            num_bits: self.len * self.width as usize,
        }
    }
}

/// Bits from bit 0 on; bits beyond the last are 0.
pub(crate) struct PackedPart {
    pub(crate) words: Vec<u64>,
    pub(crate) num_bits: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::table::stream::Bits;
    use likewise_core::hash::mix64;

    #[test]
    fn numbers_of_every_width_come_back_from_joined_parts() {
        for width in 1..=64 {
            let value = |i: usize| mix64(i as u64) >> (64 - width);
            let (mut bits, mut target) = (Bits::default(), Vec::new());
            for range in [0..7, 7..7, 7..64, 64..300] {
                let mut writer = PackedWriter::new(width, range.len());
                for i in range {
                    writer.push(value(i));
                }
                let part = writer.finish();
                bits.append(&part.words, part.num_bits, &mut target);
            }
            target.extend(bits.rest());
            assert_eq!(target.len(), num_words(300, width));
            for i in 0..300 {
                assert_eq!(get(&target, width, i), value(i), "{width} {i}");
            }
        }
    }
}
