//! Arguments of an index: documents, their ids, and how many neighbors are wanted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use likewise_core::features::Extractor;
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::sketch::Scheme;
use likewise_core::text::{Document, OwnTokens};
use likewise_core::verify::{Measure, Required};
use likewise_disk::Error;
use likewise_disk::store::{Chunk, Content, Description, Evidence, Keeps, Store};
use likewise_index::{
    Documents, Facts, Matching, Method, Neighbor, Rules, Sketching, TextKind, Verdicts,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::{Array, take};
use crate::column::GRAIN_BYTES;
use crate::door::{Dict, LONG_BYTES, Object, Str, chosen_isa, dict_of, run};
use crate::errors::{Failure, Result};
use crate::texts::Texts;
use crate::verify::name_rules;

/// Number of documents from which a call is long enough to check for Ctrl-C.
const LONG_DOCUMENTS: usize = 4096;

/// The ids one by one.
pub fn list_of(ids: &Texts) -> Vec<&str> {
    (0..ids.column.len()).map(|i| ids.column.get(i)).collect()
}

/// Rejects ids unless there is one per document.
pub fn check_num_ids(ids: &Texts, num: usize) -> Result<()> {
    match ids.column.len() == num {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "{} ids for {num} documents",
            ids.column.len()
        ))),
    }
}

/// The size, in bytes, that represents the work on `num` sketches.
pub fn long_if(num: usize) -> usize {
    if num >= LONG_DOCUMENTS { LONG_BYTES } else { 0 }
}

/// Documents: texts, or their sketches with which of them are empty and the numbers of their features.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Texts(Py<Texts>),
    Sketches(Object<'py>, Object<'py>, Object<'py>),
}

impl Given<'_> {
    /// Copies sketches, so that the interpreter lock can be released.
    pub fn taken(self, rules: &Rules) -> Result<Taken> {
        Ok(match self {
            Given::Texts(texts) => Taken::Texts(texts),
            Given::Sketches(sketches, is_empty, num_features) => Taken::Sketched(
                sketched_documents(rules, &sketches, &is_empty, &num_features)?.into(),
            ),
        })
    }
}

/// Documents that need no interpreter lock.
pub enum Taken {
    Texts(Py<Texts>),
    Sketched(Box<Documents>),
}

impl Taken {
    pub fn len(&self) -> usize {
        match self {
            Taken::Texts(texts) => texts.get().column.len(),
            Taken::Sketched(documents) => documents.len(),
        }
    }

    /// The size, in bytes, of the work on them.
    pub fn num_bytes(&self) -> usize {
        match self {
            Taken::Texts(texts) => texts.get().column.num_bytes,
            Taken::Sketched(documents) => long_if(documents.len()),
        }
    }

    /// The documents, sketched.
    pub fn sketched(&self, sketching: &Sketching, run: Run<'_>) -> Result<Cow<'_, Documents>> {
        match self {
            Taken::Texts(texts) => {
                let column = texts.get().column.as_ref();
                let ranges = column.ranges(GRAIN_BYTES);
                let document = |i| column.document(i);
                let documents = sketching.documents(&ranges, document, run)?;
                Ok(Cow::Owned(documents))
            }
            Taken::Sketched(documents) => Ok(Cow::Borrowed(documents)),
        }
    }
}

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
pub fn index_attached(py: Python<'_>, path: PathBuf, name: &str) -> Result<Option<Vec<u8>>> {
    run(py, 0, |_| {
        let attached = Store::open_reader(&path).and_then(|store| store.attached(name));
        attached.map_err(|error| Failure::index(error.into(), &path))
    })
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

    /// How documents are sketched by rules of an index, with extractors that `make` makes.
    pub fn sketching(
        &self,
        rules: Rules,
        make: impl Fn(Isa) -> Extractor + Send + Sync + 'static,
    ) -> Sketching {
        Sketching {
            rules,
            make_extractor: Arc::new(make),
            text_kind: match self.takes_tokens {
                true => TextKind::Tokens,
                false => TextKind::Text,
            },
            isa: chosen_isa(),
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

/// Kept id (None for a new document), similarity, distance.
pub type ShownVerdict = (Option<String>, f64, Option<u16>);

/// Id, similarity, distance, whether it matches.
pub type ShownNeighbor = (String, f64, Option<u16>, bool);

/// The only verdict.
pub fn shown_verdict(mut verdicts: Verdicts) -> ShownVerdict {
    match verdicts.evidence.first() {
        Some(Some(evidence)) => (
            verdicts.kept_ids.pop(),
            evidence.similarity,
            evidence.distance,
        ),
        _ => (None, f64::NAN, None),
    }
}

pub fn shown_verdicts<'py>(
    py: Python<'py>,
    verdicts: Verdicts,
    has_distance: bool,
) -> Result<Dict<'py>> {
    let evidence = &verdicts.evidence;
    let is_new: Vec<u8> = evidence.iter().map(|e| u8::from(e.is_none())).collect();
    let of = |value: fn(&Evidence) -> f64| -> Vec<f64> {
        evidence
            .iter()
            .map(|e| e.as_ref().map_or(f64::NAN, value))
            .collect()
    };
    let mut kept = verdicts.kept_ids.iter();
    let kept_ids: Vec<Option<Str<'py>>> = evidence
        .iter()
        .map(|e| e.and_then(|_| kept.next()).map(|id| PyString::new(py, id)))
        .collect();
    let distances = has_distance.then(|| -> Vec<i64> {
        let distance = |e: &Option<Evidence>| e.and_then(|e| e.distance).map_or(-1, i64::from);
        evidence.iter().map(distance).collect()
    });
    let columns = PyDict::new(py);
    columns.set_item("is_new", Array::from(is_new))?;
    columns.set_item("kept_ids", kept_ids)?;
    columns.set_item("similarity", Array::from(of(|e| e.similarity)))?;
    columns.set_item("distance", distances.map(Array::from))?;
    let rows: Vec<i64> = verdicts
        .rows
        .iter()
        .map(|&row| i64::from(row) + 1)
        .collect();
    let is_checked = rows.is_empty() && !evidence.is_empty();
    columns.set_item("seq", (!is_checked).then(|| Array::from(rows)))?;
    let added: Vec<u8> = verdicts
        .added
        .iter()
        .map(|&added| u8::from(added))
        .collect();
    columns.set_item("added", Array::from(added))?;
    Ok(columns)
}

/// Neighbors of each document.
pub fn shown_neighbors(all: Vec<Vec<Neighbor>>) -> Vec<Vec<ShownNeighbor>> {
    let shown = |found: Neighbor| {
        let evidence = found.evidence;
        (
            found.id,
            evidence.similarity,
            evidence.distance,
            found.matches,
        )
    };
    let of_one = |found: Vec<Neighbor>| found.into_iter().map(shown).collect();
    all.into_iter().map(of_one).collect()
}

pub fn shown_facts(py: Python<'_>, facts: Facts) -> Result<Dict<'_>> {
    let shown = dict_of!(py, facts; num_documents, num_rows, segment_rows, segment_bytes, num_in_memory, num_late,
        expired_below, num_events, num_built, num_rebuilt, is_building, build_error, loss, copy_warning, clock_warning);
    let sizes = dict_of!(py, facts.sizes; database_bytes, free_bytes, log_bytes, num_chunks, num_content_blocks);
    shown.update(sizes.as_mapping())?;
    shown.set_item("sqlite_version", Store::sqlite_version())?;
    Ok(shown)
}

#[derive(Debug, Clone, Copy)]
pub enum StoredText {
    Plain,
    /// The first line is the value within which it is compared.
    WithValue,
    /// Tokens cut by the user.
    Tokens,
}

impl StoredText {
    pub fn new(takes_tokens: bool, has_value: bool) -> Self {
        match (takes_tokens, has_value) {
            (true, _) => StoredText::Tokens,
            (false, true) => StoredText::WithValue,
            (false, false) => StoredText::Plain,
        }
    }
}

/// Appends a line for each document of a chunk that is not gone.
pub fn export_chunk(
    chunk: &Chunk,
    store: &Store,
    measure: &str,
    kind: StoredText,
    out: &mut String,
) -> Result<(), Error> {
    for found in chunk.documents().filter(|found| !found.is_gone) {
        let document = found.document;
        out.push_str("{\"doc_id\":");
        push_json(document.id, out);
        let seq = u64::from(document.row) + 1;
        let _ = write!(out, ",\"seq\":{seq},\"arrival_s\":{}", document.arrival_s);
        out.push_str(",\"sketch\":\"");
        for byte in document.sketch {
            let _ = write!(out, "{byte:02x}");
        }
        let _ = write!(out, "\",\"num_features\":{}", document.num_features);
        match document.verdict {
            None => out.push_str(",\"is_new\":true"),
            Some(evidence) => {
                out.push_str(",\"is_new\":false,\"kept_id\":");
                push_json(&store.id(evidence.kept_row)?, out);
                let similarity = evidence.similarity;
                let _ = write!(
                    out,
                    ",\"measure\":\"{measure}\",\"similarity\":{similarity}"
                );
                if let Some(distance) = evidence.distance {
                    let _ = write!(out, ",\"distance\":{distance}");
                }
            }
        }
        if let Content::Text(text) = store.content(document.row)? {
            push_text(&text, kind, out);
        }
        out.push_str("}\n");
    }
    Ok(())
}

/// Returns a stored text, and its value if it has one; tokens are separated by spaces.
pub fn shown_text(stored: &[u8], kind: StoredText) -> (Option<String>, String) {
    let text = match kind {
        StoredText::Tokens => OwnTokens::new(stored).shown(),
        _ => String::from_utf8_lossy(stored).into_owned(),
    };
    match (kind, Document::Text(&text).split_value()) {
        (StoredText::WithValue, (value, Document::Text(rest))) => {
            (Some(value.to_owned()), rest.to_owned())
        }
        _ => (None, text),
    }
}

/// Appends a stored text, and its value if it has one.
fn push_text(stored: &[u8], kind: StoredText, out: &mut String) {
    let (value, text) = shown_text(stored, kind);
    if let Some(value) = value {
        out.push_str(",\"value\":");
        push_json(&value, out);
    }
    out.push_str(",\"text\":");
    push_json(&text, out);
}

fn push_json(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' || control == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
