//! What happens to the duplicates of a document that is removed?

use likewise_disk::store::{Content, Event, Evidence};

use crate::decide::asked::{Asked, Near};
use crate::decide::holder::Holder;
use crate::decide::lookup::Lookup;
use crate::decide::measure::OwnSet;
use crate::decide::nearest::near_rows;
use crate::documents::wide;
use crate::error::Error;
use crate::rules::Method;
use crate::state::Layer;
use crate::state::in_memory::COLLAPSED;
use likewise_core::features::digest;
use likewise_core::parallel::{Cancel, Run};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// What a removal did, by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    pub row: u32,
    pub was_kept: bool,
    /// Documents that are kept from now on, ascending.
    pub promoted: Vec<u32>,
    /// Documents that are removed because of another one from now on, ascending.
    pub moved: Vec<(u32, Evidence)>,
}

impl Removal {
    /// As the store takes it.
    pub fn event(&self) -> Event {
        Event::Removed {
            row: self.row,
            promoted: self.promoted.clone(),
            moved: self.moved.clone(),
        }
    }
}

impl Lookup<'_> {
    /// Rows that are removed because of a kept one and not gone, ascending.
    pub fn members(&mut self, leader: u32) -> Result<Vec<u32>, Error> {
        let mut found = Vec::new();
        for layer in &self.state.layers {
            match layer {
                Layer::Segment(segment) => segment.members(leader, &mut found)?,
                Layer::Memory(tail) => tail.members(leader, &mut found),
            }
        }
        if let Some(moved) = self.state.moved.get(&leader) {
            found.extend_from_slice(moved);
        }
        found.sort_unstable();
        found.dedup();
        let mut members = Vec::new();
        for row in found {
            if self.is_gone(row) || self.pending.promoted.contains(&row) {
                continue;
            }
            let verdict = self.row(row)?.verdict;
            if verdict.is_some_and(|evidence| evidence.kept_row == leader) {
                members.push(row);
            }
        }
        Ok(members)
    }

    /// What the removal of a row does: each of its duplicates, in order of row, goes to the kept document that matches it best, or is kept.
    pub fn removal(
        &mut self,
        row: u32,
        holder: &dyn Holder,
        cancel: &AtomicBool,
    ) -> Result<Removal, Error> {
        let was_kept = self.is_kept(row)?;
        // An expired document is not kept, but its duplicates still name it.
        let members = match was_kept || row < self.state.expired_below {
            true => self.members(row)?,
            false => Vec::new(),
        };
        self.pending.gone = Some(row);
        self.decide_again(row, was_kept, &members, holder, cancel)
    }

    /// What happens when rows expire whose duplicates take their place; the newest first, since it expires last.
    pub fn expiry(
        &mut self,
        rows: Range<u32>,
        holder: &dyn Holder,
        cancel: &AtomicBool,
    ) -> Result<Vec<Event>, Error> {
        self.pending.expired_below = rows.end;
        let mut events = Vec::new();
        for row in rows {
            let mut members = self.members(row)?;
            if members.is_empty() {
                continue;
            }
            members.reverse();
            let mut removal = self.decide_again(row, true, &members, holder, cancel)?;
            removal.promoted.sort_unstable();
            removal.moved.sort_unstable_by_key(|&(row, _)| row);
            events.push(removal.event());
        }
        Ok(events)
    }

    /// What happens to the duplicates of a row that is gone, one by one.
    fn decide_again(
        &mut self,
        row: u32,
        was_kept: bool,
        members: &[u32],
        holder: &dyn Holder,
        cancel: &AtomicBool,
    ) -> Result<Removal, Error> {
        let mut removal = Removal {
            row,
            was_kept,
            promoted: Vec::new(),
            moved: Vec::new(),
        };
        for &member in members {
            cancel.check()?;
            match self.other_evidence(member)? {
                Some(evidence) => removal.moved.push((member, evidence)),
                None => {
                    removal.promoted.push(member);
                    if self.row(member)?.shape & COLLAPSED != 0
                        && !self.is_promoted_found(member)?
                    {
                        let mut promoted_tables = std::mem::take(&mut self.pending.promoted_tables);
                        let stood = self.insert_promoted(&mut promoted_tables, member, holder);
                        self.pending.promoted_tables = promoted_tables;
                        stood?;
                    }
                    self.pending.promoted.push(member);
                }
            }
        }
        Ok(removal)
    }

    fn is_promoted_found(&self, row: u32) -> Result<bool, Error> {
        match self.state.layer_of(row) {
            Some(Layer::Segment(segment)) => Ok(segment.is_found(row)?),
            _ => Ok(false),
        }
    }

    /// The kept row that represents the class of a document, other than `but`.
    pub fn kept_of_class(&mut self, asked: &Asked<'_>, but: u32) -> Result<Option<u32>, Error> {
        for row in self.rows_of_class(asked)? {
            if row != but && self.is_kept(row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The best evidence against a row among the kept documents, earlier and later ones.
    fn other_evidence(&mut self, row: u32) -> Result<Option<Evidence>, Error> {
        let rules = *self.rules();
        let known = self.row(row)?;
        let sketch = known.sketch.to_vec();
        let (shape, num_features) = (known.shape, known.num_features);
        let (features, weights, names) = match self.records.content(row)? {
            Content::Features(features, weights) => (features, weights, None),
            Content::Text(text) => {
                let document = self.sketching.text_kind.document(&text);
                let view = self.extractor().features(document);
                let (features, weights) = (view.features.to_vec(), view.weights.to_vec());
                (features, weights, self.extractor().names())
            }
            Content::Absent => (Vec::new(), Vec::new(), None),
        };
        let cancel = AtomicBool::new(false);
        let mut near: Vec<Near> = Vec::new();
        if shape & !COLLAPSED != likewise_core::features::Shape::Empty as u8 {
            let found = near_rows(
                self.state,
                &rules,
                &sketch,
                self.sketching.isa,
                Run::alone(&cancel),
            )?;
            near.extend_from_slice(found.of(0));
            self.pending_near(&sketch, &mut near)?;
        }
        let asked = Asked {
            sketch: &sketch,
            shape: shape & !COLLAPSED,
            num_features,
            digest: match rules.is_distance_only() {
                true => wide(digest(&features, &weights)),
                false => self.digest_of(row)?,
            },
            set: Some((&features, &weights)),
            names: names.as_ref(),
            near: &near,
            place: None,
        };
        let (mut seen, _) = self.seen(&asked)?;
        if let Some(of_class) = self.kept_of_class(&asked, row)? {
            // Compared even without a common bucket, and if the text is empty.
            seen.push(of_class);
        }
        seen.sort_unstable();
        seen.dedup();
        seen.retain(|&other| other != row);
        self.best(&mut OwnSet::new(asked), &seen)
    }

    /// Adds documents of the present removal to those near a fingerprint.
    fn pending_near(&mut self, sketch: &[u8], near: &mut Vec<Near>) -> Result<(), Error> {
        let Method::Simhash { within, .. } = self.rules().method else {
            return Ok(());
        };
        for row in self.pending.promoted_tables.rows().to_vec() {
            let distance = crate::keys::distance_of(sketch, self.row(row)?.sketch);
            if u32::from(distance) <= within {
                near.push(Near { row, distance });
            }
        }
        near.sort_unstable_by_key(|near| near.row);
        Ok(())
    }
}
