//! How are documents added?

use likewise_core::parallel::{Run, lock};
use std::sync::atomic::AtomicBool;

use likewise_disk::store::{AddingRun, Keeps, NewContents, NewRows};

use crate::decide::decide;
use crate::decide::holder::Holder;
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
        let rules = shared.rules();
        let mut writer = lock(&shared.writer);
        let store = writer.as_mut().ok_or(Error::ReadOnly)?;
        let now_s = shared.arrival_time(store, now_s)?;
        shared.expire(store, now_s, run.cancel)?;
        let state = shared.state();
        let staged = decide(shared, &state, store, documents, ids, run)?;
        let first_row = state.num_rows();
        let mut verdicts = Verdicts {
            rows: staged.rows.clone(),
            added: vec![false; documents.len()],
            ..Verdicts::default()
        };
        for &place in &staged.places {
            verdicts.added[place as usize] = true;
        }
        let mut lookup = shared.lookup(&state, store);
        for &row in &staged.rows {
            let evidence = match row >= first_row {
                true => staged.verdict(row),
                false => staged.known_evidence.get(&row).copied(),
            };
            if let Some(evidence) = evidence {
                let id = match evidence.kept_row.checked_sub(first_row) {
                    Some(added) => ids[staged.places[added as usize] as usize].to_owned(),
                    None => match staged.kept_ids.get(&evidence.kept_row) {
                        Some(id) => id.clone(),
                        None => lookup.id(evidence.kept_row)?,
                    },
                };
                verdicts.kept_ids.push(id);
            }
            verdicts.evidence.push(evidence);
        }
        drop(lookup);
        drop(state);
        if staged.places.is_empty() {
            return Ok(verdicts);
        }

        let places = || staged.places.iter().map(|&place| place as usize);
        let bytes = rules.sketch_bytes();
        let is_whole = staged.places.len() == documents.len();
        let added_ids: Vec<&str> = places().map(|place| ids[place]).collect();
        let sketches: Vec<u8> = match is_whole {
            true => Vec::new(),
            false => places()
                .flat_map(|place| documents.sketch(place).iter().copied())
                .collect(),
        };
        let shapes: Vec<u8> = places()
            .zip(&staged.collapsed)
            .map(|(place, &collapsed)| {
                documents.shapes[place] | if collapsed { COLLAPSED } else { 0 }
            })
            .collect();
        let num_features: Vec<u32> = places()
            .map(|place| documents.num_features[place])
            .collect();
        let pick = |all: &[u64]| -> Vec<u64> { places().map(|place| all[place]).collect() };
        let text_digests =
            (!documents.text_digests.is_empty()).then(|| pick(&documents.text_digests));
        let feature_digests: Option<Vec<u128>> = (!rules.is_distance_only()).then(|| {
            places()
                .map(|place| documents.feature_digests[place])
                .collect()
        });
        let (mut sets, mut texts) = (Vec::new(), Vec::new());
        let contents = match (rules.keeps, text_of) {
            (Keeps::Text, Some(text_of)) => {
                texts.extend(places().map(text_of));
                NewContents::Texts(&texts)
            }
            _ => {
                sets.extend(places().map(|place| {
                    let (features, weights) = documents.set(place)?;
                    let are_ones = weights.iter().all(|&weight| weight == 1);
                    Some((features, if are_ones { &[][..] } else { weights }))
                }));
                NewContents::Features(&sets)
            }
        };
        let rows = NewRows {
            ids: &added_ids,
            sketches: if is_whole {
                &documents.sketches[..documents.len() * bytes]
            } else {
                &sketches
            },
            shapes: &shapes,
            num_features: &num_features,
            text_digests: text_digests.as_deref(),
            feature_digests: feature_digests.as_deref(),
            verdicts: &staged.verdicts,
            levels: &staged.levels,
            contents,
            arrival_s: now_s,
            arrivals_s: None,
            run: adding,
        };
        store.append(&rows, &[])?;
        shared.note_log(store);

        let mut exceptions: Vec<Vec<(u16, u8)>> = vec![Vec::new(); staged.places.len()];
        for level in &staged.levels {
            exceptions[level.position as usize].push((level.band, level.level));
        }
        let documents =
            staged
                .places
                .iter()
                .zip(&exceptions)
                .enumerate()
                .map(|(added, (&place, levels))| {
                    let place = place as usize;
                    MemoryRow {
                        row: first_row + added as u32,
                        id: ids[place],
                        sketch: documents.sketch(place),
                        shape: shapes[added],
                        num_features: documents.num_features[place],
                        text_digest: documents.text_digests.get(place).copied(),
                        digest: documents.feature_digests.get(place).copied().unwrap_or(0),
                        verdict: staged.verdicts[added],
                        levels,
                    }
                });
        let mut keys = shared.keys.clone();
        let mut state = shared.state_mut();
        if let Some(tail) = state.newest() {
            // Committed is committed: no signal ends it now.
            let cancel = AtomicBool::new(false);
            let threads = if added_ids.len() == 1 { 1 } else { run.threads };
            let building = building(
                shared.isa(),
                Run {
                    threads,
                    cancel: &cancel,
                },
            );
            let extended = tail.extend(rules, &mut keys, documents, building);
            drop(state);
            shared.changed(store, extended.map_err(Error::from), &cancel)?;
        }
        Ok(verdicts)
    }
}
