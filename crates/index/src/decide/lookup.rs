//! What do the tables say of a document?

use std::ops::{Deref, Range};
use std::sync::Arc;

use likewise_core::features::{Extractor, digest};
use likewise_core::sketch::signatures::num_equal;
use likewise_core::verify::FeatureSet;
use likewise_disk::store::{Content, DocumentRow, Evidence, Row, Store};
use xxhash_rust::xxh3::xxh3_64;

use crate::decide::asked::{Asked, Collapse};
use crate::documents::{Documents, Sketching, measured_set, wide};
use crate::error::{Error, Result};
use crate::keys::{Keys, distance_of};
use crate::rules::{Method, Rules};
use crate::state::bits::{Quick, RecentSets};
use crate::state::in_memory::is_blank;
use crate::state::promoted::PromotedTables;
use crate::state::{Layer, State};

/// Rows of the store that are held while a batch is looked at.
const MAX_HELD: usize = 8192;

/// Looks documents up in one state of an index; of one thread.
pub struct Lookup<'a> {
    /// What is known.
    pub state: &'a State,
    pub records: &'a dyn Records,
    pub sketching: &'a Sketching,
    pub recent: &'a RecentSets,
    pub keys: Keys,
    /// Rows from this one on are treated as if they were not there.
    pub end: u32,
    /// Changes of the present removal that are not in the state yet.
    pub pending: Pending,
    /// Answers of segments about the documents that are looked up now.
    pub ahead: Option<Prefetched>,
    /// Rows of the store that were read lately.
    pub held: Quick<u32, Row>,
    extractor: Option<Extractor>,
    pub found: Vec<u32>,
}

/// Changes that are not in the state yet.
#[derive(Debug, Default)]
pub struct Pending {
    /// A row on its way out.
    pub gone: Option<u32>,
    /// Rows below expire now.
    pub expired_below: u32,
    /// Rows that are kept from now on.
    pub promoted: Vec<u32>,
    /// Those of them that no table finds.
    pub promoted_tables: PromotedTables,
}

/// A row of the store whose verdict goes with the state: a record read later may come from a page whose last write was
/// lost, and then names a document that is not kept any more.
pub fn stored_row(state: &State, store: &Store, row: u32) -> Result<Row> {
    let stored = store.row(row)?;
    let Some(evidence) = stored.verdict else {
        return Ok(stored);
    };
    let kept_row = evidence.kept_row;
    let is_kept = kept_row < state.expired_below
        || state.is_gone(row)
        || (!state.gone.contains(kept_row) && state.is_kept(kept_row)?);
    // A state that is behind the store knows less than the record.
    if is_kept || store.read_position()?.last_event != state.last_event {
        return Ok(stored);
    }
    Err(Error::Disk(likewise_disk::Error::Damaged {
        reason: format!("the database is damaged: the verdict of row {row} is an older one"),
    }))
}

impl<'a> Lookup<'a> {
    pub fn new(
        state: &'a State,
        records: &'a dyn Records,
        sketching: &'a Sketching,
        recent: &'a RecentSets,
        keys: Keys,
    ) -> Self {
        Lookup {
            state,
            records,
            sketching,
            recent,
            keys,
            end: u32::MAX,
            pending: Pending::default(),
            ahead: None,
            held: Quick::default(),
            extractor: None,
            found: Vec::new(),
        }
    }

    pub fn rules(&self) -> &'a Rules {
        &self.sketching.rules
    }

    pub fn row(&mut self, row: u32) -> Result<DocumentRow<'_>> {
        if let Some(tail) = self.state.memory_of(row) {
            return Ok(tail.row(row));
        }
        if self.held.len() > MAX_HELD {
            self.held.clear();
        }
        use std::collections::hash_map::Entry;
        let stored = match self.held.entry(row) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => place.insert(self.records.row(self.state, row)?),
        };
        Ok(stored.at(row))
    }

    pub fn id(&mut self, row: u32) -> Result<String> {
        if let Some(tail) = self.state.memory_of(row) {
            return Ok(tail.id(row).to_owned());
        }
        match self.held.get(&row) {
            Some(held) => Ok(held.id.clone()),
            None => self.records.id(row),
        }
    }

    /// Whether a row is gone, or one of those that are not to be seen.
    pub fn is_gone(&self, row: u32) -> bool {
        row >= self.end
            || self.pending.gone == Some(row)
            || row < self.pending.expired_below
            || self.state.is_gone(row)
    }

    /// Whether a row is kept and not gone.
    pub fn is_kept(&self, row: u32) -> Result<bool> {
        Ok(!self.is_gone(row)
            && (self.pending.promoted.contains(&row) || self.state.is_kept(row)?))
    }

    /// The row of an id that is not gone.
    pub fn row_of_id(&mut self, id: &str, place: Option<u32>) -> Result<Option<u32>> {
        let hash = xxh3_64(id.as_bytes());
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let ahead = self.ahead.as_ref().zip(place);
        if let Some((ahead, place)) = ahead {
            ahead.ids_of(place, &mut found);
        }
        for layer in &self.state.layers {
            match layer {
                Layer::Segment(_) if ahead.is_some() => {}
                Layer::Segment(segment) => segment.rows_of_id(hash, &mut found)?,
                Layer::Memory(tail) => tail.rows_of_id(hash, &mut found),
            }
        }
        let mut of_id = None;
        for &row in &found {
            if !self.is_gone(row) && self.row(row)?.id == id {
                of_id = Some(row);
                break;
            }
        }
        self.found = found;
        Ok(of_id)
    }

    pub fn extractor(&mut self) -> &mut Extractor {
        let sketching = self.sketching;
        self.extractor
            .get_or_insert_with(|| (sketching.make_extractor)(sketching.isa))
    }

    /// Whether a row has so few features that they also decide in a Hamming-only recipe.
    pub fn is_short(&mut self, row: u32) -> Result<bool> {
        match self.state.layer_of(row) {
            Some(Layer::Segment(segment)) => Ok(segment.is_short(row)?),
            _ => {
                let num_features = self.row(row)?.num_features;
                Ok(self.rules().is_short(num_features))
            }
        }
    }

    /// The digest of the feature set of a row that is short, or whose pairs are verified.
    pub fn digest_of(&mut self, row: u32) -> Result<u128> {
        if let Some(tail) = self.state.memory_of(row) {
            return Ok(tail.row(row).digest);
        }
        self.row(row)?;
        match self.held.get(&row).and_then(|held| held.feature_digest) {
            Some(digest) => Ok(digest),
            None => self.stored_digest(row),
        }
    }

    pub fn stored_digest(&mut self, row: u32) -> Result<u128> {
        Ok(match self.records.content(row)? {
            Content::Features(features, weights) => wide(digest(&features, &weights)),
            Content::Text(text) => {
                let document = self.sketching.text_kind.document(&text);
                let view = self.extractor().features(document);
                wide(digest(view.features, view.weights))
            }
            Content::Absent => 0,
        })
    }

    /// Whether two documents are of one class: no comparison could tell them apart.
    fn is_of_class(&mut self, asked: &Asked<'_>, row: u32) -> Result<bool> {
        let rules = self.rules();
        if !rules.is_distance_only() || asked.is_blank() || asked.distance_of(row).is_none() {
            let known = self.row(row)?;
            if is_blank(known.shape) || asked.is_blank() {
                return Ok(is_blank(known.shape) && asked.is_blank());
            }
            if !rules.is_distance_only() {
                return Ok(self.digest_of(row)? == asked.digest);
            }
        }
        if self.distance(asked, row)? != Some(0) {
            return Ok(false);
        }
        let is_short = rules.is_short(asked.num_features);
        if self.is_short(row)? != is_short {
            return Ok(false);
        }
        Ok(!is_short || self.digest_of(row)? == asked.digest)
    }

    /// Rows that represent the class of a document and are not gone.
    pub fn rows_of_class(&mut self, asked: &Asked<'_>) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        let shape = asked.shape & 3;
        match self.keys.class_hash(self.rules(), shape, asked.digest) {
            Some(hash) => {
                let ahead = self.ahead.as_ref().zip(asked.place);
                if let Some((ahead, place)) = ahead {
                    ahead.classes_of(place, &mut found);
                }
                for layer in &self.state.layers {
                    match layer {
                        Layer::Segment(_) if ahead.is_some() => {}
                        Layer::Segment(segment) => segment.rows_of_class(hash, &mut found)?,
                        Layer::Memory(tail) => tail.rows_of_class(hash, &mut found),
                    }
                }
                self.state.promoted_tables.rows_of_class(hash, &mut found);
                self.pending.promoted_tables.rows_of_class(hash, &mut found);
            }
            None => {
                let same = asked.near.iter().filter(|near| near.distance == 0);
                found.extend(same.map(|near| near.row));
                let promoted_tables = self.pending.promoted_tables.rows().iter();
                found.extend(
                    promoted_tables
                        .copied()
                        .filter(|row| !asked.near.iter().any(|n| n.row == *row)),
                );
            }
        }
        let mut of_class = Vec::new();
        for row in found {
            if !self.is_gone(row) && self.is_of_class(asked, row)? {
                of_class.push(row);
            }
        }
        of_class.sort_unstable();
        of_class.dedup();
        Ok(of_class)
    }

    /// What a document collapses into; `None` if no row represents its class.
    pub fn collapse(&mut self, asked: &Asked<'_>) -> Result<Option<Collapse>> {
        let of_class = self.rows_of_class(asked)?;
        for &row in &of_class {
            if self.is_kept(row)? {
                return Ok(Some(Collapse {
                    evidence: self.equal(row),
                    into: row,
                }));
            }
        }
        for &row in &of_class {
            if let Some(evidence) = self.row(row)?.verdict
                && !self.is_gone(evidence.kept_row)
            {
                return Ok(Some(Collapse {
                    evidence,
                    into: row,
                }));
            }
        }
        Ok(None)
    }

    /// Evidence by an equal document.
    pub fn equal(&self, row: u32) -> Evidence {
        Evidence {
            kept_row: row,
            similarity: 1.0,
            distance: self.rules().zero_distance(),
        }
    }

    pub fn set_of(&mut self, row: u32) -> Result<Arc<FeatureSet>> {
        if let Some(set) = self.recent.get(row) {
            return Ok(set);
        }
        let set = match self.records.content(row)? {
            Content::Features(features, weights) => measured_set(self.rules(), &features, &weights),
            Content::Text(text) => {
                let sketching = self.sketching;
                sketching.set_of_text(self.extractor(), &text)
            }
            Content::Absent => FeatureSet::new(&[], &[]),
        };
        let set = Arc::new(set);
        self.recent.insert(row, set.clone());
        Ok(set)
    }

    /// Whether the signatures of a document and a row have slots enough in common.
    pub fn may_match(&mut self, asked: &Asked<'_>, row: u32, min_equal: u32) -> Result<bool> {
        if min_equal == 0 {
            return Ok(true);
        }
        let Method::Minhash { slot_bytes, .. } = self.rules().method else {
            return Ok(true);
        };
        let isa = self.sketching.isa;
        let known = self.row(row)?;
        Ok(num_equal(asked.sketch, known.sketch, slot_bytes as usize, isa) >= min_equal)
    }

    pub fn distance(&mut self, asked: &Asked<'_>, row: u32) -> Result<Option<u16>> {
        if self.rules().zero_distance().is_none() {
            return Ok(None);
        }
        if let Some(distance) = asked.distance_of(row) {
            return Ok(Some(distance));
        }
        let known = self.row(row)?;
        Ok(Some(distance_of(asked.sketch, known.sketch)))
    }
}

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
        if state.segments().next().is_none() {
            return Ok(ahead);
        }
        let ids = ids.map_or(&[][..], |ids| &ids[range.clone()]);
        let of_ids: Vec<u64> = ids.iter().map(|id| xxh3_64(id.as_bytes())).collect();
        let (mut of_classes, mut places) = (Vec::new(), Vec::new());
        for (place, i) in range.clone().enumerate() {
            let digest = documents.feature_digests.get(i).copied().unwrap_or(0);
            if let Some(hash) = keys.class_hash(rules, documents.shapes[i], digest) {
                of_classes.push(hash);
                places.push(place as u32);
            }
        }
        for segment in state.segments() {
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
            for segment in state.segments() {
                segment.buckets(band, &of_band, &mut found)?;
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

/// What is kept of each document, by row.
pub trait Records {
    /// A row that no layer of the state holds in memory.
    fn row(&self, state: &State, row: u32) -> Result<Row>;

    fn id(&self, row: u32) -> Result<String>;

    /// What is stored of a row in addition to its sketch.
    fn content(&self, row: u32) -> Result<Content>;

    /// Runs `read` on one state of the records.
    fn read_together(&self, read: &mut dyn FnMut(&dyn Records) -> Result<()>) -> Result<()>;
}

/// Records by way of what lends them.
pub struct Lent<D>(pub D);

impl<D: Deref<Target: Records>> Records for Lent<D> {
    fn row(&self, state: &State, row: u32) -> Result<Row> {
        self.0.deref().row(state, row)
    }

    fn id(&self, row: u32) -> Result<String> {
        self.0.deref().id(row)
    }

    fn content(&self, row: u32) -> Result<Content> {
        self.0.deref().content(row)
    }

    fn read_together(&self, read: &mut dyn FnMut(&dyn Records) -> Result<()>) -> Result<()> {
        self.0.deref().read_together(read)
    }
}
