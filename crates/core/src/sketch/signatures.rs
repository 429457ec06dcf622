//! How many slots of two signatures are equal?

use crate::isa::Isa;

/// Rows of signatures: n times `num_slots * slot_bytes` bytes, every slot little-endian.
#[derive(Debug, Clone, Copy)]
pub struct Signatures<'a> {
    /// All rows, one behind the other.
    pub bytes: &'a [u8],
    /// Slots of a row.
    pub num_slots: usize,
    /// Bytes of a slot: 1, 2 or 4.
    pub slot_bytes: usize,
}

impl<'a> Signatures<'a> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.row_bytes()).unwrap_or(0)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.num_slots * self.slot_bytes
    }

    /// The bytes of row `i`.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn row(&self, i: usize) -> &'a [u8] {
        let row_bytes = self.row_bytes();
        &self.bytes[i * row_bytes..(i + 1) * row_bytes]
    }

    /// Number of equal slots of rows `a` and `b`.
    ///
    /// # Panics
    /// When there is no such row, or `slot_bytes` is none of 1, 2, 4.
    #[inline]
    pub fn num_equal(&self, a: usize, b: usize, isa: Isa) -> u32 {
        num_equal(self.row(a), self.row(b), self.slot_bytes, isa)
    }
}

/// Number of equal slots of two rows of the same length.
fn num_equal(a: &[u8], b: &[u8], slot_bytes: usize, _isa: Isa) -> u32 {
    assert!(
        matches!(slot_bytes, 1 | 2 | 4),
        "slot_bytes = {slot_bytes}, none of 1, 2, 4"
    );
    let equal = a
        .chunks_exact(slot_bytes)
        .zip(b.chunks_exact(slot_bytes))
        .filter(|(a, b)| a == b)
        .count();
    equal as u32
}
