//! SimHash kernels for NEON: two words per register, compared bit by bit of their bytes with byte counters. If all
//! words weigh 1, adders of whole registers first reduce sixteen words to one register that counts eightfold.
//!
//! Derived words have no kernel: NEON has no 64-bit multiplication, and computing it by halves saves nothing here.

use std::arch::aarch64::*;

use super::simhash_plain::{Counts, plain};

/// Number of additions after which a byte counter may wrap.
const MAX_PENDING: usize = 255;

/// Number of words that, two by two, form one register that counts eightfold.
const BLOCK_LEN: usize = 16;

/// Maximum weight of each word of a block for which byte counters do not wrap: eight words share a counter.
const MAX_LIGHT: u32 = 31;

/// Number of blocks of weighted words that 16-bit counters can hold, with both words of a register combined.
const MAX_BLOCKS: usize = u16::MAX as usize / (BLOCK_LEN * MAX_LIGHT as usize);

/// Counter `i` has a byte for each of the bits `i`, `i + 8`, `i + 16`, ... of both words of a register.
type Bytes = [uint8x16_t; 8];

/// See `simhash::add_block`.
#[target_feature(enable = "neon")]
pub(super) fn add_bits(words: &[u64], weights: &[u32], counts: &mut Counts) {
    if weights.is_empty() {
        for words in words.chunks(MAX_PENDING * BLOCK_LEN) {
            add_unweighted(words, counts);
        }
    } else {
        let len = MAX_BLOCKS * BLOCK_LEN;
        for (words, weights) in words.chunks(len).zip(weights.chunks(len)) {
            add_weighted(words, weights, counts);
        }
    }
}

/// Adds at most [`MAX_PENDING`] blocks of words of weight 1.
#[target_feature(enable = "neon")]
fn add_unweighted(words: &[u64], counts: &mut Counts) {
    let zero = vdupq_n_u8(0);
    // For each bit: ones, twos and fours that are not yet in a byte counter.
    let mut sums = [zero; 3];
    let mut eights = [zero; 8];
    let (blocks, rest) = words.as_chunks::<BLOCK_LEN>();
    for block in blocks {
        let eight = add_block(&mut sums, block);
        count(&mut eights, eight);
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK_LEN];
        block[..rest.len()].copy_from_slice(rest);
        let eight = add_block(&mut sums, &block);
        count(&mut eights, eight);
    }
    let mut bytes = [zero; 8];
    for sum in sums.into_iter().rev() {
        for bytes in &mut bytes {
            *bytes = vaddq_u8(*bytes, *bytes);
        }
        count(&mut bytes, sum);
    }
    let mut totals = [vdupq_n_u16(0); 8];
    for (i, total) in totals.iter_mut().enumerate() {
        *total = vaddq_u16(
            both_words(bytes[i]),
            vshlq_n_u16::<3>(both_words(eights[i])),
        );
    }
    add_totals(totals, counts);
}

/// Adds the words of a block to ones, twos and fours; returns the eights.
#[target_feature(enable = "neon")]
#[inline]
fn add_block(sums: &mut [uint8x16_t; 3], block: &[u64; BLOCK_LEN]) -> uint8x16_t {
    let [ones, twos, fours] = sums;
    let mut of_halves = [vdupq_n_u8(0); 2];
    for (half, four) in of_halves.iter_mut().enumerate() {
        let at = half * BLOCK_LEN / 2;
        let first = add(ones, load(block, at), load(block, at + 2));
        let second = add(ones, load(block, at + 4), load(block, at + 6));
        *four = add(twos, first, second);
    }
    add(fours, of_halves[0], of_halves[1])
}

/// A full adder for each bit: keeps the low bit of the sum of three and returns the carry.
#[target_feature(enable = "neon")]
#[inline]
fn add(sum: &mut uint8x16_t, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    let differing = veorq_u8(*sum, a);
    let carried = vbslq_u8(differing, b, a);
    *sum = veorq_u8(differing, b);
    carried
}

/// Loads two words from place `i` on, which is below the last.
#[target_feature(enable = "neon")]
#[inline]
fn load<const LEN: usize>(words: &[u64; LEN], i: usize) -> uint8x16_t {
    let two: &[u64; 2] = words[i..].first_chunk().expect("two words");
    // SAFETY: two words are read.
    vreinterpretq_u8_u64(unsafe { vld1q_u64(two.as_ptr()) })
}

/// Returns -1 in the bytes that share a bit; in assembly, which the compiler cannot break up into several steps.
#[target_feature(enable = "neon")]
#[inline]
fn set_bytes(words: uint8x16_t, bits: uint8x16_t) -> uint8x16_t {
    let set;
    // SAFETY: the instruction reads and writes only these registers.
    unsafe {
        std::arch::asm!(
            "cmtst {0:v}.16b, {1:v}.16b, {2:v}.16b",
            out(vreg) set, in(vreg) words, in(vreg) bits,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    set
}

/// Adds one to the byte of every set bit.
#[target_feature(enable = "neon")]
#[inline]
fn count(bytes: &mut Bytes, words: uint8x16_t) {
    for (bit, bytes) in bytes.iter_mut().enumerate() {
        *bytes = vsubq_u8(*bytes, set_bytes(words, vdupq_n_u8(1 << bit)));
    }
}

/// Adds at most [`MAX_BLOCKS`] blocks of weighted words.
#[target_feature(enable = "neon")]
fn add_weighted(words: &[u64], weights: &[u32], counts: &mut Counts) {
    let mut totals = [vdupq_n_u16(0); 8];
    let (blocks, rest) = words.as_chunks::<BLOCK_LEN>();
    let (weights, rest_weights) = weights.as_chunks::<BLOCK_LEN>();
    for (words, weights) in blocks.iter().zip(weights) {
        add_weighted_block(words, weights, &mut totals, counts);
    }
    let (mut last, mut last_weights) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    last[..rest.len()].copy_from_slice(rest);
    last_weights[..rest.len()].copy_from_slice(rest_weights);
    add_weighted_block(&last, &last_weights, &mut totals, counts);
    add_totals(totals, counts);
}

#[target_feature(enable = "neon")]
#[inline]
fn add_weighted_block(
    words: &[u64; BLOCK_LEN],
    weights: &[u32; BLOCK_LEN],
    totals: &mut [uint16x8_t; 8],
    counts: &mut Counts,
) {
    // MAX_LIGHT is 2^n - 1, so all weights are within it if the or of their bits is.
    if weights.iter().fold(0, |bits, weight| bits | weight) > MAX_LIGHT {
        // Rare: weights that do not fit in bytes.
        plain(words, weights, counts);
        return;
    }
    let mut bytes = [vdupq_n_u8(0); 8];
    let pairs = words.as_chunks::<2>().0.iter();
    for (two, weights) in pairs.zip(weights.as_chunks::<2>().0) {
        count_weighted(&mut bytes, two, weights);
    }
    for (total, bytes) in totals.iter_mut().zip(bytes) {
        *total = vaddq_u16(*total, both_words(bytes));
    }
}

/// Adds the weight of each of two words to the byte of every set bit.
#[target_feature(enable = "neon")]
#[inline]
fn count_weighted(bytes: &mut Bytes, words: &[u64; 2], weights: &[u32; 2]) {
    let (first, second) = (vdup_n_u8(weights[0] as u8), vdup_n_u8(weights[1] as u8));
    let (words, weights) = (load(words, 0), vcombine_u8(first, second));
    for (bit, bytes) in bytes.iter_mut().enumerate() {
        *bytes = vmlsq_u8(*bytes, set_bytes(words, vdupq_n_u8(1 << bit)), weights);
    }
}

/// Returns the combined counts of both words of a register.
#[target_feature(enable = "neon")]
#[inline]
fn both_words(bytes: uint8x16_t) -> uint16x8_t {
    vaddl_u8(vget_low_u8(bytes), vget_high_u8(bytes))
}

/// Adds totals; total `i` has the bits `i`, `i + 8`, `i + 16`, ... of the words.
#[target_feature(enable = "neon")]
fn add_totals(mut totals: [uint16x8_t; 8], counts: &mut Counts) {
    // Interleaving both halves of 64 numbers three times transposes rows and columns.
    for _ in 0..3 {
        let before = totals;
        for i in 0..4 {
            totals[2 * i] = vzip1q_u16(before[i], before[i + 4]);
            totals[2 * i + 1] = vzip2q_u16(before[i], before[i + 4]);
        }
    }
    let mut narrow = [[0u16; 8]; 8];
    for (narrow, totals) in narrow.iter_mut().zip(totals) {
        // SAFETY: eight numbers are written.
        unsafe { vst1q_u16(narrow.as_mut_ptr(), totals) };
    }
    widen(&narrow, counts);
}

/// A separate function, since the compiler would otherwise break up the transposition above.
#[inline(never)]
fn widen(narrow: &[[u16; 8]; 8], counts: &mut Counts) {
    for (count, &narrow) in counts.iter_mut().zip(narrow.as_flattened()) {
        *count += u64::from(narrow);
    }
}
