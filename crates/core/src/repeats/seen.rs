//! Which hashes of windows occurred more than once?

use std::sync::atomic::{AtomicU8, Ordering};

use super::Pair;
use crate::isa::Isa;
use crate::text::WindowHasher;

const LEAST_SLOTS: usize = 1 << 16;
const MOST_SLOTS: usize = 1 << 32;
/// Slots per hash: collisions cost work, but never affect the result.
const SLOTS_A_HASH: usize = 16;
/// Number of two-bit slots in a byte.
const SLOTS_A_BYTE: usize = 4;

/// Records which hashes occurred more than once; a few others may be included, but none is missed.
#[derive(Debug)]
pub struct SeenTwice {
    /// For each slot, whether it occurred, and whether it occurred again.
    slots: Box<[AtomicU8]>,
    shift: u32,
}

impl SeenTwice {
    /// Creates the set for about `num_expected` hashes: 4 to 8 bytes each, at least 16 KiB and at most 1 GiB.
    pub fn new(num_expected: usize) -> Self {
        let num_slots = SLOTS_A_HASH
            .saturating_mul(num_expected)
            .clamp(LEAST_SLOTS, MOST_SLOTS)
            .next_power_of_two();
        let slots = vec![0_u8; num_slots / SLOTS_A_BYTE].into_boxed_slice();
        SeenTwice {
            slots: slots.into_iter().map(AtomicU8::new).collect(),
            shift: u64::BITS - num_slots.trailing_zeros(),
        }
    }

    fn slot(&self, hash: u64) -> (&AtomicU8, u32) {
        let slot = (hash >> self.shift) as usize;
        (
            &self.slots[slot / SLOTS_A_BYTE],
            2 * (slot % SLOTS_A_BYTE) as u32,
        )
    }

    pub fn meet(&self, hash: u64) {
        let (byte, bit) = self.slot(hash);
        if byte.load(Ordering::Relaxed) >> bit & 2 != 0 {
            return;
        }
        if byte.fetch_or(1 << bit, Ordering::Relaxed) >> bit & 1 != 0 {
            byte.fetch_or(2 << bit, Ordering::Relaxed);
        }
    }

    /// Whether a hash may have occurred twice.
    pub fn is_twice(&self, hash: u64) -> bool {
        let (byte, bit) = self.slot(hash);
        byte.load(Ordering::Relaxed) >> bit & 2 != 0
    }
}

/// Reads the windows of texts: once to count their least hashes, and once to collect those that may repeat.
#[derive(Debug)]
pub struct WindowReader {
    hasher: WindowHasher,
}

impl WindowReader {
    /// Creates a reader for windows of `num_words` words, at least 2.
    pub fn new(isa: Isa, num_words: usize) -> Self {
        WindowReader {
            hasher: WindowHasher::new(isa, num_words),
        }
    }

    /// Counts the least hashes of a text's windows; returns its words. One short window may be the least of several: it
    /// counts once, or twice if it must have occurred again.
    pub fn count(&mut self, text: &str, seen: &SeenTwice) -> u32 {
        let num_words = self.hasher.take(text);
        let width = self.hasher.width();
        for run in self.hasher.least().chunk_by(|a, b| a == b) {
            seen.meet(run[0]);
            if run.len() > width {
                seen.meet(run[0]);
            }
        }
        num_words
    }

    /// Appends the hash and place of the windows of a text that may occur twice; returns the number of words.
    pub fn put_aside(
        &mut self,
        text: &str,
        seen: &SeenTwice,
        first: u64,
        out: &mut Vec<Pair>,
    ) -> u32 {
        let num_words = self.hasher.take(text);
        let mut at = 0;
        let mut runs = self.hasher.least().chunk_by(|a, b| a == b);
        // Most texts repeat nothing: these are not hashed further.
        if !runs.any(|run| seen.is_twice(run[0])) {
            return num_words;
        }
        let (least, whole) = self.hasher.least_and_whole();
        for run in least.chunk_by(|a, b| a == b) {
            if seen.is_twice(run[0]) {
                let windows = at..at + run.len();
                let places = first + at as u64..;
                out.extend(whole[windows].iter().zip(places).map(|(&w, p)| [w, p]));
            }
            at += run.len();
        }
        num_words
    }
}
