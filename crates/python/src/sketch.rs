//! Sketching: texts or features in, fingerprints and signatures out.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use likewise_core::error::invalid_if;
use likewise_core::features::{Extractor, FeatureView, Weights, digest};
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::sketch::{MinHasher, Scheme, simhash};
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::column::Column;
use crate::door::{Object, chosen_isa, parse, run};
use crate::errors::{Failure, Result};
use crate::features::FeatureRules;
use crate::texts::Texts;

/// Sketches of a batch of texts, one entry per text.
#[pyclass(frozen, get_all, module = "likewise._native")]
pub struct SketchBatch {
    sketches: Py<Array>,
    num_features: Py<Array>,
    shapes: Py<Array>,
    digests: Py<Array>,
    features_share: f64,
}

/// One text in this many is timed: reading the clock twice costs as much as sketching a few words.
const TIMED_EVERY: usize = 16;

/// Sketches of some texts. `V` is a word of a fingerprint or a byte of a signature.
#[derive(Default)]
pub struct Part<V> {
    pub sketches: Vec<V>,
    pub num_features: Vec<u32>,
    pub shapes: Vec<u8>,
    pub digests: Vec<u64>,
    /// Time of the timed texts: until their features were made, and in total.
    features_time: Duration,
    all_time: Duration,
}

impl<V> Part<V> {
    pub fn append(&mut self, other: Part<V>) {
        self.sketches.extend(other.sketches);
        self.num_features.extend(other.num_features);
        self.shapes.extend(other.shapes);
        self.digests.extend(other.digests);
        self.features_time += other.features_time;
        self.all_time += other.all_time;
    }

    pub fn into_batch(self, py: Python<'_>) -> Result<SketchBatch>
    where
        Vec<V>: Into<Array>,
    {
        let all_seconds = self.all_time.as_secs_f64();
        Ok(SketchBatch {
            features_share: match all_seconds > 0.0 {
                true => self.features_time.as_secs_f64() / all_seconds,
                false => 0.0,
            },
            sketches: Py::new(py, self.sketches.into())?,
            num_features: Py::new(py, Array::from(self.num_features))?,
            shapes: Py::new(py, Array::from(self.shapes))?,
            digests: Py::new(py, Array::from(self.digests))?,
        })
    }
}

pub struct Batch<'a> {
    pub column: &'a Column,
    pub rules: &'a FeatureRules,
    /// Whether digests and numbers of distinct features are needed.
    pub sets: bool,
    /// Without sets: whether every occurrence may be sketched instead of the distinct features.
    pub occurrences: bool,
    pub threads: usize,
}

impl Batch<'_> {
    /// Sketches all texts. `make` returns a thread's sketcher, which appends the sketch of features and weights to a
    /// vector.
    pub fn sketch<V: Default + Send, S: FnMut(&[u64], &[u32], &mut Vec<V>)>(
        &self,
        cancel: &AtomicBool,
        make: impl Fn() -> S + Sync,
    ) -> Result<Part<V>> {
        self.rules.check(self.column)?;
        let make_state = || (self.rules.extractor(chosen_isa()), make());
        let add = |(extractor, sketcher): &mut (Extractor, S), part: &mut Part<V>, i: usize| {
            let text = self.column.document(i);
            let began = i.is_multiple_of(TIMED_EVERY).then(Instant::now);
            let FeatureView {
                features,
                weights,
                shape,
                ..
            } = match self.occurrences {
                true => {
                    let (features, shape) = extractor.occurrences(text);
                    FeatureView {
                        features,
                        weights: &[],
                        shape,
                        salt: None,
                    }
                }
                false => extractor.features(text),
            };
            let cut = began.map(|began| began.elapsed());
            sketcher(features, weights, &mut part.sketches);
            part.num_features.push(features.len() as u32);
            part.shapes.push(shape as u8);
            if self.sets {
                part.digests.extend(digest(features, weights));
            }
            if let (Some(began), Some(cut)) = (began, cut) {
                part.features_time += cut;
                part.all_time += began.elapsed();
            }
        };
        let threads = self.threads;
        let parts = (self.column).in_parts(Run { threads, cancel }, make_state, add)?;
        let mut all = Part::default();
        for part in parts {
            all.append(part);
        }
        Ok(all)
    }
}

#[pyfunction]
#[pyo3(signature = (texts, rules, *, bits, sets=true, threads=1))]
pub fn sketch_simhash(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    bits: u32,
    sets: bool,
    threads: usize,
) -> Result<SketchBatch> {
    let num_words = check_bits(bits)?;
    let batch = Batch {
        column: &texts.column,
        rules,
        sets,
        // The count of a feature is the number of its occurrences.
        occurrences: !sets && rules.rules.weights == Weights::Count,
        threads,
    };
    run(py, texts.column.num_bytes, |cancel| {
        batch.sketch(cancel, || {
            let isa = chosen_isa();
            move |features: &[u64], weights: &[u32], out: &mut Vec<u64>| {
                let from = out.len();
                out.resize(from + num_words, 0);
                simhash(features, weights, bits, isa, &mut out[from..]);
            }
        })
    })?
    .into_batch(py)
}

#[pyfunction]
#[pyo3(signature = (texts, rules, *, num_slots, slot_bits, scheme, sets=true, threads=1))]
pub fn sketch_minhash(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    num_slots: u32,
    slot_bits: u32,
    scheme: &str,
    sets: bool,
    threads: usize,
) -> Result<SketchBatch> {
    let (scheme, slot_bytes) = check_slots(num_slots, slot_bits, scheme)?;
    let batch = Batch {
        column: &texts.column,
        rules,
        sets,
        // A repeated feature gives the same minimum.
        occurrences: !sets && rules.rules.weights == Weights::None,
        threads,
    };
    run(py, texts.column.num_bytes, |cancel| {
        batch.sketch(cancel, || {
            let mut sketcher = SlotSketcher::new(
                num_slots,
                slot_bytes,
                scheme,
                rules.rules.seed,
                chosen_isa(),
            );
            move |features: &[u64], weights: &[u32], out: &mut Vec<u8>| {
                sketcher.sketch(features, weights, out)
            }
        })
    })?
    .into_batch(py)
}

/// Makes signatures and truncates their slots to `slot_bytes` bytes.
pub struct SlotSketcher {
    hasher: MinHasher,
    slots: Vec<u32>,
    slot_bytes: usize,
}

impl SlotSketcher {
    pub fn new(num_slots: u32, slot_bytes: usize, scheme: Scheme, seed: u64, isa: Isa) -> Self {
        SlotSketcher {
            hasher: MinHasher::new(num_slots, scheme, seed, isa),
            slots: vec![0; num_slots as usize],
            slot_bytes,
        }
    }

    pub fn sketch(&mut self, features: &[u64], weights: &[u32], out: &mut Vec<u8>) {
        self.hasher.sketch(features, weights, &mut self.slots);
        match self.slot_bytes {
            1 => out.extend(self.slots.iter().map(|&slot| slot as u8)),
            2 => out.extend(
                self.slots
                    .iter()
                    .flat_map(|&slot| (slot as u16).to_le_bytes()),
            ),
            _ => out.extend(self.slots.iter().flat_map(|&slot| slot.to_le_bytes())),
        }
    }
}

/// Words of a fingerprint of `bits` bits.
pub fn check_bits(bits: u32) -> Result<usize> {
    match (32..=256).contains(&bits) && bits.is_multiple_of(32) {
        true => Ok(bits.div_ceil(64) as usize),
        false => Err(Failure::parameter(
            "bits",
            format!("{bits} is not a multiple of 32 from 32 to 256"),
        )),
    }
}

pub fn check_slots(num_slots: u32, slot_bits: u32, scheme: &str) -> Result<(Scheme, usize)> {
    invalid_if(!(1..=65_535).contains(&num_slots), "num_slots", || {
        format!("{num_slots} is outside 1..65535")
    })?;
    invalid_if(!matches!(slot_bits, 8 | 16 | 32), "slot_bits", || {
        format!("{slot_bits} is not one of 8, 16, 32")
    })?;
    let names = Scheme::ALL.map(Scheme::name);
    let scheme = parse("scheme", scheme, Scheme::from_name(scheme), &names)?;
    Ok((scheme, (slot_bits / 8) as usize))
}

/// The SimHash fingerprint of one list of features.
#[pyfunction]
#[pyo3(signature = (features, weights, *, bits))]
pub fn simhash_features(
    py: Python<'_>,
    features: &Object<'_>,
    weights: Option<&Object<'_>>,
    bits: u32,
) -> Result<Array> {
    let num_words = check_bits(bits)?;
    take!(features: u64);
    let weights = Input::<u32>::take_like("weights", weights, ("features", features.len()))?;
    let weights = weights.values();
    run(py, 8 * features.len(), |_| {
        let mut words = vec![0; num_words];
        simhash(features, weights, bits, chosen_isa(), &mut words);
        Ok(words.into())
    })
}

/// MinHash signatures of lists of features: list i is `features[offsets[i]:offsets[i + 1]]`.
#[pyfunction]
#[pyo3(signature = (offsets, features, weights, *, num_slots, slot_bits, scheme, seed, threads=1))]
pub fn minhash_features(
    py: Python<'_>,
    offsets: &Object<'_>,
    features: &Object<'_>,
    weights: Option<&Object<'_>>,
    num_slots: u32,
    slot_bits: u32,
    scheme: &str,
    seed: u64,
    threads: usize,
) -> Result<Array> {
    let (scheme, slot_bytes) = check_slots(num_slots, slot_bits, scheme)?;
    take!(offsets: i64, features: u64);
    let weights = Input::<u32>::take_like("weights", weights, ("features", features.len()))?;
    let weights = weights.values();
    let ends_fit = match (offsets.first(), offsets.last()) {
        (Some(&first), Some(&last)) => first >= 0 && last as usize <= features.len(),
        _ => false,
    };
    invalid_if(!ends_fit || !offsets.is_sorted(), "offsets", || {
        format!("not n + 1 rising values inside 0..{}", features.len())
    })?;
    let num_lists = offsets.len() - 1;
    run(
        py,
        8 * features.len() + num_lists * num_slots as usize,
        |cancel| {
            let make_state =
                || SlotSketcher::new(num_slots, slot_bytes, scheme, seed, chosen_isa());
            let parts =
                Run { threads, cancel }.map(num_lists, 256, make_state, |sketcher, range| {
                    let mut out = Vec::new();
                    for i in range {
                        let list = offsets[i] as usize..offsets[i + 1] as usize;
                        let weights = match weights.is_empty() {
                            true => weights,
                            false => &weights[list.clone()],
                        };
                        sketcher.sketch(&features[list], weights, &mut out);
                    }
                    out
                })?;
            Ok(parts.concat().into())
        },
    )
}
