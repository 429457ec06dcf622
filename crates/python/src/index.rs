//! The online index: checks, additions, removals.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use likewise_core::isa::Isa;
use likewise_core::sketch::Scheme;
use likewise_core::verify::Measure;
use likewise_disk::store::{Description, Durability, Evidence, Keeps, Store};
use likewise_index::{
    Documents, Facts, Index, Matching, Method, Opening, Rules, Sketching, TextKind, Verdicts,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::{Array, Input};
use crate::door::{LONG_BYTES, parse_isa, run};
use crate::errors::Failure;
use crate::features::{FeatureRules, GRAIN_BYTES};
use crate::texts::{Texts, text_of};

/// Documents from which a call is long enough to look for Ctrl-C.
const LONG_DOCUMENTS: usize = 4096;

/// A directory of documents that knows which are duplicates of which.
#[pyclass(frozen, module = "likewise._native")]
pub struct OnlineIndex {
    index: Index,
    dir: PathBuf,
    measure: &'static str,
    has_distance: bool,
}

/// What decides a verdict, as Python gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RecipeParts {
    bits: Option<u32>,
    within: Option<u32>,
    num_slots: Option<u32>,
    slot_bits: Option<u32>,
    scheme: Option<String>,
    bands: Option<u32>,
    rows: Option<u32>,
    measure: String,
    threshold: Option<f64>,
    short_threshold: Option<f64>,
    seed: u64,
    takes_tokens: bool,
    recipe_json: String,
    recipe_id: String,
    sketch_id: String,
    store: String,
}

impl RecipeParts {
    fn keeps(&self) -> Result<Keeps, Failure> {
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

    fn rules(&self) -> Result<Rules, Failure> {
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
                threshold: self.threshold.ok_or_else(|| missing("threshold"))?,
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

#[pymethods]
impl OnlineIndex {
    /// Opens the index of a directory; `mode` is create, write or read. `recipe` holds what decides a verdict.
    #[new]
    #[pyo3(signature = (path, mode, recipe, rules, *, sync_seconds=None, ttl_seconds=None, flush_rows=None, isa=None))]
    #[expect(clippy::too_many_arguments, reason = "one call of Python, by keyword")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        recipe: RecipeParts,
        rules: Py<FeatureRules>,
        sync_seconds: Option<f64>,
        ttl_seconds: Option<u64>,
        flush_rows: Option<u32>,
        isa: Option<&str>,
    ) -> Result<Self, Failure> {
        let isa = parse_isa(isa)?;
        let rules_of_recipe = recipe.rules()?;
        let sketching = Sketching {
            rules: rules_of_recipe,
            make_extractor: Arc::new(move |isa: Isa| rules.get().extractor(isa)),
            text_kind: match recipe.takes_tokens {
                true => TextKind::Tokens,
                false => TextKind::Text,
            },
            isa,
        };
        let opening = Opening {
            sketching,
            durability: match sync_seconds {
                None => Durability::Commit,
                Some(seconds) => Durability::Interval(Duration::from_secs_f64(seconds)),
            },
            ttl_s: ttl_seconds,
            flush_rows,
        };
        let description = Description {
            recipe_json: recipe.recipe_json,
            recipe_id: recipe.recipe_id,
            sketch_id: recipe.sketch_id,
            sketch_bytes: rules_of_recipe.sketch_bytes() as u32,
            keeps: rules_of_recipe.keeps,
        };
        let index = run(py, LONG_BYTES, |cancel| {
            let opened = match mode {
                "create" => Index::create(&path, &description, opening),
                "write" => Index::open(&path, opening, cancel),
                _ => Index::open_reader(&path, opening, cancel),
            };
            opened.map_err(|error| Failure::index(error, &path))
        })?;
        Ok(OnlineIndex {
            index,
            dir: path,
            measure: match rules_of_recipe.matching {
                Matching::Verified { measure, .. } => measure.name(),
                Matching::Distance { .. } => "hamming",
            },
            has_distance: rules_of_recipe.zero_distance().is_some(),
        })
    }

    /// What an index was made with: recipe as JSON, its id, what is kept; None where there is no index.
    #[staticmethod]
    fn describe(
        py: Python<'_>,
        path: PathBuf,
    ) -> Result<(String, String, String, &'static str), Failure> {
        run(py, 0, |_| {
            let store =
                Store::open_reader(&path).map_err(|error| Failure::index(error.into(), &path))?;
            let description = store.description().clone();
            let keeps = match description.keeps {
                Keeps::Sketch => "sketch",
                Keeps::Shingles => "shingles",
                Keeps::Text => "text",
            };
            Ok((
                description.recipe_json,
                description.recipe_id,
                description.sketch_id,
                keeps,
            ))
        })
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize, Failure> {
        run(py, 0, |_| self.asked(self.index.num_documents()))
    }

    /// Verdicts on texts, each by itself.
    #[pyo3(signature = (texts, *, threads=1))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        texts: &Texts,
        threads: usize,
    ) -> Result<Bound<'py, PyDict>, Failure> {
        let verdicts = run(py, texts.column.num_bytes, |cancel| {
            let documents = self.sketched(texts, threads, cancel)?;
            self.asked(self.index.check(&documents, threads, cancel))
        })?;
        self.shown(py, verdicts)
    }

    /// Verdicts on sketches, each by itself.
    #[pyo3(signature = (sketches, is_empty, num_features, *, threads=1))]
    fn check_sketches<'py>(
        &self,
        py: Python<'py>,
        sketches: &Bound<'py, PyAny>,
        is_empty: &Bound<'py, PyAny>,
        num_features: &Bound<'py, PyAny>,
        threads: usize,
    ) -> Result<Bound<'py, PyDict>, Failure> {
        let documents = self.taken(sketches, is_empty, num_features)?;
        let verdicts = run(py, long_if(documents.len()), |cancel| {
            self.asked(self.index.check(&documents, threads, cancel))
        })?;
        self.shown(py, verdicts)
    }

    /// Adds texts in one transaction; gives their verdicts.
    #[pyo3(signature = (ids, texts, now_seconds, *, threads=1))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        ids: &Texts,
        texts: &Texts,
        now_seconds: u64,
        threads: usize,
    ) -> Result<Bound<'py, PyDict>, Failure> {
        check_num_ids(ids, texts.column.len())?;
        let verdicts = run(py, texts.column.num_bytes, |cancel| {
            let documents = self.sketched(texts, threads, cancel)?;
            let text_of = |i: usize| texts.column.bytes(i);
            let ids = list_of(ids);
            self.asked(self.index.add(
                &ids,
                &documents,
                Some(&text_of),
                now_seconds,
                threads,
                cancel,
            ))
        })?;
        self.shown(py, verdicts)
    }

    /// Adds sketches in one transaction; gives their verdicts.
    #[pyo3(signature = (ids, sketches, is_empty, num_features, now_seconds, *, threads=1))]
    #[expect(clippy::too_many_arguments, reason = "one call of Python, by keyword")]
    fn add_sketches<'py>(
        &self,
        py: Python<'py>,
        ids: &Texts,
        sketches: &Bound<'py, PyAny>,
        is_empty: &Bound<'py, PyAny>,
        num_features: &Bound<'py, PyAny>,
        now_seconds: u64,
        threads: usize,
    ) -> Result<Bound<'py, PyDict>, Failure> {
        let documents = self.taken(sketches, is_empty, num_features)?;
        check_num_ids(ids, documents.len())?;
        let verdicts = run(py, long_if(documents.len()), |cancel| {
            let ids = list_of(ids);
            let index = &self.index;
            self.asked(index.add(&ids, &documents, None, now_seconds, threads, cancel))
        })?;
        self.shown(py, verdicts)
    }

    /// The document of an id as (row, kept id, similarity, distance, arrival in seconds), or None.
    #[allow(clippy::type_complexity)]
    fn get(
        &self,
        py: Python<'_>,
        doc_id: &Bound<'_, PyString>,
    ) -> Result<Option<(u32, Option<String>, f64, Option<u16>, u64)>, Failure> {
        let doc_id = text_of(doc_id)?;
        let found = run(py, 0, |_| self.asked(self.index.get(&doc_id)))?;
        Ok(found.map(|(row, stored, kept_id)| {
            let evidence = stored.verdict;
            (
                row,
                kept_id,
                evidence.map_or(f64::NAN, |evidence| evidence.similarity),
                evidence.and_then(|evidence| evidence.distance),
                stored.arrival_s,
            )
        }))
    }

    /// Id of the kept document of a group, whether it is gone, ids of the members.
    fn group(
        &self,
        py: Python<'_>,
        doc_id: &Bound<'_, PyString>,
    ) -> Result<(String, bool, Vec<String>), Failure> {
        let doc_id = text_of(doc_id)?;
        let group = run(py, 0, |_| self.asked(self.index.group(&doc_id)))?;
        Ok((group.leader_id, group.is_leader_gone, group.member_ids))
    }

    /// Kept documents that match one text, best first: (id, similarity, distance).
    fn neighbours(
        &self,
        py: Python<'_>,
        texts: &Texts,
        limit: usize,
    ) -> Result<Vec<(String, f64, Option<u16>)>, Failure> {
        let found = run(py, texts.column.num_bytes, |cancel| {
            let documents = self.sketched(texts, 1, cancel)?;
            self.asked(self.index.neighbours(&documents, limit, cancel))
        })?;
        Ok(found.into_iter().map(listed).collect())
    }

    /// Kept documents near one sketch, nearest first: (id, similarity, distance).
    fn neighbours_of_sketch(
        &self,
        py: Python<'_>,
        sketches: &Bound<'_, PyAny>,
        is_empty: &Bound<'_, PyAny>,
        num_features: &Bound<'_, PyAny>,
        limit: usize,
    ) -> Result<Vec<(String, f64, Option<u16>)>, Failure> {
        let documents = self.taken(sketches, is_empty, num_features)?;
        let found = run(py, 0, |cancel| {
            self.asked(self.index.neighbours(&documents, limit, cancel))
        })?;
        Ok(found.into_iter().map(listed).collect())
    }

    /// Removes a document: (whether it was kept, ids promoted, pairs of ids moved and of their kept document).
    #[allow(clippy::type_complexity)]
    fn remove(
        &self,
        py: Python<'_>,
        doc_id: &Bound<'_, PyString>,
    ) -> Result<(bool, Vec<String>, Vec<(String, String)>), Failure> {
        let doc_id = text_of(doc_id)?;
        let removed = run(py, 0, |_| self.asked(self.index.remove(&doc_id)))?;
        Ok((
            removed.removal.was_kept,
            removed.promoted_ids,
            removed.moved_ids,
        ))
    }

    /// Sizes and counts.
    fn facts<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>, Failure> {
        let facts = run(py, 0, |_| self.asked(self.index.facts()))?;
        shown_facts(py, facts)
    }

    /// What is wrong, in words.
    #[pyo3(signature = (full=false))]
    fn verify(&self, py: Python<'_>, full: bool) -> Result<Vec<String>, Failure> {
        run(py, LONG_BYTES, |cancel| {
            self.asked(self.index.verify(full, cancel))
        })
    }

    /// Makes one segment of all rows and joins small chunks; gives how many chunks there are less.
    #[pyo3(signature = (*, threads=1))]
    fn compact(&self, py: Python<'_>, threads: usize) -> Result<u64, Failure> {
        run(py, LONG_BYTES, |cancel| {
            self.asked(self.index.compact(threads, cancel))
        })
    }

    /// Throws segments away and builds them again.
    #[pyo3(signature = (*, threads=1))]
    fn rebuild(&self, py: Python<'_>, threads: usize) -> Result<(), Failure> {
        run(py, LONG_BYTES, |cancel| {
            self.asked(self.index.rebuild(threads, cancel))
        })
    }

    /// Copies the truth to a new directory.
    fn snapshot(&self, py: Python<'_>, path: PathBuf) -> Result<(), Failure> {
        run(py, LONG_BYTES, |cancel| {
            self.asked(self.index.snapshot(&path, cancel))
        })
    }

    /// Calls `write` with lines of JSON, one for each document that is not gone, in order of arrival.
    fn export(&self, py: Python<'_>, write: &Bound<'_, PyAny>) -> Result<(), Failure> {
        let write = write.clone().unbind();
        run(py, LONG_BYTES, |cancel| {
            let mut lines = String::new();
            let result = self.index.scan(|chunk, store| {
                if cancel.load(std::sync::atomic::Ordering::Relaxed) {
                    return Err(likewise_disk::Error::Cancelled);
                }
                crate::index_export::export_chunk(chunk, store, self.measure, &mut lines)?;
                let written = Python::attach(|py| write.call1(py, (lines.as_str(),)).map(|_| ()));
                lines.clear();
                written.map_err(|error| {
                    likewise_disk::Error::io("write", std::io::Error::other(error.to_string()))
                })
            });
            self.asked(result)
        })
    }

    /// Closes the index; again, nothing.
    fn close(&self, py: Python<'_>) -> Result<(), Failure> {
        run(py, 0, |_| self.asked(self.index.close()))
    }
}

impl OnlineIndex {
    fn asked<T>(&self, result: Result<T, likewise_index::Error>) -> Result<T, Failure> {
        result.map_err(|error| Failure::index(error, &self.dir))
    }

    fn sketched(
        &self,
        texts: &Texts,
        threads: usize,
        cancel: &std::sync::atomic::AtomicBool,
    ) -> Result<Documents, Failure> {
        self.asked(self.index.guard())?;
        let column = texts.column.as_ref();
        let ranges = column.ranges(GRAIN_BYTES);
        let sketching = self.index.sketching();
        Ok(sketching.documents(&ranges, |i| column.document(i), threads, cancel)?)
    }

    fn taken(
        &self,
        sketches: &Bound<'_, PyAny>,
        is_empty: &Bound<'_, PyAny>,
        num_features: &Bound<'_, PyAny>,
    ) -> Result<Documents, Failure> {
        let sketches = Input::<u8>::take("sketches", sketches)?;
        let is_empty = Input::<u8>::take("is_empty", is_empty)?;
        let num_features = Input::<u32>::take("num_features", num_features)?;
        let (sketches, num_features) = (sketches.values(), num_features.values());
        let rules = self.index.sketching().rules;
        let shapes: Vec<u8> = is_empty
            .values()
            .iter()
            .map(|&empty| 2 * u8::from(empty != 0))
            .collect();
        if sketches.len() != shapes.len() * rules.sketch_bytes()
            || num_features.len() != shapes.len()
        {
            return Err(Failure::parameter("sketches", "not one for each document"));
        }
        let short = (0..shapes.len()).find(|&i| shapes[i] == 0 && rules.is_short(num_features[i]));
        if let Some(row) = short {
            return Err(Failure::row(
                row,
                format!(
                    "a document of {} features is also measured by these, which a sketch has not; give its text",
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

    fn shown<'py>(
        &self,
        py: Python<'py>,
        verdicts: Verdicts,
    ) -> Result<Bound<'py, PyDict>, Failure> {
        let evidence = &verdicts.evidence;
        let is_new: Vec<u8> = evidence.iter().map(|e| u8::from(e.is_none())).collect();
        let of = |value: fn(&Evidence) -> f64| -> Vec<f64> {
            evidence
                .iter()
                .map(|e| e.as_ref().map_or(f64::NAN, value))
                .collect()
        };
        let mut kept = verdicts.kept_ids.iter();
        let kept_ids: Vec<Option<Bound<'py, PyString>>> = evidence
            .iter()
            .map(|e| e.and_then(|_| kept.next()).map(|id| PyString::new(py, id)))
            .collect();
        let distances = self.has_distance.then(|| -> Vec<i64> {
            let distance = |e: &Option<Evidence>| e.and_then(|e| e.distance).map_or(-1, i64::from);
            evidence.iter().map(distance).collect()
        });
        let columns = PyDict::new(py);
        columns.set_item("is_new", Py::new(py, Array::from(is_new))?)?;
        columns.set_item("kept_ids", kept_ids)?;
        columns.set_item(
            "similarity",
            Py::new(py, Array::from(of(|e| e.similarity)))?,
        )?;
        let distances = distances
            .map(|all| Py::new(py, Array::from(all)))
            .transpose()?;
        columns.set_item("distance", distances)?;
        let rows: Vec<i64> = verdicts
            .rows
            .iter()
            .map(|&row| i64::from(row) + 1)
            .collect();
        let is_checked = rows.is_empty() && !evidence.is_empty();
        let seq = (!is_checked)
            .then(|| Py::new(py, Array::from(rows)))
            .transpose()?;
        columns.set_item("seq", seq)?;
        let added: Vec<u8> = verdicts
            .added
            .iter()
            .map(|&added| u8::from(added))
            .collect();
        columns.set_item("added", Py::new(py, Array::from(added))?)?;
        Ok(columns)
    }
}

fn listed(neighbour: likewise_index::Neighbour) -> (String, f64, Option<u16>) {
    let evidence = neighbour.evidence;
    (neighbour.id, evidence.similarity, evidence.distance)
}

fn list_of(ids: &Texts) -> Vec<&str> {
    (0..ids.column.len()).map(|i| ids.column.get(i)).collect()
}

fn check_num_ids(ids: &Texts, num: usize) -> Result<(), Failure> {
    match ids.column.len() == num {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "{} ids for {num} documents",
            ids.column.len()
        ))),
    }
}

/// Bytes that stand for the work on so many sketches.
fn long_if(num: usize) -> usize {
    if num >= LONG_DOCUMENTS { LONG_BYTES } else { 0 }
}

fn shown_facts(py: Python<'_>, facts: Facts) -> Result<Bound<'_, PyDict>, Failure> {
    let shown = PyDict::new(py);
    shown.set_item("num_documents", facts.num_documents)?;
    shown.set_item("num_rows", facts.num_rows)?;
    shown.set_item("segment_rows", facts.segment_rows)?;
    shown.set_item("segment_bytes", facts.segment_bytes)?;
    shown.set_item("num_in_memory", facts.num_in_memory)?;
    shown.set_item("num_late", facts.num_late)?;
    shown.set_item("expired_below", facts.expired_below)?;
    shown.set_item("num_events", facts.last_event)?;
    shown.set_item("num_built", facts.num_built)?;
    shown.set_item("num_rebuilt", facts.num_rebuilt)?;
    shown.set_item("is_building", facts.is_building)?;
    shown.set_item("build_error", facts.build_error)?;
    shown.set_item("database_bytes", facts.sizes.database_bytes)?;
    shown.set_item("free_bytes", facts.sizes.free_bytes)?;
    shown.set_item("log_bytes", facts.sizes.log_bytes)?;
    shown.set_item("num_chunks", facts.sizes.num_chunks)?;
    shown.set_item("num_content_blocks", facts.sizes.num_content_blocks)?;
    shown.set_item("sqlite_version", Store::sqlite_version())?;
    Ok(shown)
}
