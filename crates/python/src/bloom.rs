//! Bloom filters of texts, and the pairs of filters that share enough bits.

use likewise_core::bloom::{self, BitMeasure, Demand, MAX_BITS, Measure};
use likewise_core::error::invalid_if;
use likewise_core::parallel::Run;
use likewise_core::search::{Call, Pairs};
use likewise_core::sets::size_of;
use likewise_core::sketch::{BloomHasher, MinHasher, Scheme};
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::door::{
    LONG_BYTES, Object, SET_MEASURES, check_pairs, check_same_length, chosen_isa, parse, run,
};
use crate::errors::{Failure, Result};
use crate::features::FeatureRules;
use crate::searcher::{Search, Searcher};
use crate::sketch::{Batch, SketchBatch};
use crate::texts::Texts;

/// Maximum number of bits set by a feature.
const MAX_HASHES: u32 = 64;

fn check_filter(filter_bits: u32, num_hashes: u32) -> Result<usize> {
    invalid_if(
        !(64..=MAX_BITS).contains(&filter_bits) || !filter_bits.is_multiple_of(64),
        "filter_bits",
        || format!("{filter_bits} is not a multiple of 64 from 64 to {MAX_BITS}"),
    )?;
    invalid_if(
        !(1..=MAX_HASHES).contains(&num_hashes),
        "num_hashes",
        || format!("{num_hashes} is outside 1..{MAX_HASHES}"),
    )?;
    Ok(filter_bits as usize / 64)
}

#[pyfunction]
#[pyo3(signature = (texts, rules, *, filter_bits, num_hashes, sets=true, threads=1))]
pub fn sketch_bloom(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    filter_bits: u32,
    num_hashes: u32,
    sets: bool,
    threads: usize,
) -> Result<SketchBatch> {
    let num_words = check_filter(filter_bits, num_hashes)?;
    let batch = Batch {
        column: &texts.column,
        rules,
        sets,
        occurrences: false,
        threads,
    };
    let hasher = BloomHasher::new(filter_bits, num_hashes, rules.rules.seed);
    run(py, texts.column.num_bytes, |cancel| {
        batch.sketch(cancel, || {
            |features: &[u64], weights: &[u32], out: &mut Vec<u64>| {
                let from = out.len();
                out.resize(from + num_words, 0);
                hasher.add(features, weights, &mut out[from..]);
            }
        })
    })?
    .into_batch(py)
}

#[pyfunction]
#[pyo3(signature = (features, weights, *, filter_bits, num_hashes, seed=0))]
pub fn bloom_features(
    py: Python<'_>,
    features: &Object<'_>,
    weights: Option<&Object<'_>>,
    filter_bits: u32,
    num_hashes: u32,
    seed: u64,
) -> Result<Array> {
    let num_words = check_filter(filter_bits, num_hashes)?;
    take!(features: u64);
    let weights = Input::<u32>::take_like("weights", weights, ("features", features.len()))?;
    let weights = weights.values();
    run(py, 64 * features.len(), |_| {
        let mut words = vec![0; num_words];
        BloomHasher::new(filter_bits, num_hashes, seed).add(features, weights, &mut words);
        Ok(words.into())
    })
}

/// The largest number of features of a text, counting weights.
#[pyfunction]
#[pyo3(signature = (texts, rules, *, threads=1))]
pub fn largest_set(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    threads: usize,
) -> Result<u64> {
    let batch = Batch {
        column: &texts.column,
        rules,
        sets: false,
        occurrences: false,
        threads,
    };
    run(py, texts.column.num_bytes, |cancel| {
        let part = batch.sketch(cancel, || {
            |features: &[u64], weights: &[u32], out: &mut Vec<u64>| {
                out.push(size_of(features, weights));
            }
        })?;
        Ok(part.sketches.into_iter().max().unwrap_or(0))
    })
}

/// MinHash signatures of the positions of set bits, by bucket filling: bytes, 16 bits per slot.
#[pyfunction]
#[pyo3(signature = (filters, *, filter_bits, num_slots, seed=0, threads=1))]
pub fn bloom_signatures(
    py: Python<'_>,
    filters: &Object<'_>,
    filter_bits: u32,
    num_slots: u32,
    seed: u64,
    threads: usize,
) -> Result<Array> {
    let num_words = check_filter(filter_bits, 1)?;
    take!(filters: u64);
    if !(1..=65_535).contains(&num_slots) || !filters.len().is_multiple_of(num_words) {
        return Err(Failure::parameter(
            "num_slots",
            format!(
                "{num_slots} slots of {} words do not go together",
                filters.len()
            ),
        ));
    }
    run(py, 64 * filters.len(), |cancel| {
        let make_state = || {
            let hasher = MinHasher::new(num_slots, Scheme::Bucket, seed, chosen_isa());
            (hasher, vec![0; num_slots as usize], Vec::new())
        };
        let parts = Run { threads, cancel }.map(
            filters.len() / num_words,
            256,
            make_state,
            |(hasher, slots, positions), range| {
                let mut out = Vec::new();
                for filter in
                    filters[range.start * num_words..range.end * num_words].chunks(num_words)
                {
                    positions.clear();
                    positions.extend(bloom::positions(filter));
                    hasher.sketch(positions, &[], slots);
                    out.extend(slots.iter().flat_map(|&slot| (slot as u16).to_le_bytes()));
                }
                out
            },
        )?;
        Ok(parts.concat().into())
    })
}

/// Similarities of pairs of filters, by a measure on their bits.
#[pyfunction]
pub fn bloom_similarities(
    py: Python<'_>,
    filters: &Object<'_>,
    filter_bits: u32,
    a: &Object<'_>,
    b: &Object<'_>,
    measure: &str,
) -> Result<Array> {
    let num_words = check_filter(filter_bits, 1)?;
    take!(filters: u64, a: u32, b: u32);
    check_same_length("a", a.len(), "b", b.len())?;
    check_pairs(("a", a), ("b", b), filters.len() / num_words)?;
    let measure = parse_bit_measure(measure)?;
    run(py, 16 * num_words * a.len(), |_| {
        let filter = |row: u32| &filters[row as usize * num_words..][..num_words];
        let value = |(&a, &b): (&u32, &u32)| {
            let (a, b) = (filter(a), filter(b));
            let shared = a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum();
            measure.value(filter_bits, bloom::num_set(a), bloom::num_set(b), shared)
        };
        Ok(a.iter().zip(b).map(value).collect::<Vec<f64>>().into())
    })
}

fn parse_bit_measure(name: &str) -> Result<BitMeasure> {
    let names = BitMeasure::ALL.map(BitMeasure::name);
    parse("measure", name, BitMeasure::from_name(name), &names)
}

/// Filters in order of priority, and the condition on their pairs.
#[pyclass(frozen, module = "likewise._native")]
pub struct BloomJoin {
    join: bloom::BloomJoin,
    num_words: usize,
}

#[pymethods]
impl BloomJoin {
    /// With a recall, `measure` and `threshold` apply to the feature sets; without, to the bits.
    #[new]
    #[pyo3(signature = (filters, filter_bits, order, *, measure, threshold, recall=None))]
    fn new(
        py: Python<'_>,
        filters: &Object<'_>,
        filter_bits: u32,
        order: &Object<'_>,
        measure: &str,
        threshold: f64,
        recall: Option<f64>,
    ) -> Result<Self> {
        let num_words = check_filter(filter_bits, 1)?;
        take!(filters: u64, order: u32);
        invalid_if(!(0.0..=1.0).contains(&threshold), "threshold", || {
            format!("{threshold} is not from 0 to 1")
        })?;
        let demand = match recall {
            None => Demand::Bits(parse_bit_measure(measure)?, threshold),
            Some(recall) if !(recall > 0.0 && recall < 1.0) => {
                let message = format!("{recall} is not above 0 and below 1");
                return Err(Failure::parameter("recall", message));
            }
            Some(recall) => {
                let found = Measure::from_name(measure);
                let measure = parse("measure", measure, found, &SET_MEASURES)?;
                Demand::sets(measure, threshold, recall)
            }
        };
        let join = run(py, LONG_BYTES, |_| {
            Ok(bloom::BloomJoin::new(filters, filter_bits, order, demand)?)
        })?;
        Ok(BloomJoin { join, num_words })
    }

    /// The search for all pairs that pass.
    fn searcher(this: &Bound<'_, Self>) -> Searcher {
        Searcher::new(BloomSearch(this.clone().unbind()))
    }

    /// Whether each pair of positions passes: ones and zeros.
    #[pyo3(signature = (later, earlier, *, threads=1))]
    fn passes(
        &self,
        py: Python<'_>,
        later: &Object<'_>,
        earlier: &Object<'_>,
        threads: usize,
    ) -> Result<Array> {
        take!(later: u32, earlier: u32);
        run(py, 16 * self.num_words * later.len(), |cancel| {
            let passes = self.join.passes(later, earlier, Run { threads, cancel })?;
            Ok(passes.into_iter().map(u8::from).collect::<Vec<u8>>().into())
        })
    }
}

struct BloomSearch(Py<BloomJoin>);

impl Search for BloomSearch {
    fn num_positions(&self) -> usize {
        self.0.get().join.len()
    }

    fn num_bytes_read(&self, num_later: usize) -> usize {
        num_later * self.num_positions().min(LONG_BYTES) * self.0.get().num_words
    }

    fn candidates(&self, call: &Call<'_>) -> Result<Pairs> {
        Ok(self.0.get().join.candidates(call)?)
    }
}
