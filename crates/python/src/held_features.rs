//! Features of texts held between two passes: counted in the first, weighed and sketched in the second.

use std::sync::OnceLock;

use likewise_core::features::{FeatureView, add_salt, digest};
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;
use pyo3::prelude::*;

use crate::door::{parse_isa, run};
use crate::errors::Failure;
use crate::features::FeatureRules;
use crate::sketch::{Part, SketchBatch, SlotSketcher, check_slots};
use crate::weights::WeightTable;

/// Number of features weighed at once: each temporarily takes 13 bytes.
const WEIGHED_AT_ONCE: usize = 1 << 20;

/// Distinct features of n texts, and in the end their weights.
#[pyclass(frozen, module = "likewise._native")]
pub struct HeldFeatures {
    parts: Vec<HeldPart>,
}

/// Features of consecutive texts, cut by one thread.
#[derive(Clone, Default)]
pub struct HeldPart {
    features: Vec<u64>,
    /// End of the features of each text.
    ends: Vec<u32>,
    shapes: Vec<u8>,
    /// One per text if texts have values, otherwise empty: features are held without the value, as weights are counted.
    salts: Vec<u64>,
    weights: OnceLock<Vec<u8>>,
}

impl HeldPart {
    pub fn push(&mut self, view: FeatureView<'_>) {
        self.features.extend_from_slice(view.features);
        self.ends.push(self.features.len() as u32);
        self.shapes.push(view.shape as u8);
        self.salts.extend(view.salt);
    }

    /// Returns the pushed features in exactly sized memory, and starts over in its own.
    pub fn take(&mut self) -> Self {
        let taken = self.clone();
        self.features.clear();
        self.ends.clear();
        self.shapes.clear();
        self.salts.clear();
        taken
    }

    /// The number of texts.
    pub fn num_texts(&self) -> usize {
        self.ends.len()
    }

    /// The features and weights of text i, as an extractor makes them of the text.
    pub fn features<'a>(&'a self, i: usize, scratch: &'a mut Scratch) -> (&'a [u64], &'a [u32]) {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        let range = start as usize..self.ends[i] as usize;
        let stored = self.weights.get().map_or(&[][..], |weights| weights);
        scratch.weights.clear();
        scratch.weights.extend(
            stored[range.clone()]
                .iter()
                .map(|&weight| u32::from(weight)),
        );
        let Some(&salt) = self.salts.get(i) else {
            return (&self.features[range], &scratch.weights);
        };
        scratch.salted.clear();
        scratch.salted.extend_from_slice(&self.features[range]);
        add_salt(salt, &mut scratch.salted);
        (&scratch.salted, &scratch.weights)
    }
}

/// Scratch space for the features of one text.
#[derive(Default)]
pub struct Scratch {
    weights: Vec<u32>,
    salted: Vec<u64>,
}

impl HeldFeatures {
    pub fn new(parts: Vec<HeldPart>) -> Self {
        HeldFeatures { parts }
    }

    /// The features of consecutive texts, with their weights.
    pub fn weighed(&self) -> Result<&[HeldPart], Failure> {
        if self.parts.iter().any(|part| part.weights.get().is_none()) {
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
        let of_part = |part: &HeldPart| 9 * part.features.len() + 5 * part.ends.len();
        self.parts.iter().map(of_part).sum()
    }
}

/// Weighs all held features by a table: far faster than text by text if the table is larger than the caches.
#[pyfunction]
#[pyo3(signature = (held, table, *, threads=1))]
pub fn weigh_held(
    py: Python<'_>,
    held: Vec<Py<HeldFeatures>>,
    table: &WeightTable,
    threads: usize,
) -> Result<(), Failure> {
    let table = table.feature_weights().table;
    let mut groups: Vec<Vec<&HeldPart>> = Vec::new();
    let mut room = 0;
    for part in held.iter().flat_map(|one| &one.get().parts) {
        if room < part.features.len() {
            groups.push(Vec::new());
            room = WEIGHED_AT_ONCE.max(part.features.len());
        }
        room -= part.features.len();
        if let Some(group) = groups.last_mut() {
            group.push(part);
        }
    }
    run(py, usize::MAX, |cancel| {
        map_ranges(
            groups.len(),
            1,
            threads,
            cancel,
            || (),
            |(), which| {
                let group = &groups[which.start];
                let features: Vec<&[u64]> = group.iter().map(|part| &*part.features).collect();
                for (part, weights) in group.iter().zip(table.weigh_many(&features, Isa::best())) {
                    part.weights.get_or_init(|| weights);
                }
            },
        )?;
        Ok(())
    })
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
        let make_state = || {
            let sketcher = SlotSketcher::new(num_slots, slot_bytes, scheme, seed, isa);
            (sketcher, Scratch::default())
        };
        let parts = map_ranges(
            held.len(),
            1,
            threads,
            cancel,
            make_state,
            |(sketcher, scratch), which| {
                let mut part = Part::default();
                let held = &held[which.start];
                for i in 0..held.num_texts() {
                    let (features, weights) = held.features(i, scratch);
                    sketcher.sketch(features, weights, &mut part.sketches);
                    part.num_features.push(features.len() as u32);
                    part.shapes.push(held.shapes[i]);
                    part.digests.extend(digest(features, weights));
                }
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
