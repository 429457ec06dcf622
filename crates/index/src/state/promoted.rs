//! How are promoted documents found that no table of a layer contains?
//!
//! A document that collapsed into another when it arrived is in no table. When it is promoted it must be found, so it is added here until a segment is
//! built that contains it.

use std::sync::atomic::AtomicBool;

use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{Building, HammingSet, Matches, Reach};
use likewise_hamming::plan::SearchPlan;

use crate::keys::{Keys, words_of};
use crate::rules::{Method, Rules};
use crate::state::bits::RowsByHash;
use crate::state::in_memory::level_of;

#[derive(Debug, Default)]
pub struct PromotedTables {
    /// Their rows, in the order of their promotion, without empty ones.
    rows: Vec<u32>,
    /// Empty ones.
    blank: Vec<u32>,
    by_class: RowsByHash,
    /// Fingerprints by place in `rows`.
    hamming: Option<HammingSet>,
    bands: Vec<RowsByHash>,
}

impl PromotedTables {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.blank.is_empty()
    }

    /// Empty ones.
    pub fn blank(&self) -> &[u32] {
        &self.blank
    }

    /// Their rows, without empty ones.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Adds an empty document: it is found by its class alone.
    pub fn insert_blank(&mut self, row: u32, class: Option<u64>) {
        self.blank.push(row);
        if let Some(class) = class {
            self.by_class.insert(class, row);
        }
    }

    /// Adds a document that is not empty, a member of the buckets of these levels.
    #[allow(clippy::too_many_arguments)]
    pub fn insert(
        &mut self,
        rules: &Rules,
        plan: Option<&SearchPlan>,
        keys: &mut Keys,
        row: u32,
        class: Option<u64>,
        sketch: &[u8],
        levels: &[(u16, u8)],
        isa: Isa,
    ) -> Result<(), Error> {
        let place = self.rows.len() as u32;
        self.rows.push(row);
        if let Some(class) = class {
            self.by_class.insert(class, row);
        }
        match (rules.method, plan) {
            (Method::Simhash { bits, .. }, Some(plan)) => {
                let words: Vec<u64> = words_of(sketch).collect();
                let fingerprints = Fingerprints::new(&words, bits);
                if self.hamming.is_none() {
                    self.hamming = Some(HammingSet::new(plan.clone())?);
                }
                if let Some(set) = &self.hamming {
                    let cancel = AtomicBool::new(false);
                    set.insert(
                        fingerprints,
                        Some(&[place]),
                        building(isa, Run::alone(&cancel)),
                    )?;
                }
            }
            (Method::Minhash { bands, .. }, _) => {
                self.bands.resize_with(bands as usize, RowsByHash::default);
                for (band, members) in (0..).zip(&mut self.bands) {
                    if let Some(level) = level_of(levels, band) {
                        members.insert(keys.of(sketch, band, level), row);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub fn rows_of_class(&self, hash: u64, out: &mut Vec<u32>) {
        self.by_class.append_to(hash, out);
    }

    pub fn bucket(&self, band: u32, key: u64, out: &mut Vec<u32>) {
        if let Some(members) = self.bands.get(band as usize) {
            members.append_to(key, out);
        }
    }

    /// Places in [`rows`](Self::rows) within a radius of each fingerprint.
    pub fn search(
        &self,
        queries: Fingerprints<'_>,
        reach: Reach<'_>,
    ) -> Result<Option<Matches>, Error> {
        let run = Run::alone(reach.run.cancel);
        let search = |set: &HammingSet| set.search(queries, Reach { run, ..reach });
        self.hamming.as_ref().map(search).transpose()
    }
}

/// Means of small insertions.
pub fn building(isa: Isa, run: Run<'_>) -> Building<'_> {
    Building {
        isa,
        run,
        memory_bytes: 64 << 20,
        with_rows: true,
    }
}
