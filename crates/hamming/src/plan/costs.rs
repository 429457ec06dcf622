//! What do the basic steps of a search cost?
//!
//! In nanoseconds on one core of a virtual server with AVX-512, 1 MiB of private cache and a share of 32 MiB.

/// Additional cost of a single query, compared with one of many.
pub(super) const QUERY_NS: f64 = 300.0;
/// Searching one table: permuting the code of the query.
pub(super) const TABLE_NS: f64 = 36.0;
/// The additional cost of that for codes of several words.
pub(super) const WIDE_NS: f64 = 200.0;
/// Finding the bucket of one value near the query's, and iterating over it.
pub(super) const BUCKET_NS: f64 = 11.0;
/// Comparing a word of a code in a bucket, in addition to reading it.
pub(super) const COMPARE_NS: f64 = 0.03;
/// Comparing a word of a code with one of many queries in a blocked scan.
pub(super) const SCAN_NS: f64 = 0.07;
/// Comparing a word of a code with a single query, read sequentially from memory.
pub(super) const STREAM_NS: f64 = 0.32;
/// Moving a word of a code in one pass of a sort.
pub(super) const SORT_NS: f64 = 12.0;

/// Random reads: the logarithm of the working set in bytes, the nanoseconds of a read if the next one depends on it,
/// and of a read among many that are prefetched.
const READS: [(f64, f64, f64); 8] = [
    (15.0, 3.1, 1.55),
    (18.0, 5.4, 1.56),
    (21.0, 14.0, 1.7),
    (23.0, 71.0, 4.0),
    (25.0, 154.0, 9.2),
    (28.0, 205.0, 14.5),
    (32.0, 255.0, 18.8),
    (36.0, 302.0, 23.2),
];

/// Returns the nanoseconds of (a dependent, one of many prefetched) reads, linear in the logarithm of the size.
pub(super) fn read_ns(num_bytes: f64) -> (f64, f64) {
    let log2_bytes = libm::log2(num_bytes).max(READS[0].0);
    let upper = READS
        .partition_point(|read| read.0 < log2_bytes)
        .clamp(1, READS.len() - 1);
    let (low, high) = (READS[upper - 1], READS[upper]);
    let share = (log2_bytes - low.0) / (high.0 - low.0);
    let between = |low: f64, high: f64| low + share * (high - low);
    (between(low.1, high.1), between(low.2, high.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_interpolated_by_the_logarithm() {
        for (log2_bytes, expected) in [
            (0.0, (3.1, 1.55)),
            (15.0, (3.1, 1.55)),
            (22.0, (42.5, 2.85)),
            (36.0, (302.0, 23.2)),
            (40.0, (349.0, 27.6)),
        ] {
            let (latency_ns, overlapped_ns) = read_ns(libm::exp2(log2_bytes));
            assert!((latency_ns - expected.0).abs() < 1e-9, "{latency_ns}");
            assert!((overlapped_ns - expected.1).abs() < 1e-9);
        }
    }
}
