//! Treatment of texts beyond the default rules, and the word lists for it.

use std::sync::Arc;

use likewise_core::error::invalid_if;
use likewise_core::features::siblings::NameTable;
use likewise_core::features::{
    Extractor, FeatureHash, FeatureRules as CoreRules, FeatureView, FeatureWeights, Weights,
};
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::text::{
    self, Chunks, Dictionary as CoreDictionary, Fold, StopWords as CoreStopWords,
    TextRules as CoreTextRules, Tokens, tokens_by,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::array::Array;
use crate::column::{Column, Kind};
use crate::door::{Object, Str, chosen_isa, parse, run, run_short};
use crate::errors::{Failure, Result};
use crate::texts::{Texts, text_of};
use crate::weights::WeightTable;

/// Words of Chinese text.
#[pyclass(frozen, module = "likewise._native")]
pub struct Dictionary {
    dictionary: Arc<CoreDictionary>,
}

#[pymethods]
impl Dictionary {
    /// The standard words and these, normalized, with their frequencies; `None`: just frequent enough to be found.
    #[new]
    fn new(py: Python<'_>, words: Vec<(String, Option<u32>)>) -> Result<Self> {
        // Always long enough to release the interpreter lock: the standard words take 0.2 s.
        let dictionary = run(py, usize::MAX, |_| {
            let words = words.iter().map(|(word, count)| (word.as_str(), *count));
            Ok(CoreDictionary::with_words(words))
        })?;
        Ok(Dictionary {
            dictionary: Arc::new(dictionary),
        })
    }
}

/// Words that do not count, normalized and folded like the texts.
#[pyclass(frozen, module = "likewise._native")]
pub struct StopWords {
    words: Arc<CoreStopWords>,
}

#[pymethods]
impl StopWords {
    #[new]
    fn new(words: Vec<String>) -> Self {
        StopWords {
            words: Arc::new(CoreStopWords::new(words)),
        }
    }
}

/// Treatment of a text beyond the default rules.
#[pyclass(frozen, module = "likewise._native")]
pub struct TextRules {
    pub rules: CoreTextRules,
}

/// The fields of a recipe that act on texts, as the recipe has checked them; others are ignored.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TextFields {
    fold: Option<Vec<String>>,
    #[pyo3(default)]
    markup: Option<String>,
    #[pyo3(default)]
    dictionary: Option<Py<Dictionary>>,
    #[pyo3(default)]
    stop_words: Option<Py<StopWords>>,
    #[pyo3(default)]
    chunking: Option<String>,
    #[pyo3(default)]
    chunk_bytes: Option<u32>,
    #[pyo3(default)]
    only_within: Option<String>,
    #[pyo3(default)]
    identifiers: Option<String>,
}

impl TextFields {
    fn chunks(&self) -> Chunks {
        match (self.chunking.as_deref(), self.chunk_bytes) {
            (Some("fixed"), Some(size)) => Chunks::Fixed(size),
            (_, Some(size)) => Chunks::Content(size),
            (_, None) => Chunks::default(),
        }
    }
}

#[pymethods]
impl TextRules {
    #[new]
    #[pyo3(signature = (fields, /))]
    fn new(fields: TextFields) -> Result<Self> {
        let (chunks, fold) = (fields.chunks(), fields.fold.unwrap_or_default());
        let fold = Fold::from_names(fold.iter().map(String::as_str)).ok_or_else(|| {
            let names = Fold::NAMES.join(", ");
            Failure::parameter(
                "fold",
                format!("{fold:?} contains a name other than {names}"),
            )
        })?;
        Ok(TextRules {
            rules: CoreTextRules {
                is_html: fields.markup.is_some(),
                fold,
                dictionary: fields
                    .dictionary
                    .map(|found| found.get().dictionary.clone()),
                stop_words: fields.stop_words.map(|found| found.get().words.clone()),
                chunks,
                has_value: fields.only_within.is_some(),
                has_identifiers: fields.identifiers.is_some(),
            },
        })
    }

    /// The libraries that affect tokens of this kind, with their versions.
    fn libraries(&self, tokens: &str) -> Result<Vec<&'static str>> {
        Ok(self.rules.libraries(parse_tokens(tokens)?))
    }
}

pub fn parse_tokens(name: &str) -> Result<Tokens> {
    let names = Tokens::ALL.map(Tokens::name);
    parse("tokens", name, Tokens::from_name(name), &names)
}

#[pyclass(frozen, module = "likewise._native")]
pub struct FeatureRules {
    pub rules: CoreRules,
    pub text_rules: CoreTextRules,
    table: Option<FeatureWeights>,
    /// Whether each feature with a weight counts once.
    once: bool,
    /// Whether names of documents are read, and the table of words and slots.
    siblings: Option<Option<Arc<NameTable>>>,
}

impl FeatureRules {
    /// A feature extractor by these rules; each thread has its own.
    pub fn extractor(&self, isa: Isa) -> Extractor {
        let mut extractor = Extractor::new(self.rules, isa)
            .with_table(self.table.clone())
            .with_text_rules(self.text_rules.clone());
        extractor.counts_once = self.once;
        extractor
    }

    /// The same, reading also what names a document, if siblings are kept.
    pub fn naming_extractor(&self, isa: Isa) -> Extractor {
        let extractor = self.extractor(isa);
        match &self.siblings {
            Some(table) => extractor.with_names(table.clone()),
            None => extractor,
        }
    }

    /// Whether the weight of a feature is its rarity in a collection.
    pub fn are_by_rarity(&self) -> bool {
        self.rules.weights == Weights::Idf
    }

    /// The same rules with weight 1 for each feature, of `shingle` tokens each.
    pub fn unweighted(&self, shingle: u32) -> FeatureRules {
        FeatureRules {
            rules: CoreRules {
                shingle,
                weights: Weights::None,
                ..self.rules
            },
            text_rules: self.text_rules.clone(),
            table: None,
            once: false,
            siblings: None,
        }
    }

    /// Goes through texts in parts on several threads, each with a state; `add` takes the state, the part so far, and the
    /// next text of it with its features.
    pub fn in_parts<S, T: Default + Send>(
        &self,
        column: &Column,
        run: Run<'_>,
        make_state: impl Fn() -> S + Sync,
        add: impl Fn(&mut S, &mut T, usize, FeatureView<'_>) + Sync,
    ) -> Result<Vec<T>> {
        self.check(column)?;
        let make_state = || (self.extractor(chosen_isa()), make_state());
        column.in_parts(run, make_state, |(extractor, state), part, i| {
            add(state, part, i, extractor.features(column.document(i)));
        })
    }

    /// Rejects documents that such tokens cannot be cut from.
    pub fn check(&self, column: &Column) -> Result<()> {
        let tokens = self.rules.tokens;
        if column.len() == 0 {
            return Ok(());
        }
        let reason = match column.kind {
            Kind::Text if tokens == Tokens::User => {
                "tokens user requires lists of tokens, or texts with a tokenizer"
            }
            Kind::Bytes if !tokens.are_bytes() => "bytes require tokens bytes or chunks",
            Kind::Tokens if tokens != Tokens::User => {
                "lists of tokens require tokens user or weights own"
            }
            _ => return Ok(()),
        };
        Err(Failure::input(reason))
    }
}

#[pymethods]
impl FeatureRules {
    #[new]
    #[pyo3(signature = (tokens, shingle, weights="none", seed=0, table=None, hash="xxh3", text_rules=None, *, once=false, siblings=false))]
    fn new(
        tokens: &str,
        shingle: u32,
        weights: &str,
        seed: u64,
        table: Option<&Bound<'_, WeightTable>>,
        hash: &str,
        text_rules: Option<&Bound<'_, TextRules>>,
        once: bool,
        siblings: bool,
    ) -> Result<Self> {
        invalid_if(!(1..=64).contains(&shingle), "shingle", || {
            format!("{shingle} is outside 1..64")
        })?;
        let names = Weights::ALL.map(Weights::name);
        let weights = parse("weights", weights, Weights::from_name(weights), &names)?;
        if weights.needs_table() != table.is_some() {
            let message = match table {
                None => "needs a table",
                Some(_) => "reads no table",
            };
            return Err(Failure::parameter(
                "weights",
                format!("{} {message}", weights.name()),
            ));
        }
        Ok(FeatureRules {
            rules: CoreRules {
                tokens: parse_tokens(tokens)?,
                shingle,
                weights,
                seed,
                hash: parse_hash(hash)?,
            },
            text_rules: text_rules.map_or_else(CoreTextRules::default, |r| r.get().rules.clone()),
            table: table.map(|table| table.get().feature_weights()),
            once,
            siblings: siblings.then(|| table.and_then(|table| table.get().name_table())),
        })
    }

    /// The normalized text by these rules.
    fn normalize(&self, py: Python<'_>, text: &Str<'_>) -> Result<String> {
        let text = text_of(text)?;
        let text = text.as_ref();
        run(py, text.len(), |_| {
            Ok(text::prepared(text, &self.text_rules))
        })
    }

    /// The tokens of each document in order, stop words included: str, or bytes for the kinds bytes and chunks.
    fn cut<'py>(&self, py: Python<'py>, documents: &Texts) -> Result<Vec<Vec<Object<'py>>>> {
        self.check(&documents.column)?;
        let column = documents.column.as_ref();
        let tokens = self.rules.tokens;
        let found = run(py, column.num_bytes, |_| {
            let cut = |i| tokens_by(column.document(i), tokens, &self.text_rules);
            Ok((0..column.len()).map(cut).collect::<Vec<_>>())
        })?;
        let shown = |token: &Vec<u8>| match tokens.are_bytes() {
            true => PyBytes::new(py, token).into_any(),
            false => PyString::new(py, &String::from_utf8_lossy(token)).into_any(),
        };
        Ok(found
            .iter()
            .map(|list| list.iter().map(shown).collect())
            .collect())
    }

    #[getter]
    fn tokens(&self) -> &'static str {
        self.rules.tokens.name()
    }

    #[getter]
    fn shingle(&self) -> u32 {
        self.rules.shingle
    }

    #[getter]
    fn weights(&self) -> &'static str {
        self.rules.weights.name()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.rules.seed
    }

    #[getter]
    fn hash(&self) -> &'static str {
        self.rules.hash.name()
    }

    fn __repr__(&self) -> String {
        format!(
            "FeatureRules(tokens={:?}, shingle={}, weights={:?}, seed={}, hash={:?})",
            self.tokens(),
            self.shingle(),
            self.weights(),
            self.seed(),
            self.hash()
        )
    }
}

fn parse_hash(name: &str) -> Result<FeatureHash> {
    let names = FeatureHash::ALL.map(FeatureHash::name);
    parse("hash", name, FeatureHash::from_name(name), &names)
}

#[pyfunction]
pub fn normalize(py: Python<'_>, text: &Str<'_>) -> Result<String> {
    let text = text_of(text)?;
    let text = text.as_ref();
    run_short(py, |_| {
        let mut out = Vec::new();
        text::normalize(text, &mut out);
        String::from_utf8(out).map_err(|error| Failure::Internal(error.to_string()))
    })
}

/// The tokens of a text in order, by the default rules.
#[pyfunction]
pub fn tokens(py: Python<'_>, text: &Str<'_>, tokens: &str) -> Result<Vec<String>> {
    let kind = parse_tokens(tokens)?;
    let text = text_of(text)?;
    let text = text.as_ref();
    run_short(py, |_| Ok(text::tokens(text, kind)))
}

/// Features and weights of some texts, and the number of features of each.
#[derive(Default)]
struct Part {
    counts: Vec<usize>,
    features: Vec<u64>,
    weights: Vec<u32>,
}

/// Distinct features of each text in order of first occurrence, and their weights: `(offsets, features, weights)`.
#[pyfunction]
#[pyo3(signature = (texts, rules, *, threads=1))]
pub fn features(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    threads: usize,
) -> Result<(Array, Array, Array)> {
    let column = texts.column.as_ref();
    let (offsets, features, weights) = run(py, column.num_bytes, |cancel| {
        let add = |(): &mut (), part: &mut Part, _, view: FeatureView<'_>| {
            part.counts.push(view.features.len());
            part.features.extend_from_slice(view.features);
            part.weights.extend_from_slice(view.weights);
            // No weights means ones.
            part.weights.resize(part.features.len(), 1);
        };
        let parts = rules.in_parts(column, Run { threads, cancel }, || (), add)?;
        let mut offsets = vec![0];
        let mut all = Part::default();
        for part in parts {
            for count in part.counts {
                offsets.push(offsets[offsets.len() - 1] + count as i64);
            }
            all.features.extend(part.features);
            all.weights.extend(part.weights);
        }
        Ok((offsets, all.features, all.weights))
    })?;
    Ok((offsets.into(), features.into(), weights.into()))
}
