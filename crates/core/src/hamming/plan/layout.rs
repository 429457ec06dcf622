//! What does an index of tables hold, and what does a query read of it?
//!
//! A table is sorted by its key. A directory over the leading bits of the key names the bucket; only the remaining bits, the
//! residual, are stored. The first table also holds the ids. Values of the key that differ in bits below the directory lie in
//! the same bucket, so a key wider than the directory acts as a key of the directory's bits.

use super::costs::Costs;

/// Base-2 logarithm of the codes that a bucket holds at least, on average, where the key has bits enough.
const BUCKET_LOG2: u32 = 2;

/// The set that is searched.
#[derive(Clone, Copy, Debug)]
pub struct Collection {
    /// Number of fingerprints.
    pub num_fingerprints: u64,
    /// Bits of a fingerprint.
    pub bits: u32,
    /// Bits stored for the id of a fingerprint; 0 where a fingerprint is an answer of its own.
    pub id_bits: u32,
}

impl Collection {
    /// The set with ids of just enough bits to tell rows apart.
    pub fn with_rows(num_fingerprints: u64, bits: u32) -> Self {
        Collection {
            num_fingerprints,
            bits,
            id_bits: u64::BITS - num_fingerprints.max(1).leading_zeros(),
        }
    }

    fn num_words(&self) -> f64 {
        f64::from(self.bits.div_ceil(64))
    }

    /// Bits of the directory of a key of this width.
    pub(super) fn directory_bits(&self, width: u32) -> u32 {
        let log2 = self.num_fingerprints.max(1).ilog2();
        width.min(log2.saturating_sub(BUCKET_LOG2))
    }

    fn directory_bytes(&self, width: u32) -> f64 {
        let offset_bytes = if self.num_fingerprints >> 32 == 0 {
            4.0
        } else {
            8.0
        };
        offset_bytes * power_of_two(self.directory_bits(width))
    }

    fn residual_bytes(&self, width: u32) -> f64 {
        f64::from(self.bits - self.directory_bits(width)) / 8.0 * self.num_fingerprints as f64
    }

    /// Bytes of the ids.
    pub(super) fn id_bytes(&self) -> f64 {
        f64::from(self.id_bits) / 8.0 * self.num_fingerprints as f64
    }

    /// Bytes of one table of a key of this width: directory and residuals.
    pub(super) fn table_bytes(&self, width: u32) -> f64 {
        self.directory_bytes(width) + self.residual_bytes(width)
    }

    /// Bytes of the fingerprints as they are.
    pub(super) fn plain_bytes(&self) -> f64 {
        f64::from(self.bits) / 8.0 * self.num_fingerprints as f64
    }

    /// Nanoseconds of a scan: (one query alone, one of many).
    pub(super) fn scan_ns(&self, costs: &Costs) -> (f64, f64) {
        let words = self.num_fingerprints as f64 * self.num_words();
        (words * costs.stream_ns, words * costs.scan_ns)
    }

    /// Nanoseconds of building one table: passes of 8 bits over the directory's bits and three more inside the buckets.
    pub(super) fn build_ns(&self, width: u32, costs: &Costs) -> f64 {
        let passes = self.directory_bits(width).div_ceil(8) + 3;
        f64::from(passes) * costs.sort_ns * self.num_words() * self.num_fingerprints as f64
    }
}

/// What searching one key costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KeyCost {
    /// Values of the key within its radius.
    pub num_probes: f64,
    /// Codes whose key lies within the radius.
    pub num_candidates: f64,
    /// Buckets read.
    pub num_buckets: f64,
    /// Codes in those buckets.
    pub num_compared: f64,
    /// Bytes of the table, without ids.
    pub num_bytes: f64,
    /// Nanoseconds for one query alone.
    pub single_ns: f64,
    /// Nanoseconds for one query of many.
    pub batch_ns: f64,
    /// Nanoseconds of building the table.
    pub build_ns: f64,
}

/// What searching a key costs whose bits differ between two codes with these probabilities, leading bit first.
pub(super) fn key_cost(
    collection: &Collection,
    mismatch: &[f64],
    radius: u32,
    costs: &Costs,
) -> KeyCost {
    let width = mismatch.len() as u32;
    let n = collection.num_fingerprints as f64;
    let directory_bits = collection.directory_bits(width);
    let num_buckets = ball(directory_bits, radius);
    let num_compared = n * within_probability(&mismatch[..directory_bits as usize], radius);
    let (directory_latency, directory_read) = costs.read_ns(collection.directory_bytes(width));
    let (residual_latency, residual_read) = costs.read_ns(collection.residual_bytes(width));
    let batch_ns = num_buckets * (costs.bucket_ns + directory_read + residual_read)
        + num_compared * costs.compare_ns * collection.num_words();
    KeyCost {
        num_probes: ball(width, radius),
        num_candidates: n * within_probability(mismatch, radius),
        num_buckets,
        num_compared,
        num_bytes: collection.table_bytes(width),
        // The first directory entry and the first bucket are waited for; the others were asked for meanwhile.
        single_ns: batch_ns + directory_latency + residual_latency,
        batch_ns,
        build_ns: collection.build_ns(width, costs),
    }
}

/// Number of values of `width` bits within `radius` of one: the sum of `C(width, j)`.
pub fn ball(width: u32, radius: u32) -> f64 {
    (0..=radius).map(|errors| choose(width, errors)).sum()
}

/// `C(n, k)`; 0 where k is above n.
pub fn choose(n: u32, k: u32) -> f64 {
    let k = if k > n { return 0.0 } else { k.min(n - k) };
    let product = (0..k).fold(1.0, |product, i| {
        product * f64::from(n - i) / f64::from(i + 1)
    });
    // Exact below 2^52, where every partial product is a whole number.
    product.round()
}

pub(super) fn power_of_two(exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |power, _| 2.0 * power)
}

/// P(at most `radius` of independent bits differ), each with its own probability.
fn within_probability(mismatch: &[f64], radius: u32) -> f64 {
    if radius as usize >= mismatch.len() {
        return 1.0;
    }
    let mut by_errors = vec![0.0; radius as usize + 1];
    by_errors[0] = 1.0;
    for &differs in mismatch {
        for errors in (0..by_errors.len()).rev() {
            let fewer = if errors == 0 {
                0.0
            } else {
                by_errors[errors - 1]
            };
            by_errors[errors] = by_errors[errors] * (1.0 - differs) + fewer * differs;
        }
    }
    by_errors.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_numbers() {
        assert_eq!(choose(64, 3), 41_664.0);
        assert_eq!(ball(64, 3), 43_745.0);
        assert_eq!(ball(16, 16), 65_536.0);
        assert_eq!(choose(3, 4), 0.0);
        let n = 1_u64 << 34;
        let cost = key_cost(
            &Collection::with_rows(n, 64),
            &[0.5; 16],
            0,
            &Costs::default(),
        );
        assert_eq!(
            (cost.num_candidates, cost.num_compared),
            (262_144.0, 262_144.0)
        );
        assert_eq!((cost.num_probes, cost.num_buckets), (1.0, 1.0));
    }

    #[test]
    fn neighbours_below_the_directory_share_a_bucket() {
        // 10^9 codes: 27 bits of directory, 7.45 codes a bucket.
        let collection = Collection::with_rows(1_000_000_000, 64);
        let cost = key_cost(&collection, &[0.5; 32], 1, &Costs::default());
        assert_eq!((cost.num_probes, cost.num_buckets), (33.0, 28.0));
        assert!((cost.num_candidates - 33e9 / 4_294_967_296.0).abs() < 1e-6);
        assert!((cost.num_compared - 28e9 / 134_217_728.0).abs() < 1e-6);
        assert_eq!(cost.num_bytes, 4.625e9 + 4.0 * 134_217_728.0);
    }

    #[test]
    fn skewed_bits_find_more() {
        let exact: f64 = within_probability(&[0.5, 0.1], 0);
        assert!((exact - 0.45).abs() < 1e-12);
        let one = within_probability(&[0.5, 0.1, 0.0], 1);
        assert!((one - 0.95).abs() < 1e-12);
        assert_eq!(within_probability(&[0.5], 1), 1.0);
    }
}
