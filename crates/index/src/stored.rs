//! Which documents does an index hold, in order of arrival, and with what could another index decide on them?

use std::sync::atomic::AtomicBool;

use likewise_core::features::digest;
use likewise_disk::store::{Chunk, Content, Keeps, Store};

use crate::documents::{Documents, StoredDocument, wide};
use crate::error::Result;
use crate::index::Index;

/// Documents of one chunk of the store that are not gone, in order of arrival.
#[derive(Debug, Default)]
pub struct StoredPart {
    pub ids: Vec<String>,
    pub documents: Documents,
    /// Their texts, if the index stores texts.
    pub texts: Vec<Vec<u8>>,
    /// Id of the kept document of each; nothing for a kept one.
    pub kept_ids: Vec<Option<String>>,
}

impl Index {
    /// Ids of the documents of the chunk that holds a row, and the first row of the next chunk; `None` after the last one.
    pub fn ids_from(&self, row: u32) -> Result<Option<(Vec<String>, u32)>> {
        self.of_chunk(row, |chunk, _| {
            let ids = places(chunk).map(|place| chunk.id(place).to_owned());
            Ok(ids.collect())
        })
    }

    /// The documents of the chunk that holds a row, and the first row of the next one; `None` after the last.
    pub fn stored_from(
        &self,
        row: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Option<(StoredPart, u32)>> {
        let found = self.of_chunk(row, stored_part)?;
        let Some((mut part, next)) = found else {
            return Ok(None);
        };
        if !part.texts.is_empty() {
            let sketching = self.sketching();
            let all = 0..part.texts.len();
            let document = |i: usize| sketching.text_kind.document(&part.texts[i]);
            part.documents =
                sketching.documents(std::slice::from_ref(&all), document, threads, cancel)?;
        }
        Ok(Some((part, next)))
    }

    /// What is made of the chunk that holds a row.
    fn of_chunk<T>(
        &self,
        row: u32,
        make: impl Fn(&Chunk, &Store) -> Result<T, likewise_disk::Error>,
    ) -> Result<Option<(T, u32)>> {
        self.ready(&AtomicBool::new(false))?;
        self.repairing(|| {
            let lease = self.shared.lease(&self.shared.state())?;
            let mut found = None;
            lease.scan(row..row.saturating_add(1), |chunk| {
                found = Some((make(chunk, &lease)?, chunk.span().end));
                Ok(())
            })?;
            Ok(found)
        })
    }
}

/// Places of the documents of a chunk that are not gone.
fn places(chunk: &Chunk) -> impl Iterator<Item = usize> {
    (0..chunk.rows().len()).filter(|&place| !chunk.gone()[place])
}

fn stored_part(chunk: &Chunk, store: &Store) -> Result<StoredPart, likewise_disk::Error> {
    let description = store.description();
    let bytes = description.sketch_bytes as usize;
    let mut part = StoredPart::default();
    for place in places(chunk) {
        part.ids.push(chunk.id(place).to_owned());
        let kept_id = match chunk.verdicts()[place] {
            Some(evidence) => Some(store.id(evidence.kept_row)?),
            None => None,
        };
        part.kept_ids.push(kept_id);
        let set = match store.content(chunk.rows()[place])? {
            Content::Text(text) => {
                part.texts.push(text);
                continue;
            }
            Content::Absent if description.keeps == Keeps::Text => {
                part.texts.push(Vec::new());
                continue;
            }
            Content::Absent => None,
            Content::Features(features, weights) => Some((features, weights)),
        };
        let feature_digest = match (chunk.feature_digests(), &set) {
            (Some(digests), _) => digests[place],
            (None, Some((features, weights))) => wide(digest(features, weights)),
            (None, None) => 0,
        };
        part.documents.push_stored(StoredDocument {
            sketch: &chunk.sketches()[place * bytes..(place + 1) * bytes],
            shape: chunk.shapes()[place] & 3,
            num_features: chunk.num_features()[place],
            text_digest: chunk.text_digests().map(|digests| digests[place]),
            feature_digest,
            set: set
                .as_ref()
                .map(|(features, weights)| (&features[..], &weights[..])),
        });
    }
    Ok(part)
}
