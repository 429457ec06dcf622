//! How are the queries stored in the buckets of a key?

use super::kernels::STEP;
use super::key_value::KeyValue;
use crate::code_planes::CodePlanes;
use crate::plan::Key;
use likewise_core::hash::GOLDEN;

/// Maximum radius at which 32 bits of a code reject chance matches well enough: random words are that near in one of a
/// thousand cases.
const MAX_NARROW_RADIUS: u32 = 7;

/// A word for each code of a bucket: the code folded by XOR, so that check words differ in no more bits than the codes.
#[derive(Debug)]
pub(super) enum Checks {
    /// Folded to 32 bits.
    Narrow(Vec<u32>),
    /// Folded to 64 bits.
    Wide(Vec<u64>),
}

/// The queries by the value of one key.
#[derive(Debug)]
pub(super) struct KeyTable {
    pub(super) key: KeyValue,
    /// Masks that turn a value into all values within the radius by XOR, 0 first.
    pub(super) neighbors: Vec<u64>,
    directory: Directory,
    /// Bucket `b` is `offsets[b]..offsets[b + 1]`.
    pub(super) offsets: Vec<u32>,
    /// In order of bucket, with [`STEP`] more readable after the last.
    pub(super) checks: Checks,
    /// Rows of the queries, ascending within a bucket.
    pub(super) rows: Vec<u32>,
}

/// Maps the value of a key to its bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Directory {
    /// 1, or an odd multiplier that distributes values wider than the directory.
    multiplier: u64,
    shift: u32,
    bits: u32,
}

impl Directory {
    /// Creates a bucket per value, or up to four per query if the key has more values than that.
    pub(super) fn new(width: u32, num_queries: usize) -> Self {
        let bits = width.min(num_queries.max(2).ilog2() + 2).min(28);
        let (multiplier, shift) = match bits < width {
            true => (GOLDEN, 64 - bits),
            false => (1, 0),
        };
        Directory {
            multiplier,
            shift,
            bits,
        }
    }

    /// Number of buckets.
    pub(super) fn len(self) -> usize {
        1 << self.bits
    }

    /// Returns the bucket of a value.
    #[inline(always)]
    pub(super) fn bucket(self, value: u64) -> usize {
        (value.wrapping_mul(self.multiplier) >> self.shift) as usize
    }
}

impl KeyTable {
    pub(super) fn new(queries: &CodePlanes, key: &Key, within: u32) -> Self {
        let directory = Directory::new(key.width(), queries.len());
        let value = KeyValue::new(key);
        let buckets: Vec<u32> = (0..queries.len())
            .map(|row| directory.bucket(value.of_row(queries, row)) as u32)
            .collect();
        let mut offsets = vec![0_u32; directory.len() + 1];
        for &bucket in &buckets {
            offsets[bucket as usize] += 1;
        }
        let mut total = 0;
        for offset in &mut offsets {
            total += std::mem::replace(offset, total);
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; queries.len()];
        for (row, &bucket) in buckets.iter().enumerate() {
            let slot = &mut next[bucket as usize];
            rows[*slot as usize] = row as u32;
            *slot += 1;
        }
        let folded = rows.iter().map(|&row| fold_row(queries, row as usize));
        let padding = std::iter::repeat_n(0_u64, STEP);
        let checks = if within <= MAX_NARROW_RADIUS {
            Checks::Narrow(folded.chain(padding).map(fold_narrow).collect())
        } else {
            Checks::Wide(folded.chain(padding).collect())
        };
        KeyTable {
            key: value,
            neighbors: neighbors(key.width(), key.radius),
            directory,
            offsets,
            checks,
            rows,
        }
    }

    #[inline(always)]
    pub(super) fn bucket(&self, value: u64) -> usize {
        self.directory.bucket(value)
    }

    /// Base-2 logarithm of the number of buckets.
    pub(super) fn num_bucket_bits(&self) -> u32 {
        self.directory.bits
    }

    pub(super) fn num_bytes(&self) -> usize {
        let checks = match &self.checks {
            Checks::Narrow(values) => 4 * values.len(),
            Checks::Wide(values) => 8 * values.len(),
        };
        8 * self.neighbors.len() + 4 * self.offsets.len() + checks + 4 * self.rows.len()
    }
}

/// Returns a one-word code; folded codes differ in no more bits than the original codes.
#[inline(always)]
pub(super) fn fold<const W: usize>(code: &[u64; W]) -> u64 {
    code.iter().fold(0, |folded, word| folded ^ word)
}

/// Folds it to 32 bits.
#[inline(always)]
pub(super) fn fold_narrow(folded: u64) -> u32 {
    (folded ^ folded >> 32) as u32
}

fn fold_row(queries: &CodePlanes, row: usize) -> u64 {
    (0..queries.num_words()).fold(0, |folded, word| folded ^ queries.plane(word)[row])
}

/// Returns all values of `width` bits with at most `radius` ones, in ascending order.
pub(super) fn neighbors(width: u32, radius: u32) -> Vec<u64> {
    let mut all = vec![0_u64];
    let mut shell_start = 0;
    for _ in 0..radius.min(width) {
        let shell_end = all.len();
        for index in shell_start..shell_end {
            let value = all[index];
            // Each value is reached once: by setting a bit above its highest.
            let above = u64::BITS - value.leading_zeros();
            all.extend((above..width).map(|bit| value | 1 << bit));
        }
        shell_start = shell_end;
    }
    all
}
