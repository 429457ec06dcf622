//! Treatment of texts beyond the default rules, and the word lists for it.

use std::sync::Arc;

use likewise_core::text::{
    self, Chunks, Dictionary as CoreDictionary, Fold, StopWords as CoreStopWords,
    TextRules as CoreTextRules, Tokens,
};
use pyo3::prelude::*;

use crate::door::run;
use crate::errors::{Failure, Result};

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
    text::Tokens::from_name(name).ok_or_else(|| {
        let names = Tokens::ALL.map(Tokens::name).join(", ");
        Failure::parameter("tokens", format!("{name:?} is not one of {names}"))
    })
}
