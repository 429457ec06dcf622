//! Features of texts held between two passes: counted in the first, weighed and sketched in the second.

use likewise_core::features::{FeatureView, ShardedBuilder, ShardedDocuments, add_salt, digest};
use likewise_core::parallel::map_ranges;
use pyo3::prelude::*;

use crate::door::{parse_isa, run};
use crate::errors::Failure;
use crate::features::FeatureRules;
use crate::sketch::{Part, SketchBatch, SlotSketcher, check_slots};

/// Distinct features of n texts, and in the end their weights.
#[pyclass(frozen, module = "likewise._native")]
pub struct HeldFeatures {
    pub parts: Vec<HeldPart>,
}

/// Features of consecutive texts, cut by one thread.
pub struct HeldPart {
    pub documents: ShardedDocuments,
    shapes: Vec<u8>,
    /// One per text if texts have values, otherwise empty: features are held without the value, as weights are counted.
    salts: Vec<u64>,
}

/// Collects a part, reusing its memory.
#[derive(Default)]
pub struct HeldBuilder {
    documents: ShardedBuilder,
    shapes: Vec<u8>,
    salts: Vec<u64>,
}

impl HeldBuilder {
    pub fn push(&mut self, view: FeatureView<'_>, is_new: bool) {
        self.documents.push(view.features, is_new);
        self.shapes.push(view.shape as u8);
        self.salts.extend(view.salt);
    }

    /// Returns the pushed texts, and starts over.
    pub fn take(&mut self) -> HeldPart {
        HeldPart {
            documents: self.documents.take(),
            shapes: self.shapes.drain(..).collect(),
            salts: self.salts.drain(..).collect(),
        }
    }
}

impl HeldPart {
    /// The number of texts.
    pub fn num_texts(&self) -> usize {
        self.documents.len()
    }

    /// Calls `work` with the number, features and weights of each text, as an extractor makes them of the text.
    pub fn for_each(&self, mut work: impl FnMut(usize, &[u64], &[u32])) {
        let mut salted = Vec::new();
        self.documents.for_each(|i, unsalted, weights| {
            let mut features = unsalted;
            if let Some(&salt) = self.salts.get(i) {
                salted.clear();
                salted.extend_from_slice(features);
                add_salt(salt, &mut salted);
                features = &salted;
            }
            work(i, features, weights);
        });
    }
}

impl HeldFeatures {
    /// The features of consecutive texts, with their weights.
    pub fn weighed(&self) -> Result<&[HeldPart], Failure> {
        if !self.parts.iter().all(|part| part.documents.is_weighed()) {
            return Err(Failure::parameter("held", "features are not weighed yet"));
        }
        Ok(&self.parts)
    }
}

#[pymethods]
impl HeldFeatures {
    /// Memory that they take, including weights.
    #[getter]
    fn num_bytes(&self) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| part.documents.num_bytes()).sum()
    }
}

/// MinHash signatures of held features, with digests: what `sketch_minhash` makes of their texts with weights `idf`.
#[pyfunction]
#[pyo3(signature = (held, rules, *, num_slots, slot_bits, scheme, threads=1, isa=None))]
#[allow(clippy::too_many_arguments)]
pub fn sketch_held(
    py: Python<'_>,
    held: &HeldFeatures,
    rules: &FeatureRules,
    num_slots: u32,
    slot_bits: u32,
    scheme: &str,
    threads: usize,
    isa: Option<&str>,
) -> Result<SketchBatch, Failure> {
    let isa = parse_isa(isa)?;
    let (scheme, slot_bytes) = check_slots(num_slots, slot_bits, scheme)?;
    let seed = rules.rules.seed;
    let held = held.weighed()?;
    run(py, usize::MAX, |cancel| {
        let make_state = || SlotSketcher::new(num_slots, slot_bytes, scheme, seed, isa);
        let parts = map_ranges(
            held.len(),
            1,
            threads,
            cancel,
            make_state,
            |sketcher, which| {
                let mut part = Part::default();
                let held = &held[which.start];
                held.for_each(|i, features, weights| {
                    sketcher.sketch(features, weights, &mut part.sketches);
                    part.num_features.push(features.len() as u32);
                    part.shapes.push(held.shapes[i]);
                    part.digests.extend(digest(features, weights));
                });
                part
            },
        )?;
        let mut all = Part::default();
        for part in parts {
            all.append(part);
        }
        Ok(all)
    })?
    .into_batch(py)
}
