//! Which records of documents does the database still have, and how do those that are gone leave every file?

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use likewise_disk::segments::{delete_orphans, other_names};

use crate::error::{Error, Result};
use crate::index::Index;
use crate::lock::lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Present,
    /// An expired document that duplicates still name, so that upkeep does not drop it.
    Named,
    /// A document that is gone, and that upkeep drops.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRecord {
    /// Place of the id among the given ones.
    pub place: usize,
    pub row: u32,
    pub standing: Standing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// Whether the log was truncated; if not, a reader was using it.
    pub is_log_cut: bool,
    /// Entries of the directory of segments that belong to no live one and could not be deleted.
    pub left: Vec<String>,
}

impl Index {
    /// All records of ids, by place and row, from all chunks; of equal ids the first place counts.
    pub fn records_of(&self, ids: &[&str], cancel: &AtomicBool) -> Result<Vec<StoredRecord>> {
        self.ready(cancel)?;
        let mut places = HashMap::new();
        for (place, &id) in ids.iter().enumerate() {
            places.entry(id).or_insert(place);
        }
        self.repairing(|| {
            let lease = self.shared.lease(&self.shared.state())?;
            let expired_below = lease.position().expired_below;
            let mut records = Vec::new();
            lease.scan(0..lease.num_rows(), |chunk| {
                if cancel.load(Ordering::Relaxed) {
                    return Err(likewise_disk::Error::Canceled);
                }
                let documents = chunk.rows().iter().zip(chunk.gone()).enumerate();
                for (i, (&row, &is_gone)) in documents {
                    if let Some(&place) = places.get(chunk.id(i)) {
                        let standing = match is_gone {
                            true => Standing::Gone,
                            false => Standing::Present,
                        };
                        records.push(StoredRecord {
                            place,
                            row,
                            standing,
                        });
                    }
                }
                Ok(())
            })?;
            if records.iter().any(|record| record.row < expired_below) {
                let named = lease.leaders_below(expired_below, cancel)?;
                for record in &mut records {
                    if named.contains(&record.row) {
                        record.standing = Standing::Named;
                    }
                }
            }
            records.sort_unstable_by_key(|record| (record.place, record.row));
            Ok(records)
        })
    }

    /// Compacts the index and rewrites the database, so that no file holds anything of documents that are gone.
    pub fn purge(&self, threads: usize, cancel: &AtomicBool) -> Result<Purged> {
        self.ready(cancel)?;
        self.quiesce();
        let result = self.repairing(|| {
            self.compact_quiet(threads, cancel)?;
            self.rewrite_quiet()
        });
        self.shared.is_building.store(false, Ordering::Release);
        result
    }

    fn rewrite_quiet(&self) -> Result<Purged> {
        let shared = &self.shared;
        let mut writer = lock(&shared.writer);
        let store = writer.as_mut().ok_or(Error::ReadOnly)?;
        let live: Vec<String> = store
            .segments()?
            .into_iter()
            .map(|live| live.name)
            .collect();
        delete_orphans(&shared.segment_dir(), shared.files(), &live)?;
        let left = other_names(&shared.segment_dir(), shared.files(), &live)?;
        let is_log_cut = store.rewrite()?;
        shared.note_log(store);
        Ok(Purged { left, is_log_cut })
    }
}
