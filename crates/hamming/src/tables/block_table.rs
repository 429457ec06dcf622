//! Which codes have a value in one block, and which values are near it?

use crate::code_planes::CodePlanes;
use crate::{BLOCK_BITS, NUM_BLOCK_VALUES};

/// The codes by the value of one block.
#[derive(Debug)]
pub(super) struct BlockTable {
    /// First bit of the block within its word, and the word.
    pub(super) shift: u32,
    pub(super) word: usize,
    pub(super) radius: u32,
    /// Bucket of value `v` is `offsets[v]..offsets[v + 1]`.
    pub(super) offsets: Vec<u32>,
    /// Index of each position: the members of its bucket before it are the earlier ones.
    pub(super) slots: Vec<u32>,
    /// Positions, ascending within a bucket.
    pub(super) positions: Vec<u32>,
    /// Codes of `positions`, so that comparing a bucket reads consecutive memory.
    pub(super) codes: CodePlanes,
}

/// Masks that turn a block value into all values near it by XOR.
#[derive(Debug)]
pub(super) struct Neighbors {
    /// Masks by weight; the first is 0.
    masks: Vec<u16>,
    /// Number of masks of weight `radius` or less.
    ends: Vec<usize>,
}

impl Neighbors {
    pub(super) fn new(max_radius: u32) -> Self {
        let mut masks: Vec<u16> = if max_radius == 0 {
            vec![0]
        } else {
            (0..=u16::MAX)
                .filter(|mask| mask.count_ones() <= max_radius)
                .collect()
        };
        masks.sort_by_key(|mask| mask.count_ones());
        let ends = (0..=max_radius)
            .map(|radius| masks.partition_point(|mask| mask.count_ones() <= radius))
            .collect();
        Neighbors { masks, ends }
    }

    /// Returns the masks of weight 0 to `radius`, 0 first.
    pub(super) fn within(&self, radius: u32) -> &[u16] {
        &self.masks[..self.ends[radius as usize]]
    }
}

impl BlockTable {
    pub(super) fn new(codes: &CodePlanes, block: u32, radius: u32) -> Self {
        let blocks_a_word = u64::BITS / BLOCK_BITS;
        let mut offsets = vec![0_u32; NUM_BLOCK_VALUES + 1];
        for value in codes.block_values(block) {
            offsets[value] += 1;
        }
        let mut total = 0;
        for offset in &mut offsets {
            total += std::mem::replace(offset, total);
        }
        let mut next = offsets.clone();
        let slots: Vec<u32> = codes
            .block_values(block)
            .map(|value| {
                let slot = next[value];
                next[value] += 1;
                slot
            })
            .collect();
        let mut positions = vec![0; codes.len()];
        for (position, &slot) in slots.iter().enumerate() {
            positions[slot as usize] = position as u32;
        }
        let mut sorted = CodePlanes::new(codes.len(), codes.num_words());
        for word in 0..codes.num_words() {
            let target = sorted.plane_mut(word);
            for (&code, &slot) in codes.plane(word).iter().zip(&slots) {
                target[slot as usize] = code;
            }
        }
        BlockTable {
            shift: block % blocks_a_word * BLOCK_BITS,
            word: (block / blocks_a_word) as usize,
            radius,
            offsets,
            slots,
            positions,
            codes: sorted,
        }
    }

    #[inline(always)]
    pub(super) fn block_of<const W: usize>(&self, code: &[u64; W]) -> u16 {
        (code[self.word % W] >> self.shift) as u16
    }

    /// Whether two codes are within the radius in this block.
    #[inline(always)]
    pub(super) fn finds<const W: usize>(&self, differing: &[u64; W]) -> bool {
        self.block_of(differing).count_ones() <= self.radius
    }
}
