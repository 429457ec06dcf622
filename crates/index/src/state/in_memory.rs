//! What is known of the newest rows, before a segment holds them?

use std::ops::Range;

use likewise_core::error::Error;
use likewise_core::features::Shape;
use likewise_disk::store::{CAPPED, DocumentRow, Evidence};
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{Building, HammingSet, Matches, Reach};
use likewise_hamming::plan::SearchPlan;
use xxhash_rust::xxh3::xxh3_64;

use crate::documents::Documents;
use crate::keys::{Keys, words_of};
use crate::rules::{Method, Rules};
use crate::state::bits::{Quick, RowsByHash};

/// Bit of a stored shape: the document collapsed into the one that represents its class, and is in no table.
pub const COLLAPSED: u8 = 4;

/// A document of a batch without a verdict or levels, and whether it collapsed.
pub fn row_of_batch<'a>(
    documents: &'a Documents,
    (place, id, is_collapsed): (usize, &'a str, bool),
    row: u32,
) -> DocumentRow<'a> {
    DocumentRow {
        row,
        id,
        sketch: documents.sketch(place),
        shape: documents.shapes[place] | (u8::from(is_collapsed) * COLLAPSED),
        num_features: documents.num_features[place],
        text_digest: documents.text_digests.get(place).copied(),
        digest: documents.feature_digests.get(place).copied().unwrap_or(0),
        ..DocumentRow::default()
    }
}

/// Whether the shape of a document, with [`COLLAPSED`] or without it, is that of an empty one.
pub fn is_blank(shape: u8) -> bool {
    shape & !COLLAPSED == Shape::Empty as u8
}

/// Rows of a range in memory, but for those that were gone when they were read, with tables to find them by.
#[derive(Debug)]
pub struct MemoryRows {
    first_row: u32,
    end_row: u32,
    rows: Vec<u32>,
    ids: String,
    id_ends: Vec<usize>,
    sketch_bytes: usize,
    sketches: Vec<u8>,
    shapes: Vec<u8>,
    num_features: Vec<u32>,
    text_digests: Vec<Option<u64>>,
    digests: Vec<u128>,
    verdicts: Vec<Option<Evidence>>,
    levels: Quick<u32, Vec<(u16, u8)>>,
    by_id: RowsByHash,
    by_class: RowsByHash,
    members: Quick<u32, Vec<u32>>,
    /// Fingerprints of rows in the tables, by their place in `rows`.
    hamming: Option<HammingSet>,
    /// Members of each band by key.
    bands: Vec<RowsByHash>,
}

/// Which bucket of a band a document with these exceptions is a member of; none if all were full.
pub fn level_of(levels: &[(u16, u8)], band: u32) -> Option<u32> {
    let level = levels
        .iter()
        .find(|&&(of, _)| u32::from(of) == band)
        .map_or(0, |&(_, level)| level);
    (level < CAPPED).then_some(u32::from(level))
}

impl MemoryRows {
    /// No rows; the first one will be `first_row`.
    pub fn new(rules: &Rules, plan: Option<&SearchPlan>, first_row: u32) -> Result<Self, Error> {
        Ok(MemoryRows {
            first_row,
            end_row: first_row,
            rows: Vec::new(),
            ids: String::new(),
            id_ends: Vec::new(),
            sketch_bytes: rules.sketch_bytes(),
            sketches: Vec::new(),
            shapes: Vec::new(),
            num_features: Vec::new(),
            text_digests: Vec::new(),
            digests: Vec::new(),
            verdicts: Vec::new(),
            levels: Quick::default(),
            by_id: RowsByHash::default(),
            by_class: RowsByHash::default(),
            members: Quick::default(),
            hamming: plan.cloned().map(HammingSet::new).transpose()?,
            bands: match rules.method {
                Method::Simhash { .. } => Vec::new(),
                Method::Minhash { bands, .. } => vec![RowsByHash::default(); bands as usize],
            },
        })
    }

    pub fn rows(&self) -> Range<u32> {
        self.first_row..self.end_row
    }

    /// Notes that no row below one comes any more.
    pub fn end_at(&mut self, row: u32) {
        self.end_row = self.end_row.max(row);
    }

    /// Those that it holds, ascending; fingerprints are known by their places here.
    pub fn held(&self) -> &[u32] {
        &self.rows
    }

    pub fn num_held(&self) -> u32 {
        self.rows.len() as u32
    }

    pub fn num_below(&self, row: u32) -> u32 {
        self.rows.partition_point(|&held| held < row) as u32
    }

    pub fn holds(&self, row: u32) -> bool {
        self.find(row).is_some()
    }

    fn find(&self, row: u32) -> Option<usize> {
        // Mostly all rows are held.
        let place = row.checked_sub(self.first_row)? as usize;
        match self.rows.get(place) == Some(&row) {
            true => Some(place),
            false => self.rows.binary_search(&row).ok(),
        }
    }

    pub fn sketches(&self) -> &[u8] {
        &self.sketches
    }

    fn place(&self, row: u32) -> usize {
        self.find(row)
            .unwrap_or_else(|| panic!("row {row} is not held"))
    }

    pub fn id(&self, row: u32) -> &str {
        let place = self.place(row);
        let begin = if place == 0 {
            0
        } else {
            self.id_ends[place - 1]
        };
        &self.ids[begin..self.id_ends[place]]
    }

    pub fn row(&self, row: u32) -> DocumentRow<'_> {
        let place = self.place(row);
        DocumentRow {
            row,
            id: self.id(row),
            sketch: &self.sketches[place * self.sketch_bytes..(place + 1) * self.sketch_bytes],
            shape: self.shapes[place],
            num_features: self.num_features[place],
            text_digest: self.text_digests[place],
            digest: self.digests[place],
            verdict: self.verdicts[place],
            levels: self.levels.get(&row).map_or(&[], Vec::as_slice),
            ..DocumentRow::default()
        }
    }

    pub fn set_verdict(&mut self, row: u32, verdict: Option<Evidence>) {
        let place = self.place(row);
        self.verdicts[place] = verdict;
    }

    /// Appends ascending rows, and puts those that did not collapse into the tables.
    pub fn extend<'a>(
        &mut self,
        rules: &Rules,
        keys: &mut Keys,
        rows: impl Iterator<Item = DocumentRow<'a>>,
        building: Building<'_>,
    ) -> Result<(), Error> {
        let (mut words, mut standing) = (Vec::new(), Vec::new());
        for document in rows {
            let (row, place) = (document.row, self.shapes.len() as u32);
            self.rows.push(row);
            self.end_row = row + 1;
            self.ids.push_str(document.id);
            self.id_ends.push(self.ids.len());
            self.sketches.extend_from_slice(document.sketch);
            self.shapes.push(document.shape);
            self.num_features.push(document.num_features);
            self.text_digests.push(document.text_digest);
            self.digests.push(document.digest);
            self.verdicts.push(document.verdict);
            if !document.levels.is_empty() {
                self.levels.insert(row, document.levels.to_vec());
            }
            self.by_id.insert(xxh3_64(document.id.as_bytes()), row);
            if let Some(evidence) = document.verdict {
                self.members.entry(evidence.kept_row).or_default().push(row);
            }
            if document.shape & COLLAPSED != 0 {
                continue;
            }
            if let Some(class) = keys.class_hash(rules, document.shape, document.digest) {
                self.by_class.insert(class, row);
            }
            if is_blank(document.shape) {
                continue;
            }
            if self.hamming.is_some() {
                words.extend(words_of(document.sketch));
                standing.push(place);
            }
            for (band, members) in (0..).zip(&mut self.bands) {
                if let Some(level) = level_of(document.levels, band) {
                    members.insert(keys.of(document.sketch, band, level), row);
                }
            }
        }
        if let (Some(set), Method::Simhash { bits, .. }) = (&self.hamming, rules.method)
            && !standing.is_empty()
        {
            let fingerprints = Fingerprints::new(&words, bits);
            set.insert(fingerprints, Some(&standing), building)?;
        }
        Ok(())
    }

    pub fn rows_of_id(&self, hash: u64, out: &mut Vec<u32>) {
        self.by_id.append_to(hash, out);
    }

    pub fn rows_of_class(&self, hash: u64, out: &mut Vec<u32>) {
        self.by_class.append_to(hash, out);
    }

    pub fn bucket(&self, band: u32, key: u64, out: &mut Vec<u32>) {
        self.bands[band as usize].append_to(key, out);
    }

    /// Appends rows that were removed because of this one when they came.
    pub fn members(&self, leader: u32, out: &mut Vec<u32>) {
        if let Some(members) = self.members.get(&leader) {
            out.extend_from_slice(members);
        }
    }

    /// Places among the rows that are held of those within a radius of each fingerprint.
    pub fn search(&self, queries: Fingerprints<'_>, reach: Reach<'_>) -> Result<Matches, Error> {
        match &self.hamming {
            Some(set) => set.search(queries, reach),
            None => Ok(Matches {
                offsets: vec![0; queries.len() + 1],
                ..Matches::default()
            }),
        }
    }
}
