//! What do segments say of many documents at once?
//!
//! A single question of a segment is a chain of cache misses; those of many documents hide each other's.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::documents::Documents;
use crate::error::Result;
use crate::keys::Keys;
use crate::rules::Rules;
use crate::state::{Layer, State};

/// Rows of segments for each of some documents, by place: by id, by class, by bucket of level 0.
#[derive(Debug, Default)]
pub struct Prefetched {
    ids: Vec<(u32, u32)>,
    classes: Vec<(u32, u32)>,
    /// Place, band, row.
    buckets: Vec<(u32, u32, u32)>,
}

impl Prefetched {
    /// Looks up the documents of a range in all segments, and their ids if given.
    pub fn new(
        state: &State,
        rules: &Rules,
        keys: &mut Keys,
        documents: &Documents,
        ids: Option<&[&str]>,
        range: Range<usize>,
    ) -> Result<Self> {
        let mut ahead = Prefetched::default();
        if !state
            .layers
            .iter()
            .any(|layer| matches!(layer, Layer::Segment(_)))
        {
            return Ok(ahead);
        }
        let of_ids: Vec<u64> = match ids {
            Some(ids) => ids[range.clone()]
                .iter()
                .map(|id| xxh3_64(id.as_bytes()))
                .collect(),
            None => Vec::new(),
        };
        let (mut of_classes, mut places) = (Vec::new(), Vec::new());
        for (place, i) in range.clone().enumerate() {
            let digest = documents.feature_digests.get(i).copied().unwrap_or(0);
            if let Some(hash) = keys.class_hash(rules, documents.shapes[i], digest) {
                of_classes.push(hash);
                places.push(place as u32);
            }
        }
        for layer in &state.layers {
            let Layer::Segment(segment) = layer else {
                continue;
            };
            segment.rows_of_ids(&of_ids, &mut ahead.ids)?;
            let before = ahead.classes.len();
            segment.rows_of_classes(&of_classes, &mut ahead.classes)?;
            for (place, _) in &mut ahead.classes[before..] {
                *place = places[*place as usize];
            }
        }
        let (mut of_band, mut found) = (Vec::new(), Vec::new());
        for band in 0..keys.num_bands() {
            of_band.clear();
            of_band.extend(range.clone().map(|i| keys.of(documents.sketch(i), band, 0)));
            found.clear();
            for layer in &state.layers {
                if let Layer::Segment(segment) = layer {
                    segment.buckets(band, &of_band, &mut found)?;
                }
            }
            let rows = found.iter().map(|&(place, row)| (place, band, row));
            ahead.buckets.extend(rows);
        }
        ahead.ids.sort_unstable();
        ahead.classes.sort_unstable();
        ahead.buckets.sort_unstable();
        Ok(ahead)
    }

    /// Appends the rows that may have the id of a document.
    pub fn ids_of(&self, place: u32, out: &mut Vec<u32>) {
        out.extend(rows_of(&self.ids, place));
    }

    /// Appends the rows that may represent the class of a document.
    pub fn classes_of(&self, place: u32, out: &mut Vec<u32>) {
        out.extend(rows_of(&self.classes, place));
    }

    /// Appends the rows that may be in the bucket of level 0 of a document.
    pub fn bucket_of(&self, place: u32, band: u32, out: &mut Vec<u32>) {
        let key = (place, band);
        let begin = self.buckets.partition_point(|&(p, b, _)| (p, b) < key);
        let rows = self.buckets[begin..].iter();
        let rows = rows.take_while(|&&(p, b, _)| (p, b) == key);
        out.extend(rows.map(|&(_, _, row)| row));
    }
}

fn rows_of(pairs: &[(u32, u32)], place: u32) -> impl Iterator<Item = u32> {
    let begin = pairs.partition_point(|&(of, _)| of < place);
    let pairs = pairs[begin..].iter();
    pairs
        .take_while(move |&&(of, _)| of == place)
        .map(|&(_, row)| row)
}
