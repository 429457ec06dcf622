//! What do the basic steps of a search cost on a machine?
//!
//! The costs are measured outside the core, which has no clock; [`super::exercise`] contains the work to be timed.

use likewise_core::error::{Error, Result};

/// Random reads from a working set of a given size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryCost {
    pub num_bytes: f64,
    /// Nanoseconds per read if the next one depends on it.
    pub latency_ns: f64,
    /// Nanoseconds per read among many that are prefetched.
    pub overlapped_ns: f64,
}

/// Nanoseconds of the basic steps of a search, on one core.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Random reads by size of the working set, ascending.
    pub memory: Vec<MemoryCost>,
    /// Additional cost of a single query, compared with one of many.
    pub query_ns: f64,
    /// Searching one table: permuting the code of the query.
    pub table_ns: f64,
    /// The additional cost of that for codes of several words.
    pub wide_ns: f64,
    /// Finding the bucket of one value near the query's, and iterating over it.
    pub bucket_ns: f64,
    /// Comparing a word of a code in a bucket, in addition to reading it.
    pub compare_ns: f64,
    /// Comparing a word of a code with one of many queries in a blocked scan.
    pub scan_ns: f64,
    /// Comparing a word of a code with a single query, read sequentially from memory.
    pub stream_ns: f64,
    /// Moving a word of a code in one pass of a sort.
    pub sort_ns: f64,
}

impl Default for Costs {
    /// Returns the costs of a virtual server core with AVX-512, 1 MiB of private cache and a share of 32 MiB.
    fn default() -> Self {
        let memory = [
            (15, 3.1, 1.55),
            (18, 5.4, 1.56),
            (21, 14.0, 1.7),
            (23, 71.0, 4.0),
            (25, 154.0, 9.2),
            (28, 205.0, 14.5),
            (32, 255.0, 18.8),
            (36, 302.0, 23.2),
        ];
        Costs {
            memory: memory
                .into_iter()
                .map(|(log2_bytes, latency_ns, overlapped_ns)| MemoryCost {
                    num_bytes: (1_u64 << log2_bytes) as f64,
                    latency_ns,
                    overlapped_ns,
                })
                .collect(),
            query_ns: 300.0,
            table_ns: 36.0,
            wide_ns: 200.0,
            bucket_ns: 11.0,
            compare_ns: 0.03,
            scan_ns: 0.07,
            stream_ns: 0.32,
            sort_ns: 12.0,
        }
    }
}

impl Costs {
    /// Returns the costs other than reads, by name.
    pub fn steps(&self) -> [(&'static str, f64); 8] {
        [
            ("query_ns", self.query_ns),
            ("table_ns", self.table_ns),
            ("wide_ns", self.wide_ns),
            ("bucket_ns", self.bucket_ns),
            ("compare_ns", self.compare_ns),
            ("scan_ns", self.scan_ns),
            ("stream_ns", self.stream_ns),
            ("sort_ns", self.sort_ns),
        ]
    }

    pub fn step_mut(&mut self, name: &str) -> Option<&mut f64> {
        match name {
            "query_ns" => Some(&mut self.query_ns),
            "table_ns" => Some(&mut self.table_ns),
            "wide_ns" => Some(&mut self.wide_ns),
            "bucket_ns" => Some(&mut self.bucket_ns),
            "compare_ns" => Some(&mut self.compare_ns),
            "scan_ns" => Some(&mut self.scan_ns),
            "stream_ns" => Some(&mut self.stream_ns),
            "sort_ns" => Some(&mut self.sort_ns),
            _ => None,
        }
    }

    /// Rejects costs that are not positive and finite, or sizes that do not ascend.
    pub fn check(&self) -> Result<()> {
        let reads = self.memory.iter().flat_map(|read| {
            [
                ("num_bytes", read.num_bytes),
                ("latency_ns", read.latency_ns),
                ("overlapped_ns", read.overlapped_ns),
            ]
        });
        for (name, value) in self.steps().into_iter().chain(reads) {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::invalid(
                    "costs",
                    format!("{name} is {value}, not a positive number"),
                ));
            }
        }
        if self.memory.is_empty() || !self.memory.is_sorted_by(|a, b| a.num_bytes < b.num_bytes) {
            return Err(Error::invalid(
                "costs",
                "memory sizes must be in ascending order",
            ));
        }
        Ok(())
    }

    /// Returns the nanoseconds of (a dependent, one of many prefetched) reads, linear in the logarithm of the size.
    pub fn read_ns(&self, num_bytes: f64) -> (f64, f64) {
        let last = self.memory.len() - 1;
        let upper = self
            .memory
            .partition_point(|read| read.num_bytes < num_bytes)
            .clamp(1.min(last), last);
        let (low, high) = (self.memory[upper.saturating_sub(1)], self.memory[upper]);
        if num_bytes <= low.num_bytes || last == 0 {
            return (low.latency_ns, low.overlapped_ns);
        }
        let share =
            libm::log2(num_bytes / low.num_bytes) / libm::log2(high.num_bytes / low.num_bytes);
        let between = |low: f64, high: f64| (low + share * (high - low)).max(low.min(high));
        (
            between(low.latency_ns, high.latency_ns),
            between(low.overlapped_ns, high.overlapped_ns),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_interpolated_by_the_logarithm() {
        let point = |num_bytes, latency_ns| MemoryCost {
            num_bytes,
            latency_ns,
            overlapped_ns: latency_ns / 10.0,
        };
        let costs = Costs {
            memory: vec![point(1e3, 1.0), point(1e5, 3.0), point(1e7, 103.0)],
            ..Costs::default()
        };
        assert_eq!(costs.check(), Ok(()));
        for (num_bytes, expected) in [
            (1.0, 1.0),
            (1e3, 1.0),
            (1e4, 2.0),
            (1e5, 3.0),
            (1e6, 53.0),
            (1e7, 103.0),
            (1e9, 203.0),
        ] {
            let (latency_ns, overlapped_ns) = costs.read_ns(num_bytes);
            assert!(
                (latency_ns - expected).abs() < 1e-9,
                "{num_bytes}: {latency_ns}"
            );
            assert!((overlapped_ns - expected / 10.0).abs() < 1e-9);
        }
        let single = Costs {
            memory: vec![point(1e3, 2.0)],
            ..Costs::default()
        };
        assert_eq!(single.read_ns(1e9), (2.0, 0.2));
    }

    #[test]
    fn costs_that_make_no_sense_are_refused() {
        assert_eq!(Costs::default().check(), Ok(()));
        assert!(
            Costs {
                scan_ns: 0.0,
                ..Costs::default()
            }
            .check()
            .is_err()
        );
        assert!(
            Costs {
                memory: vec![],
                ..Costs::default()
            }
            .check()
            .is_err()
        );
        let mut turned = Costs::default();
        turned.memory.reverse();
        assert!(turned.check().is_err());
    }
}
