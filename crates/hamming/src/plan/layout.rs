//! What does an index of tables store, and what does a query read from it?
//!
//! A table is sorted by its key. A directory over the leading bits of the key, the prefix, gives the bucket; of the
//! first word only the bits after the prefix are stored, the residual. If buckets are small, the directory consists of
//! cache lines with one bit per bucket and one per entry, so that neighbors that differ in the low bits of the prefix
//! share a line; if they are large, it is the plain list of their starts. Values that differ after the prefix are in
//! the same bucket. Ids are stored once.

use super::costs;
use super::shape::{Shape, residual_bits};
use super::statistics::within_probability;

/// Size of a line in bytes.
const LINE_BYTES: f64 = 64.0;
/// Cost, in prefetched reads, of a line of the directory and of the first line of a bucket, and of each later line;
/// fitted to measured times of 80 plans, 10^5 to 10^8 fingerprints.
const FIRST_LINE: f64 = 2.5;
const NEXT_LINE: f64 = 0.9;
/// Fraction of that cost in a large batch, whose queries are searched in the order of each table.
const SORTED: f64 = 0.55;
/// Assumed duration of a batch, and the queries and table size from which they are sorted, as by the index.
const BATCH_NS: f64 = 1e9;
const MIN_SORTED: f64 = 4096.0;
const UNCACHED_BYTES: f64 = (1 << 20) as f64;
/// Cost of finding a bucket with a listed start, relative to finding it in a line.
const LISTED_BUCKET: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collection {
    pub num_fingerprints: u64,
    pub bits: u32,
    /// Number of bits stored for the id of a fingerprint; 0 if fingerprints themselves are returned.
    pub id_bits: u32,
}

/// Nanoseconds for finding a bucket whose line has been read.
fn bucket_ns(shape: Shape) -> f64 {
    match shape.is_unary {
        true => costs::BUCKET_NS,
        false => LISTED_BUCKET * costs::BUCKET_NS,
    }
}

impl Collection {
    /// Creates a set with the row of each fingerprint, and a bit to distinguish a row from a group.
    pub fn with_rows(num_fingerprints: u64, bits: u32) -> Self {
        Collection {
            num_fingerprints,
            bits,
            id_bits: u64::BITS + 1 - num_fingerprints.saturating_sub(1).leading_zeros(),
        }
    }

    pub(super) fn num_words(&self) -> f64 {
        f64::from(self.bits.div_ceil(64))
    }

    /// Returns the directory for a key of this width.
    fn shape(&self, width: u32) -> Shape {
        Shape::choose(self.num_fingerprints as usize, width, self.bits.min(64))
    }

    /// Size of the codes of a table in bytes, without the prefix of this many bits.
    pub(super) fn residual_bytes(&self, prefix_bits: u32) -> f64 {
        let top_bits = self.bits.min(64);
        (f64::from(residual_bits(top_bits, prefix_bits)) / 8.0 + 8.0 * (self.num_words() - 1.0))
            * self.num_fingerprints as f64
    }

    /// Size of a table with this key width in bytes, without ids.
    pub(super) fn table_bytes(&self, width: u32) -> f64 {
        let shape = self.shape(width);
        shape.num_bytes() + self.residual_bytes(shape.prefix_bits)
    }

    /// Size of the ids in bytes.
    pub(super) fn id_bytes(&self) -> f64 {
        f64::from(self.id_bits) / 8.0 * self.num_fingerprints as f64
    }

    /// Size of the uncompressed fingerprints in bytes.
    pub(super) fn plain_bytes(&self) -> f64 {
        f64::from(self.bits) / 8.0 * self.num_fingerprints as f64
    }

    /// Nanoseconds of a scan: (for a single query, for one of many).
    pub(super) fn scan_ns(&self) -> (f64, f64) {
        let words = self.num_fingerprints as f64 * self.num_words();
        (words * costs::STREAM_NS, words * costs::SCAN_NS)
    }

    /// Nanoseconds for building a table: a sort by the permuted code, byte by byte over the prefix.
    fn build_ns(&self, prefix_bits: u32) -> f64 {
        let passes = prefix_bits.div_ceil(8) + 1;
        f64::from(passes) * costs::SORT_NS * self.num_words() * self.num_fingerprints as f64
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KeyCost {
    /// Number of key values within the radius.
    pub num_probes: f64,
    /// Number of codes whose key is within the radius.
    pub num_candidates: f64,
    /// Number of buckets visited: prefix values within the radius.
    pub num_buckets: f64,
    pub num_compared: f64,
    /// Size of the table in bytes, without ids.
    pub num_bytes: f64,
    pub single_ns: f64,
    /// Nanoseconds for one query of a batch that fills a second.
    pub batch_ns: f64,
    pub build_ns: f64,
}

/// Returns a quickly computed lower bound for searching a key, in nanoseconds: the cost of its bucket lookups.
pub(super) fn least_key_ns(collection: &Collection, width: u32, radius: u32) -> f64 {
    let shape = collection.shape(width);
    costs::TABLE_NS + ball(shape.prefix_bits, radius) * bucket_ns(shape)
}

/// Returns the cost of searching a key in an index of `num_tables` such tables, by the probability `mismatch` that
/// codes differ at each bit of the key, and the correlation of two of these.
pub(super) fn key_cost(
    collection: &Collection,
    mismatch: &[f64],
    dependence: f64,
    radius: u32,
    num_tables: usize,
) -> KeyCost {
    let width = mismatch.len() as u32;
    let n = collection.num_fingerprints as f64;
    let shape = collection.shape(width);
    let num_lines = ball(shape.prefix_bits - shape.line_shift, radius);
    let num_buckets = ball(shape.prefix_bits, radius);
    let leading = &mismatch[..shape.prefix_bits as usize];
    let num_compared = n * within_probability(leading, dependence, radius);
    // Buckets are assumed to be filled at random.
    let num_occupied = num_buckets * (1.0 - libm::exp(-num_compared / num_buckets));
    let residual_bytes = collection.residual_bytes(shape.prefix_bits);
    // The directories and entries of all tables share the same caches.
    let num_bytes = shape.num_bytes() + residual_bytes;
    let (latency_ns, read_ns) = costs::read_ns(num_tables as f64 * num_bytes);
    let lines_of_entries = num_compared * residual_bytes / n.max(1.0) / LINE_BYTES;
    let is_wide = f64::from(u8::from(collection.bits > 64));
    let working_ns = costs::TABLE_NS
        + is_wide * costs::WIDE_NS
        + num_buckets * bucket_ns(shape)
        + num_compared * costs::COMPARE_NS * collection.num_words();
    let reading_ns =
        (FIRST_LINE * (num_lines + num_occupied) + NEXT_LINE * lines_of_entries) * read_ns;
    let alone_ns = working_ns + reading_ns;
    let is_sorted =
        BATCH_NS / (alone_ns * num_tables as f64) >= MIN_SORTED && num_bytes >= UNCACHED_BYTES;
    let batch_ns = match is_sorted {
        true => working_ns + SORTED * reading_ns,
        false => alone_ns,
    };
    KeyCost {
        num_probes: ball(width, radius),
        num_candidates: n * within_probability(mismatch, dependence, radius),
        num_buckets,
        num_compared,
        num_bytes,
        // The first line and the first bucket are waited for; the others are prefetched meanwhile.
        single_ns: alone_ns + 2.0 * latency_ns,
        batch_ns,
        build_ns: collection.build_ns(shape.prefix_bits),
    }
}

/// Returns the number of values of `width` bits within `radius` of one: the sum of `C(width, j)`.
pub fn ball(width: u32, radius: u32) -> f64 {
    (0..=radius.min(width))
        .map(|errors| choose(width, errors))
        .sum()
}

/// Returns `C(n, k)`; 0 if k is above n.
pub fn choose(n: u32, k: u32) -> f64 {
    let k = if k > n { return 0.0 } else { k.min(n - k) };
    // Every partial product is a whole number, exact below 2^53.
    (0..k).fold(1.0, |product, i| {
        product * f64::from(n - i) / f64::from(i + 1)
    })
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
        let cost = key_cost(&Collection::with_rows(n, 64), &[0.5; 16], 0.0, 0, 4);
        assert_eq!(
            (cost.num_candidates, cost.num_compared),
            (262_144.0, 262_144.0)
        );
        assert_eq!((cost.num_probes, cost.num_buckets), (1.0, 1.0));
    }

    #[test]
    fn neighbors_behind_the_prefix_share_a_bucket() {
        let collection = Collection::with_rows(1_000_000_000, 64);
        assert_eq!(collection.id_bits, 31);
        let shape = collection.shape(32);
        let prefix = shape.prefix_bits;
        // A bit per bucket and a bit per entry, and little unused space.
        let bits = 8.0 * shape.num_bytes() / (1e9 + libm::exp2(f64::from(prefix)));
        assert!(
            (27..=31).contains(&prefix) && (1.0..1.6).contains(&bits),
            "{shape:?} {bits}"
        );
        let cost = key_cost(&collection, &[0.5; 32], 0.0, 1, 2);
        assert_eq!(
            (cost.num_probes, cost.num_buckets),
            (33.0, f64::from(prefix + 1))
        );
        assert!((cost.num_candidates - 33e9 / 4_294_967_296.0).abs() < 1e-6);
        assert!(
            (cost.num_compared - f64::from(prefix + 1) * 1e9 / libm::exp2(f64::from(prefix))).abs()
                < 1e-6
        );
        assert_eq!(
            cost.num_bytes,
            f64::from(64 - prefix) / 8.0 * 1e9 + shape.num_bytes()
        );
    }
}
