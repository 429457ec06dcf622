//! Arguments of an index: documents, their ids, and how many neighbors are wanted.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;

use likewise_index::{Documents, Rules, Sketching};
use pyo3::prelude::*;

use crate::column::GRAIN_BYTES;
use crate::door::{LONG_BYTES, Object};
use crate::errors::{Failure, Result};
use crate::index_recipe::sketched_documents;
use crate::texts::Texts;

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
    pub fn sketched(
        &self,
        sketching: &Sketching,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Cow<'_, Documents>> {
        match self {
            Taken::Texts(texts) => {
                let column = texts.get().column.as_ref();
                let ranges = column.ranges(GRAIN_BYTES);
                let document = |i| column.document(i);
                let documents = sketching.documents(&ranges, document, threads, cancel)?;
                Ok(Cow::Owned(documents))
            }
            Taken::Sketched(documents) => Ok(Cow::Borrowed(documents)),
        }
    }
}
