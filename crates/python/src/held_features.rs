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
    if !held.parts.iter().all(|part| part.documents.is_weighed()) {
        return Err(Failure::parameter("held", "features are not weighed yet"));
    }
    run(py, usize::MAX, |cancel| {
        let make_state = || {
            let sketcher = SlotSketcher::new(num_slots, slot_bytes, scheme, seed, isa);
            (sketcher, Vec::new())
        };
        let parts = map_ranges(
            held.parts.len(),
            1,
            threads,
            cancel,
            make_state,
            |(sketcher, salted), which| {
                let mut part = Part::default();
                let held = &held.parts[which.start];
                held.documents.for_each(|i, unsalted, weights| {
                    let mut features = unsalted;
                    if let Some(&salt) = held.salts.get(i) {
                        salted.clear();
                        salted.extend_from_slice(features);
                        add_salt(salt, salted);
                        features = salted;
                    }
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
