//! Treatment of texts beyond the default rules, and the word lists for it.

use std::sync::Arc;

use likewise_core::text::{
    self, CONTENT_BYTES, Chunks, Dictionary as CoreDictionary, Fold, StopWords as CoreStopWords,
    TextRules as CoreTextRules, Tokens,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

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

#[pymethods]
impl TextRules {
    /// Takes the fields of a recipe; those that do not act on texts are ignored.
    #[new]
    #[pyo3(signature = (*, markup=None, fold=None, dictionary=None, stop_words=None, chunking=None, chunk_bytes=None, only_within=None, identifiers=None, **_others))]
    fn new(
        markup: Option<&str>,
        fold: Option<Vec<String>>,
        dictionary: Option<&Bound<'_, Dictionary>>,
        stop_words: Option<&Bound<'_, StopWords>>,
        chunking: Option<&str>,
        chunk_bytes: Option<u32>,
        only_within: Option<&str>,
        identifiers: Option<&str>,
        _others: Option<&Bound<'_, PyDict>>,
    ) -> Result<Self> {
        let fold = fold.unwrap_or_default();
        let fold = Fold::from_names(fold.iter().map(String::as_str)).ok_or_else(|| {
            let names = Fold::NAMES.join(", ");
            Failure::parameter(
                "fold",
                format!("{fold:?} contains a name other than {names}"),
            )
        })?;
        Ok(TextRules {
            rules: CoreTextRules {
                is_html: markup == Some("html"),
                fold,
                dictionary: dictionary.map(|found| found.get().dictionary.clone()),
                stop_words: stop_words.map(|found| found.get().words.clone()),
                chunks: parse_chunks(chunking, chunk_bytes)?,
                has_value: only_within.is_some(),
                has_identifiers: identifiers.is_some(),
            },
        })
    }

    /// The libraries that affect tokens of this kind, with their versions.
    fn libraries(&self, tokens: &str) -> Result<Vec<&'static str>> {
        Ok(self.rules.libraries(parse_tokens(tokens)?))
    }
}

fn parse_chunks(chunking: Option<&str>, size: Option<u32>) -> Result<Chunks> {
    let size = match (size, Chunks::default()) {
        (Some(size), _) | (None, Chunks::Content(size) | Chunks::Fixed(size)) => size,
    };
    match chunking {
        None | Some("content") if CONTENT_BYTES.contains(&size) && size.is_power_of_two() => {
            Ok(Chunks::Content(size))
        }
        Some("fixed") if size > 0 => Ok(Chunks::Fixed(size)),
        None | Some("content" | "fixed") => Err(Failure::parameter(
            "chunk_bytes",
            format!(
                "{size} is not a power of two in {}..{} (fixed: 1 or more)",
                CONTENT_BYTES.start(),
                CONTENT_BYTES.end()
            ),
        )),
        Some(other) => Err(Failure::parameter(
            "chunking",
            format!("{other:?} is not one of content, fixed"),
        )),
    }
}

pub fn parse_tokens(name: &str) -> Result<Tokens> {
    text::Tokens::from_name(name).ok_or_else(|| {
        let names = Tokens::ALL.map(Tokens::name).join(", ");
        Failure::parameter("tokens", format!("{name:?} is not one of {names}"))
    })
}
