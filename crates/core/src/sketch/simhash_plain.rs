//! SimHash kernels without vector instructions, and code shared by all kernels.

use crate::hash::mix64;

/// Weighted counts of set bits, one for each bit of a 64-bit word.
pub(super) type Counts = [u64; 64];

/// The body of [`derive_words`]; each instruction set compiles its own copy.
#[inline(always)]
pub(super) fn derive_words_body(features: &[u64], step: u64, out: &mut [u64]) {
    for (word, &feature) in out.iter_mut().zip(features) {
        *word = mix64(feature.wrapping_add(step));
    }
}

/// The lowest bit of each of the eight bytes of a word.
const BYTES: u64 = 0x0101_0101_0101_0101;

const MAX_BYTE: u64 = 255;

/// The oracle of the vector kernels. Counter `i` has a byte for each of the bits `i`, `i + 8`, ... of the words.
pub(super) fn plain(words: &[u64], weights: &[u32], counts: &mut Counts) {
    let mut bytes = [0u64; 8];
    if weights.is_empty() {
        for chunk in words.chunks(MAX_BYTE as usize) {
            for &word in chunk {
                for (bit, counter) in bytes.iter_mut().enumerate() {
                    *counter += word >> bit & BYTES;
                }
            }
            flush_bytes(&mut bytes, counts);
        }
        return;
    }
    let mut pending = 0;
    for (&word, &weight) in words.iter().zip(weights) {
        let weight = u64::from(weight);
        if weight > MAX_BYTE {
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += (word >> bit & 1) * weight;
            }
            continue;
        }
        if pending + weight > MAX_BYTE {
            flush_bytes(&mut bytes, counts);
            pending = 0;
        }
        pending += weight;
        for (bit, counter) in bytes.iter_mut().enumerate() {
            *counter += (word >> bit & BYTES) * weight;
        }
    }
    flush_bytes(&mut bytes, counts);
}

/// Adds the byte counters to `counts` and clears them.
fn flush_bytes(bytes: &mut [u64; 8], counts: &mut Counts) {
    for (bit, counter) in bytes.iter_mut().enumerate() {
        for (byte, count) in counter.to_le_bytes().into_iter().enumerate() {
            counts[8 * byte + bit] += u64::from(count);
        }
        *counter = 0;
    }
}
