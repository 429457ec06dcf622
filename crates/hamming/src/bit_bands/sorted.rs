//! How are fingerprints grouped that agree in a band?

use crate::code_planes::CodePlanes;
use crate::kernels::run_kernel;
use crate::stream::{BitKernel, KeyValue};
use likewise_core::isa::Isa;

/// Bits of the first pass, limited by the number of streams that can be written at once.
const FIRST_BITS: u32 = 8;
const NUM_PARTS: usize = 1 << FIRST_BITS;

/// Fingerprints of one part in order of band value, and its buckets of two or more.
#[derive(Debug)]
pub(super) struct Buckets {
    pub(super) codes: CodePlanes,
    /// Positions, ascending within a bucket.
    pub(super) positions: Vec<u32>,
    /// Start and end of each bucket.
    pub(super) ranges: Vec<(u32, u32)>,
}

/// Memory for sorting by one band: for each position, one fingerprint and 12 bytes.
#[derive(Debug)]
pub(super) struct Sorter {
    values: Vec<u32>,
    /// Values, positions and codes, by part.
    part_values: Vec<u32>,
    part_positions: Vec<u32>,
    part_codes: CodePlanes,
    starts: Vec<u32>,
    low_bits: u32,
    next: Vec<u32>,
}

impl Sorter {
    pub(super) fn new(num_codes: usize, num_words: usize) -> Self {
        Sorter {
            values: Vec::new(),
            part_values: vec![0; num_codes],
            part_positions: vec![0; num_codes],
            part_codes: CodePlanes::new(num_codes, num_words),
            starts: Vec::new(),
            low_bits: 0,
            next: Vec::new(),
        }
    }

    /// Partitions the first `num_codes` codes by the upper bits of their value of a key of `rows` bits.
    pub(super) fn load(
        &mut self,
        codes: &CodePlanes,
        num_codes: usize,
        key: &KeyValue,
        rows: u32,
        isa: Isa,
    ) {
        let values = &mut self.values;
        values.clear();
        run_kernel!(isa, codes.num_words(), key_values, (codes: &CodePlanes, num_codes: usize, key: &KeyValue, values: &mut Vec<u32>));
        self.low_bits = rows.saturating_sub(FIRST_BITS);
        let low_bits = self.low_bits;
        let mut next = [0_u32; NUM_PARTS];
        for value in &self.values {
            next[(value >> low_bits) as usize % NUM_PARTS] += 1;
        }
        self.starts.clear();
        let mut total = 0;
        for slot in &mut next {
            self.starts.push(total);
            total += std::mem::replace(slot, total);
        }
        self.starts.push(total);
        // One pass per word keeps few streams open at a time.
        let first = next;
        for (position, &value) in self.values.iter().enumerate() {
            let slot = &mut next[(value >> low_bits) as usize % NUM_PARTS];
            self.part_values[*slot as usize] = value;
            self.part_positions[*slot as usize] = position as u32;
            *slot += 1;
        }
        for word in 0..codes.num_words() {
            let mut next = first;
            let target = self.part_codes.plane_mut(word);
            for (&code, &value) in codes.plane(word).iter().zip(&self.values) {
                let slot = &mut next[(value >> low_bits) as usize % NUM_PARTS];
                target[*slot as usize] = code;
                *slot += 1;
            }
        }
    }

    /// Number of parts.
    pub(super) fn num_parts(&self) -> usize {
        NUM_PARTS
    }

    /// Computes the buckets of a part into `buckets`.
    pub(super) fn buckets(&mut self, part: usize, buckets: &mut Buckets) {
        let range = self.starts[part] as usize..self.starts[part + 1] as usize;
        let len = range.len();
        let values = &self.part_values[range.clone()];
        let low = |value: u32| (value as usize) & ((1 << self.low_bits) - 1);
        self.next.clear();
        self.next.resize(1 << self.low_bits, 0);
        for &value in values {
            self.next[low(value)] += 1;
        }
        buckets.ranges.clear();
        let mut total = 0;
        for slot in &mut self.next {
            let count = std::mem::replace(slot, total);
            if count > 1 {
                buckets.ranges.push((total, total + count));
            }
            total += count;
        }
        buckets.positions.clear();
        buckets.positions.resize(len, 0);
        buckets.codes.resize(len);
        // The targets are recorded first, then positions and words are moved.
        let slots: Vec<u32> = values
            .iter()
            .map(|&value| {
                let slot = &mut self.next[low(value)];
                *slot += 1;
                *slot - 1
            })
            .collect();
        for (&slot, &position) in slots.iter().zip(&self.part_positions[range.clone()]) {
            buckets.positions[slot as usize] = position;
        }
        for word in 0..self.part_codes.num_words() {
            let source = &self.part_codes.plane(word)[range.clone()];
            let target = buckets.codes.plane_mut(word);
            for (&slot, &code) in slots.iter().zip(source) {
                target[slot as usize] = code;
            }
        }
    }
}

impl Buckets {
    pub(super) fn new(num_words: usize) -> Self {
        Buckets {
            codes: CodePlanes::new(0, num_words),
            positions: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// Fills one bucket with these positions, which must ascend.
    pub(super) fn fill(&mut self, codes: &CodePlanes, positions: &[u32]) {
        self.codes.resize(positions.len());
        for word in 0..codes.num_words() {
            let source = codes.plane(word);
            let target = self.codes.plane_mut(word);
            for (code, &position) in target.iter_mut().zip(positions) {
                *code = source[position as usize];
            }
        }
        self.positions.clear();
        self.positions.extend_from_slice(positions);
        self.ranges.clear();
        self.ranges.push((0, positions.len() as u32));
    }
}

/// Computes the values of a key of at most 32 bits for the first codes.
///
/// # Safety
/// The processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
unsafe fn key_values<K: BitKernel, const W: usize>(
    codes: &CodePlanes,
    num_codes: usize,
    key: &KeyValue,
    values: &mut Vec<u32>,
) {
    for index in 0..num_codes {
        // SAFETY: guaranteed by the caller.
        values.push(unsafe { key.of::<K, W>(&codes.get::<W>(index)) } as u32);
    }
}
