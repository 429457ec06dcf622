//! How are documents added?

use likewise_core::parallel::{Run, lock};
use std::sync::atomic::AtomicBool;

use likewise_disk::store::{AddingRun, BandLevel, Keeps, NewContents, NewRows, Store};

use crate::decide::batch::StagedBatch;
use crate::decide::decide;
use crate::decide::holder::Holder;
use crate::decide::lookup::Lookup;
use crate::documents::Documents;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::queries::Verdicts;
use crate::shared::Shared;
use crate::state::in_memory::{COLLAPSED, MemoryRow};
use crate::state::promoted::building;

/// The stored bytes of the documents of a batch.
pub type TextOf<'a> = &'a (dyn Fn(usize) -> &'a [u8] + Sync);

impl Index {
    /// Decides documents in order and adds them in one transaction; one whose id exists with the same text changes
    /// nothing and gets its stored verdict, with another text all are refused. `text_of` returns the bytes to store.
    pub fn add(
        &self,
        ids: &[&str],
        documents: &Documents,
        text_of: Option<TextOf<'_>>,
        adding: Option<AddingRun>,
        now_s: u64,
        run: Run<'_>,
    ) -> Result<Verdicts> {
        self.ready(run.cancel)?;
        let verdicts =
            self.repairing(|| self.add_once(ids, documents, text_of, adding, now_s, run))?;
        self.build_when_due();
        self.checkpoint_when_due();
        self.let_build_catch_up(ids.len(), run.cancel);
        Ok(verdicts)
    }

    fn add_once(
        &self,
        ids: &[&str],
        documents: &Documents,
        text_of: Option<TextOf<'_>>,
        adding: Option<AddingRun>,
        now_s: u64,
        run: Run<'_>,
    ) -> Result<Verdicts> {
        let shared: &Shared = &self.shared;
        let mut writer = lock(&shared.writer);
        let store = writer.as_mut().ok_or(Error::ReadOnly)?;
        let now_s = shared.arrival_time(store, now_s)?;
        shared.expire(store, now_s, run.cancel)?;
        let state = shared.state();
        let staged = decide(shared, &state, store, documents, ids, run)?;
        let first_row = state.num_rows();
        let verdicts = verdicts_of(&staged, ids, first_row, &mut shared.lookup(&state, store))?;
        drop(state);
        if staged.places.is_empty() {
            return Ok(verdicts);
        }
        let places = || staged.places.iter().map(|&place| place as usize);
        let num_added = staged.places.len();
        let added = 0..num_added as u32;
        let levels: Vec<_> = added.map(|added| staged.levels_of(added)).collect();
        let row = |(added, place): (usize, usize)| {
            let row = MemoryRow::of_batch(documents, place, first_row + added as u32);
            MemoryRow {
                id: ids[place],
                shape: row.shape | (u8::from(staged.collapsed[added]) * COLLAPSED),
                verdict: staged.verdicts[added],
                levels: &levels[added],
                ..row
            }
        };
        let rows: Vec<MemoryRow<'_>> = places().enumerate().map(row).collect();
        let (sets, texts);
        let contents = match (shared.rules().keeps, text_of) {
            (Keeps::Text, Some(text_of)) => {
                texts = places().map(text_of).collect::<Vec<_>>();
                NewContents::Texts(&texts)
            }
            _ => {
                let own = |(features, weights)| (features, own_weights(weights));
                let all = places().map(|place| documents.set(place).map(own));
                sets = all.collect::<Vec<_>>();
                NewContents::Features(&sets)
            }
        };
        let stored = NewRows {
            contents,
            arrival_s: now_s,
            run: adding,
            ..NewRows::default()
        };
        let threads = if num_added == 1 { 1 } else { run.threads };
        shared.append(store, &rows, stored, threads)?;
        Ok(verdicts)
    }
}

/// Weights as the store takes them: none if all are 1.
pub(crate) fn own_weights(weights: &[u32]) -> &[u32] {
    match weights.iter().all(|&weight| weight == 1) {
        true => &[],
        false => weights,
    }
}

/// Verdicts on all documents of a batch, whose first added one gets row `first_row`.
fn verdicts_of(
    staged: &StagedBatch<'_>,
    ids: &[&str],
    first_row: u32,
    lookup: &mut Lookup<'_>,
) -> Result<Verdicts> {
    let mut verdicts = Verdicts {
        rows: staged.rows.clone(),
        added: vec![false; ids.len()],
        ..Verdicts::default()
    };
    for &place in &staged.places {
        verdicts.added[place as usize] = true;
    }
    for &row in &staged.rows {
        let evidence = staged.evidence(row);
        if let Some(evidence) = evidence {
            let id = match evidence.kept_row.checked_sub(first_row) {
                Some(added) => ids[staged.places[added as usize] as usize].to_owned(),
                None => staged.kept_id(evidence.kept_row, lookup)?,
            };
            verdicts.kept_ids.push(id);
        }
        verdicts.evidence.push(evidence);
    }
    Ok(verdicts)
}

impl Shared {
    /// Appends documents in one transaction, then to the newest rows in memory. `stored` has what only the store takes.
    pub(crate) fn append(
        &self,
        store: &mut Store,
        rows: &[MemoryRow<'_>],
        stored: NewRows<'_>,
        threads: usize,
    ) -> Result<()> {
        let rules = self.rules();
        let ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
        let sketches: Vec<&[u8]> = rows.iter().map(|row| row.sketch).collect();
        let shapes: Vec<u8> = rows.iter().map(|row| row.shape).collect();
        let num_features: Vec<u32> = rows.iter().map(|row| row.num_features).collect();
        let text_digests: Option<Vec<u64>> = rows.iter().map(|row| row.text_digest).collect();
        let digests: Vec<u128> = rows.iter().map(|row| row.digest).collect();
        let verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
        let levels = (0..).zip(rows).flat_map(|(position, row)| {
            row.levels.iter().map(move |&(band, level)| BandLevel {
                position,
                band,
                level,
            })
        });
        let new = NewRows {
            ids: &ids,
            sketches: &sketches.concat(),
            shapes: &shapes,
            num_features: &num_features,
            text_digests: text_digests.as_deref(),
            feature_digests: (!rules.is_distance_only()).then_some(&digests),
            verdicts: &verdicts,
            levels: &levels.collect::<Vec<_>>(),
            ..stored
        };
        store.append(&new, &[])?;
        self.note_log(store);
        let mut keys = self.keys.clone();
        let mut state = self.state_mut();
        if let Some(tail) = state.newest() {
            // Committed is committed: no signal ends it now.
            let cancel = &AtomicBool::new(false);
            let building = building(self.isa(), Run { threads, cancel });
            let extended = tail.extend(rules, &mut keys, rows.iter().copied(), building);
            drop(state);
            self.changed(store, extended.map_err(Error::from), cancel)?;
        }
        Ok(())
    }
}
