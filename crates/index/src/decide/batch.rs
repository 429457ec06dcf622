//! What do the documents of one batch say of each other?

use std::collections::HashMap;
use std::sync::Arc;

use likewise_core::bands::{BUCKET_SIZE, NUM_LEVELS};
use likewise_core::error::Error as CoreError;
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::sketch::signatures::num_equal;
use likewise_core::verify::{FeatureSet, Measure};
use likewise_disk::store::{CAPPED, Evidence};
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{HammingSet, Matches, Reach};
use likewise_hamming::plan::SearchPlan;

use crate::decide::asked::{Asked, Collapse, Near};
use crate::decide::buckets::BandEnd;
use crate::decide::lookup::Lookup;
use crate::decide::measure::{OwnSet, is_better};
use crate::documents::{Documents, measured_set};
use crate::error::Result;
use crate::keys::{Keys, distance_of, words_of};
use crate::rules::{Matching, Method, Rules, SHORT_FEATURES};
use crate::state::bits::{Quick, RowsByHash};
use crate::state::promoted::building;

/// Whether a document is in the tables, and its buckets that are not of level 0; for a collapsed one, those it would be in.
pub enum Standing {
    /// It is a member of its buckets.
    Member(Vec<(u16, u8)>),
    /// It collapsed.
    Collapsed(Vec<(u16, u8)>),
}

/// Verdicts of documents that come together, and tables to find them by. Rows are those they will have once the batch is committed.
pub struct StagedBatch<'d> {
    documents: &'d Documents,
    /// Row of the first that is added.
    first_row: u32,
    /// Places in the batch of those that are added, in order.
    pub places: Vec<u32>,
    /// The row of each place of the batch: that of an added one, or of one that was there.
    pub rows: Vec<u32>,
    pub verdicts: Vec<Option<Evidence>>,
    pub collapsed: Vec<bool>,
    /// Band and level of each bucket that is not of level 0, of those that are added.
    pub levels: Vec<Vec<(u16, u8)>>,
    /// Evidence against committed rows, if any.
    pub known_evidence: Quick<u32, Evidence>,
    /// Ids of kept documents that evidence names.
    pub kept_ids: Quick<u32, String>,
    by_id: HashMap<&'d str, u32>,
    by_class: RowsByHash,
    bands: Vec<RowsByHash>,
    /// Fingerprints of all documents so far, by place in the batch.
    fingerprints: Option<HammingSet>,
    sets: HashMap<u32, Arc<FeatureSet>>,
}

impl<'d> StagedBatch<'d> {
    /// Nothing staged yet.
    pub fn new(
        documents: &'d Documents,
        rules: &Rules,
        plan: Option<&SearchPlan>,
        first_row: u32,
    ) -> Result<Self> {
        let is_single = documents.len() == 1;
        let plan = plan.filter(|_| !is_single);
        Ok(StagedBatch {
            documents,
            first_row,
            places: Vec::with_capacity(documents.len()),
            rows: Vec::with_capacity(documents.len()),
            verdicts: Vec::with_capacity(documents.len()),
            collapsed: Vec::with_capacity(documents.len()),
            levels: Vec::new(),
            known_evidence: Quick::default(),
            kept_ids: Quick::default(),
            by_id: HashMap::new(),
            by_class: RowsByHash::default(),
            bands: match rules.method {
                Method::Minhash { bands, .. } if !is_single => {
                    vec![RowsByHash::default(); bands as usize]
                }
                _ => Vec::new(),
            },
            fingerprints: plan.cloned().map(HammingSet::new).transpose()?,
            sets: HashMap::new(),
        })
    }

    pub fn place_of_id(&self, id: &str) -> Option<u32> {
        self.by_id.get(id).copied()
    }

    pub fn verdict(&self, row: u32) -> Option<Evidence> {
        self.verdicts[(row - self.first_row) as usize]
    }

    /// The evidence against a row of the batch, added or there before.
    pub fn evidence(&self, row: u32) -> Option<Evidence> {
        match row >= self.first_row {
            true => self.verdict(row),
            false => self.known_evidence.get(&row).copied(),
        }
    }

    /// Id of a kept document that was there before.
    pub fn kept_id(&self, row: u32, lookup: &mut Lookup<'_>) -> Result<String> {
        match self.kept_ids.get(&row) {
            Some(id) => Ok(id.clone()),
            None => Ok(lookup.id(row)?),
        }
    }

    fn place(&self, row: u32) -> u32 {
        self.places[(row - self.first_row) as usize]
    }

    /// Makes the documents of a range known, and finds those of the batch near each of them.
    pub fn near(
        &mut self,
        rules: &Rules,
        range: std::ops::Range<usize>,
        isa: Isa,
        run: Run<'_>,
    ) -> Result<Option<Matches>, CoreError> {
        let (Some(set), Method::Simhash { bits, within }) = (&self.fingerprints, rules.method)
        else {
            return Ok(None);
        };
        let bytes = rules.sketch_bytes();
        let sketches = &self.documents.sketches[range.start * bytes..range.end * bytes];
        let words: Vec<u64> = words_of(sketches).collect();
        let places: Vec<u32> = (range.start as u32..range.end as u32).collect();
        let queries = Fingerprints::new(&words, bits);
        set.insert(queries, Some(&places), building(isa, run))?;
        Ok(Some(set.search(queries, Reach::new(within, isa, run))?))
    }

    /// Notes that the document at the next place is row `row`, which was there.
    pub fn push_known(&mut self, row: u32) {
        self.rows.push(row);
    }

    /// What a document collapses into if one of this batch represents its class.
    pub fn collapse(
        &self,
        rules: &Rules,
        keys: &Keys,
        asked: &Asked<'_>,
        near: &[Near],
    ) -> Option<Collapse> {
        let mut found = Vec::new();
        match keys.class_hash(rules, asked.shape, asked.digest) {
            Some(hash) => self.by_class.append_to(hash, &mut found),
            None => found.extend(near.iter().filter(|n| n.distance == 0).map(|n| n.row)),
        }
        let row = found.into_iter().find(|&row| {
            let other = Asked::of(self.documents, self.place(row) as usize, &[]);
            if asked.is_blank() || other.is_blank() {
                return asked.is_blank() && other.is_blank();
            }
            if !rules.is_distance_only() {
                return asked.digest == other.digest;
            }
            let is_short = rules.is_short(asked.num_features);
            asked.sketch == other.sketch
                && rules.is_short(other.num_features) == is_short
                && (!is_short || asked.digest == other.digest)
        })?;
        let evidence = self.verdict(row).unwrap_or(Evidence {
            kept_row: row,
            similarity: 1.0,
            distance: rules.zero_distance(),
        });
        Some(Collapse {
            evidence,
            into: row,
        })
    }

    /// Rows of this batch within the radius of a document; the places of `matches` are those of the batch.
    pub fn near_rows(&self, matches: &Matches, i: usize, place: u32, out: &mut Vec<Near>) {
        out.clear();
        for at in matches.offsets[i] as usize..matches.offsets[i + 1] as usize {
            if matches.rows[at] >= place {
                break;
            }
            // Places ascend among those that are added, as rows do. An empty text is near nothing.
            if let Ok(added) = self.places.binary_search(&matches.rows[at])
                && !self.collapsed[added]
                && !self.documents.is_blank(matches.rows[at] as usize)
            {
                out.push(Near {
                    row: self.first_row + added as u32,
                    distance: matches.distances[at],
                });
            }
        }
    }

    /// Goes on from where the committed buckets ended: appends members of this batch. Gives levels that are not 0.
    pub fn buckets(
        &mut self,
        lookup: &mut Lookup<'_>,
        asked: &Asked<'_>,
        ends: &[BandEnd],
        staged: &mut Vec<u32>,
        committed: &mut Vec<u32>,
    ) -> Result<Vec<(u16, u8)>> {
        let mut exceptions = Vec::new();
        for (band, end) in (0_u32..).zip(ends) {
            // Where committed members fill a bucket, documents of this batch went on too.
            let mut place = None;
            if let &Some((from, num)) = end {
                let mut num = num;
                for level in from..NUM_LEVELS {
                    if level > from {
                        let before = committed.len();
                        lookup.bucket(asked, band, level, committed)?;
                        num = committed.len() - before;
                    }
                    let before = staged.len();
                    if let Some(members) = self.bands.get(band as usize) {
                        members.append_to(lookup.keys.of(asked.sketch, band, level), staged);
                    }
                    if num + staged.len() - before < BUCKET_SIZE {
                        place = Some(level);
                        break;
                    }
                }
            }
            match place {
                Some(0) => {}
                Some(level) => exceptions.push((band as u16, level as u8)),
                None => exceptions.push((band as u16, CAPPED)),
            }
        }
        staged.sort_unstable();
        staged.dedup();
        Ok(exceptions)
    }

    /// The better of the evidence so far and that of rows of this batch, ascending.
    pub fn best(
        &mut self,
        lookup: &Lookup<'_>,
        own: &mut OwnSet<'_>,
        staged: &[Near],
        best: Option<Evidence>,
    ) -> Option<Evidence> {
        let rules = lookup.rules();
        let limits = (rules.min_equal(), lookup.sketching.isa);
        let mut best = best;
        for near in staged {
            if self.verdict(near.row).is_some() {
                continue;
            }
            let place = self.place(near.row) as usize;
            let other = Asked::of(self.documents, place, &[]);
            let Some(similarity) =
                self.similarity(rules, own, (place, near.distance), &other, limits)
            else {
                continue;
            };
            let zero = rules.zero_distance();
            let evidence = Evidence {
                kept_row: near.row,
                similarity,
                distance: zero.map(|_| distance_of(own.asked.sketch, other.sketch)),
            };
            if best.is_none_or(|best| is_better(&evidence, &best)) {
                best = Some(evidence);
            }
        }
        best
    }

    /// The similarity of a document and one of the batch at a distance, if they match.
    fn similarity(
        &mut self,
        rules: &Rules,
        own: &mut OwnSet<'_>,
        (place, distance): (usize, u16),
        other: &Asked<'_>,
        (min_equal, isa): (u32, Isa),
    ) -> Option<f64> {
        let asked = own.asked;
        let similarity = match (rules.matching, rules.method) {
            (Matching::Distance { short_threshold }, Method::Simhash { bits, .. }) => {
                if asked.num_features.min(other.num_features) < SHORT_FEATURES {
                    if !(rules.is_short(asked.num_features) && rules.is_short(other.num_features)) {
                        return None;
                    }
                    let (set, own) = (self.set(rules, place), own.get(rules));
                    let jaccard = own.similarity_from(&set, Measure::Jaccard, short_threshold, isa);
                    if jaccard.is_nan() {
                        return None;
                    }
                }
                1.0 - f64::from(distance) / f64::from(bits)
            }
            (Matching::Verified { measure, required }, method) => {
                if let Method::Minhash { slot_bytes, .. } = method
                    && num_equal(asked.sketch, other.sketch, slot_bytes as usize, isa) < min_equal
                {
                    return None;
                }
                let set = self.set(rules, place);
                own.get(rules).similarity_from(&set, measure, required, isa)
            }
            (Matching::Distance { .. }, Method::Minhash { .. }) => f64::NAN,
        };
        Some(similarity).filter(|similarity| !similarity.is_nan())
    }

    fn set(&mut self, rules: &Rules, place: usize) -> Arc<FeatureSet> {
        let documents = self.documents;
        let make = || {
            let (features, weights) = documents.set(place).unwrap_or((&[], &[]));
            let set = measured_set(rules, features, weights);
            Arc::new(set.with_names(documents.names(place).cloned()))
        };
        self.sets.entry(place as u32).or_insert_with(make).clone()
    }

    /// Adds the document at the next place and returns its row. It enters the tables unless it collapsed.
    pub fn push(
        &mut self,
        rules: &Rules,
        keys: &mut Keys,
        id: &'d str,
        asked: &Asked<'_>,
        verdict: Option<Evidence>,
        standing: Standing,
    ) -> u32 {
        let place = self.rows.len() as u32;
        let row = self.first_row + self.places.len() as u32;
        self.rows.push(row);
        self.places.push(place);
        self.verdicts.push(verdict);
        self.by_id.insert(id, place);
        let stands = matches!(standing, Standing::Member(_));
        let (Standing::Member(levels) | Standing::Collapsed(levels)) = standing;
        self.collapsed.push(!stands);
        if !stands {
            self.levels.push(levels);
            return row;
        }
        if let Some(class) = keys.class_hash(rules, asked.shape, asked.digest) {
            self.by_class.insert(class, row);
        }
        if !asked.is_blank() {
            for (band, members) in (0..).zip(&mut self.bands) {
                if let Some(level) = crate::state::in_memory::level_of(&levels, band) {
                    members.insert(keys.of(asked.sketch, band, level), row);
                }
            }
        }
        self.levels.push(levels);
        row
    }
}
