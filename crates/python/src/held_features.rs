//! Features of texts that are held between two passes: counted in the first, weighed and sketched in the second.

use std::sync::OnceLock;

use likewise_core::features::{FeatureView, digest};
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;
use pyo3::prelude::*;

use crate::door::{parse_isa, run};
use crate::errors::Failure;
use crate::features::FeatureRules;
use crate::sketch::{Part, SketchBatch, SlotSketcher, check_slots};
use crate::weights::WeightTable;

/// Features that are weighed at once: each takes 12 bytes meanwhile.
const WEIGHED_AT_ONCE: usize = 2 << 20;
/// Documents that one thread sketches at a time.
const GRAIN: usize = 256;

/// Distinct features of n texts, each once, and in the end their weights.
#[pyclass(frozen, module = "likewise._native")]
#[derive(Default)]
pub struct HeldFeatures {
    features: Vec<u64>,
    /// Where the features of each text end.
    ends: Vec<usize>,
    shapes: Vec<u8>,
    weights: OnceLock<Vec<u8>>,
}

impl HeldFeatures {
    pub fn push(&mut self, view: FeatureView<'_>) {
        self.features.extend_from_slice(view.features);
        self.ends.push(self.features.len());
        self.shapes.push(view.shape as u8);
    }

    /// Puts parts end to end.
    pub fn concat(parts: Vec<HeldFeatures>) -> Self {
        let mut all = HeldFeatures::default();
        all.features
            .reserve_exact(parts.iter().map(|part| part.features.len()).sum());
        for part in parts {
            let before = all.features.len();
            all.features.extend(part.features);
            all.ends.extend(part.ends.iter().map(|end| before + end));
            all.shapes.extend(part.shapes);
        }
        all
    }
}

#[pymethods]
impl HeldFeatures {
    /// Memory that it takes, with weights.
    #[getter]
    fn num_bytes(&self) -> usize {
        9 * (self.features.len() + self.ends.len())
    }
}

/// Weighs held features by a table, all together: far faster than text by text where the table is larger than caches.
#[pyfunction]
#[pyo3(signature = (held, table, *, threads=1))]
pub fn weigh_held(
    py: Python<'_>,
    held: Vec<Py<HeldFeatures>>,
    table: &WeightTable,
    threads: usize,
) -> Result<(), Failure> {
    let held: Vec<&HeldFeatures> = held.iter().map(Py::get).collect();
    let table = table.feature_weights().table;
    let mut groups: Vec<Vec<&HeldFeatures>> = Vec::new();
    let mut room = 0;
    for one in held {
        if room < one.features.len() {
            groups.push(Vec::new());
            room = WEIGHED_AT_ONCE.max(one.features.len());
        }
        room -= one.features.len();
        if let Some(group) = groups.last_mut() {
            group.push(one);
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
                let features: Vec<&[u64]> = group.iter().map(|one| &*one.features).collect();
                for (one, weights) in group.iter().zip(table.weigh_many(&features, Isa::best())) {
                    one.weights.get_or_init(|| weights);
                }
            },
        )?;
        Ok(())
    })
}

/// MinHash signatures of held features, with digests: what `sketch_minhash` makes of their texts by weights `idf`.
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
    let stored = held
        .weights
        .get()
        .ok_or_else(|| Failure::parameter("held", "its features are not weighed yet"))?;
    run(py, 8 * held.features.len(), |cancel| {
        let make_state = || {
            let sketcher = SlotSketcher::new(num_slots, slot_bytes, scheme, seed, isa);
            (sketcher, Vec::new())
        };
        let parts = map_ranges(
            held.ends.len(),
            GRAIN,
            threads,
            cancel,
            make_state,
            |(sketcher, weights), range| {
                let mut part = Part::default();
                for i in range {
                    let start = if i == 0 { 0 } else { held.ends[i - 1] };
                    let features = &held.features[start..held.ends[i]];
                    weights.clear();
                    weights.extend(stored[start..held.ends[i]].iter().map(|&w| u32::from(w)));
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
