//! The recipe of an index, from Python.

use std::collections::BTreeMap;
use std::path::PathBuf;

use likewise_core::sketch::Scheme;
use likewise_core::verify::{Measure, Required};
use likewise_disk::store::{Description, Keeps, Store};
use likewise_index::{Documents, Matching, Method, Rules};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::take;
use crate::door::{Bytes, Object, run};
use crate::errors::{Failure, Result};
use crate::verify::name_rules;

/// What determines a verdict, from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RecipeParts {
    bits: Option<u32>,
    within: Option<u32>,
    num_slots: Option<u32>,
    slot_bits: Option<u32>,
    scheme: Option<String>,
    bands: Option<u32>,
    rows: Option<u32>,
    measure: String,
    threshold: Option<f64>,
    short_margin: f64,
    names: Option<(bool, bool, u32)>,
    identifiers: bool,
    short_threshold: Option<f64>,
    seed: u64,
    pub takes_tokens: bool,
    recipe_json: String,
    recipe_id: String,
    sketch_id: String,
    store: String,
    attached: BTreeMap<String, Vec<u8>>,
}

/// Data attached to the index in a directory under a name when it was created; None if there is none.
#[pyfunction]
pub fn index_attached<'py>(
    py: Python<'py>,
    path: PathBuf,
    name: &str,
) -> Result<Option<Bytes<'py>>> {
    let found = run(py, 0, |_| {
        let attached = Store::open_reader(&path).and_then(|store| store.attached(name));
        attached.map_err(|error| Failure::index(error.into(), &path))
    })?;
    Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
}

/// The Python name of what is stored of a document.
pub fn name_of(keeps: Keeps) -> &'static str {
    match keeps {
        Keeps::Sketch => "sketch",
        Keeps::Shingles => "shingles",
        Keeps::Text => "text",
    }
}

impl RecipeParts {
    pub fn keeps(&self) -> Result<Keeps> {
        match self.store.as_str() {
            "sketch" => Ok(Keeps::Sketch),
            "shingles" => Ok(Keeps::Shingles),
            "text" => Ok(Keeps::Text),
            other => Err(Failure::parameter(
                "store",
                format!("{other:?} is not one of sketch, shingles, text"),
            )),
        }
    }

    /// The description of the store of such an index.
    pub fn description(self, rules: &Rules) -> Description {
        Description {
            recipe_json: self.recipe_json,
            recipe_id: self.recipe_id,
            sketch_id: self.sketch_id,
            sketch_bytes: rules.sketch_bytes() as u32,
            keeps: rules.keeps,
            attached: self.attached,
        }
    }

    pub fn rules(&self) -> Result<Rules> {
        let missing = |name: &str| Failure::parameter(name, "the recipe has none");
        let method = match (self.bits, self.num_slots) {
            (Some(bits), _) => Method::Simhash {
                bits,
                within: self.within.ok_or_else(|| missing("within"))?,
            },
            (None, Some(num_slots)) => Method::Minhash {
                num_slots,
                slot_bytes: self.slot_bits.ok_or_else(|| missing("slot_bits"))? / 8,
                scheme: self
                    .scheme
                    .as_deref()
                    .and_then(Scheme::from_name)
                    .ok_or_else(|| missing("scheme"))?,
                bands: self.bands.ok_or_else(|| missing("bands"))?,
                rows: self.rows.ok_or_else(|| missing("rows"))?,
            },
            (None, None) => return Err(missing("bits")),
        };
        let matching = match Measure::from_name(&self.measure) {
            Some(measure) => Matching::Verified {
                measure,
                required: Required {
                    threshold: self.threshold.ok_or_else(|| missing("threshold"))?,
                    short_margin: self.short_margin,
                    names: name_rules(self.names),
                    identifiers: self.identifiers,
                },
            },
            None => Matching::Distance {
                short_threshold: self
                    .short_threshold
                    .ok_or_else(|| missing("short_threshold"))?,
            },
        };
        Ok(Rules {
            method,
            matching,
            seed: self.seed,
            keeps: self.keeps()?,
        })
    }
}

/// Documents known only by their sketches.
pub fn sketched_documents(
    rules: &Rules,
    sketches: &Object<'_>,
    is_empty: &Object<'_>,
    num_features: &Object<'_>,
) -> Result<Documents> {
    take!(sketches: u8, is_empty: u8, num_features: u32);
    let shapes: Vec<u8> = is_empty
        .iter()
        .map(|&empty| 2 * u8::from(empty != 0))
        .collect();
    if sketches.len() != shapes.len() * rules.sketch_bytes() || num_features.len() != shapes.len() {
        return Err(Failure::parameter("sketches", "not one for each document"));
    }
    let short = (0..shapes.len()).find(|&i| shapes[i] == 0 && rules.is_short(num_features[i]));
    if let Some(row) = short {
        return Err(Failure::row(
            row,
            format!(
                "a document with {} features is also compared by its features, which a sketch does not contain; pass its text",
                num_features[row]
            ),
        ));
    }
    Ok(Documents::of_sketches(
        sketches.to_vec(),
        shapes,
        num_features.to_vec(),
    ))
}
