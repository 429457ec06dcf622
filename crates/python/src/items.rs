//! Evaluation items in documents.

use likewise_core::error::invalid_if;
use likewise_core::items::{self, ItemCounts, ItemScanner, Matches, judge};
use likewise_core::parallel::Run;
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::column::Kind;
use crate::door::{Object, chosen_isa, run};
use crate::errors::{Failure, Result};
use crate::texts::Texts;

/// Stored counts: documents with each n-gram, sampled documents with each word, documents, sampled documents.
type Taken = (Array, Array, u64, u64);

/// The distinct texts of items, and the number of documents with each of their parts.
#[pyclass(frozen, module = "likewise._native")]
pub struct ItemTable {
    table: items::ItemTable,
    counts: ItemCounts,
}

#[pymethods]
impl ItemTable {
    #[new]
    #[pyo3(signature = (texts, *, min_ngrams, counts=None))]
    fn new(
        py: Python<'_>,
        texts: &Texts,
        min_ngrams: usize,
        counts: Option<(Object<'_>, Object<'_>, u64, u64)>,
    ) -> Result<Self> {
        let column = texts.column.as_ref();
        check_texts(texts)?;
        let table = run(py, column.num_bytes, |_| {
            let all = (0..column.len()).map(|i| column.get(i));
            Ok(items::ItemTable::new(all, min_ngrams))
        })?;
        let counts = match counts {
            None => ItemCounts::new(&table),
            Some((grams, words, num_documents, num_sampled)) => {
                let grams = Input::<u32>::take("grams", &grams)?;
                let words = Input::<u32>::take("words", &words)?;
                let sizes = (grams.values().len(), words.values().len());
                if sizes != (table.num_grams(), table.num_words()) {
                    return Err(Failure::parameter("counts", "are those of other items"));
                }
                let (grams, words) = (grams.values(), words.values());
                ItemCounts::from_taken(grams, words, num_documents, num_sampled)
            }
        };
        Ok(ItemTable { table, counts })
    }

    /// The number of the distinct text of each text.
    #[getter]
    fn distinct(&self) -> Array {
        self.table.distinct().to_vec().into()
    }

    /// For each distinct text: whether it is too short to be found, its distinct n-grams, and its words.
    fn sizes(&self) -> (Array, Array, Array) {
        let all = 0..self.table.num_texts();
        let is_short: Vec<u8> = all
            .clone()
            .map(|t| u8::from(self.table.is_short(t)))
            .collect();
        let sizes: Vec<(usize, usize)> = all.map(|t| self.table.sizes(t)).collect();
        let num_grams: Vec<u32> = sizes.iter().map(|size| size.0 as u32).collect();
        let num_words: Vec<u32> = sizes.iter().map(|size| size.1 as u32).collect();
        (is_short.into(), num_grams.into(), num_words.into())
    }

    /// Counts documents, and returns where texts may be in them: documents, texts, starts, ends, runs, whether numbers
    /// differ, bits of n-grams, bits of words.
    #[pyo3(signature = (texts, *, threads=1))]
    #[allow(clippy::type_complexity)]
    fn scan(
        &self,
        py: Python<'_>,
        texts: &Texts,
        threads: usize,
    ) -> Result<(Array, Array, Array, Array, Array, Array, Array, Array)> {
        let column = texts.column.as_ref();
        check_texts(texts)?;
        let parts: Vec<Matches> = run(py, column.num_bytes, |cancel| {
            let make_state = || ItemScanner::new(&self.table, &self.counts, chosen_isa());
            column.in_parts(Run { threads, cancel }, make_state, |scanner, found, i| {
                scanner.scan(i as u32, column.get(i), found);
            })
        })?;
        let mut found = Matches::default();
        for part in parts {
            found.append(part);
        }
        Ok((
            found.documents.into(),
            found.texts.into(),
            found.starts.into(),
            found.ends.into(),
            found.runs.into(),
            found.other_numbers.into(),
            found.present.into(),
            found.aligned.into(),
        ))
    }

    /// The counts so far, for another table of the same texts.
    fn counts(&self) -> Taken {
        let (grams, words, num_documents, num_sampled) = self.counts.taken();
        (grams.into(), words.into(), num_documents, num_sampled)
    }

    /// The weighted share of n-grams and the similarity of each match, by the counts.
    fn judge(
        &self,
        py: Python<'_>,
        texts: &Object<'_>,
        present: &Object<'_>,
        aligned: &Object<'_>,
    ) -> Result<(Array, Array)> {
        take!(texts: u32, present: u8, aligned: u8);
        let (mut num_present, mut num_aligned) = (0, 0);
        for &text in texts {
            invalid_if(
                text as usize >= self.table.num_texts() || self.table.is_short(text as usize),
                "texts",
                || format!("{text} is not the number of a searchable text"),
            )?;
            let (grams, words) = self.table.sizes(text as usize);
            num_present += grams.div_ceil(8);
            num_aligned += words.div_ceil(8);
        }
        invalid_if(
            (num_present, num_aligned) != (present.len(), aligned.len()),
            "present",
            || "has another size than the texts",
        )?;
        let matches = Matches {
            texts: texts.to_vec(),
            present: present.to_vec(),
            aligned: aligned.to_vec(),
            ..Matches::default()
        };
        let found = run(py, matches.aligned.len() * 64, |_| {
            Ok(judge(&self.table, &self.counts, &matches))
        })?;
        let shares: Vec<f64> = found.iter().map(|one| one.share).collect();
        let similarity: Vec<f64> = found.iter().map(|one| one.similarity).collect();
        Ok((shares.into(), similarity.into()))
    }
}

fn check_texts(texts: &Texts) -> Result<()> {
    match texts.column.kind {
        Kind::Text => Ok(()),
        _ => Err(Failure::input("expected texts".to_owned())),
    }
}
