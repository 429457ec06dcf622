//! Which stored documents have the most similar sketches?

use std::sync::atomic::{AtomicBool, Ordering};

use likewise_core::error::Error as CoreError;
use likewise_core::sketch::signatures::num_equal;
use likewise_disk::store::Store;

use crate::decide::asked::Asked;
use crate::decide::lookup::Lookup;
use crate::error::Result;
use crate::keys::distance_of;
use crate::rules::Method;

/// Candidates that are measured for each document, and for each neighbor.
const LEAST_CANDIDATES: usize = 64;
const CANDIDATES_A_NEIGHBOR: usize = 4;

/// The sketches of all rows, by row; zero for rows without a record, which are never used.
#[derive(Debug, Default, Clone)]
pub struct Sketched {
    sketches: Vec<u8>,
    pub num_rows: u32,
}

impl Sketched {
    /// Reads the sketches of the rows up to `end` that are missing.
    pub fn extend(
        &mut self,
        store: &Store,
        end: u32,
        bytes: usize,
        cancel: &AtomicBool,
    ) -> Result<()> {
        let begin = self.num_rows;
        let size = end as usize * bytes;
        // A little more than is needed, so that single additions do not copy all.
        self.sketches
            .reserve_exact((size + size / 8).saturating_sub(self.sketches.len()));
        self.sketches.resize(size, 0);
        let sketches = &mut self.sketches;
        let mut is_canceled = false;
        let scanned = store.scan(begin..end, |chunk| {
            is_canceled |= cancel.load(Ordering::Relaxed);
            for (&row, sketch) in chunk.rows.iter().zip(chunk.sketches.chunks_exact(bytes)) {
                if (begin..end).contains(&row) {
                    let at = row as usize * bytes;
                    sketches[at..at + bytes].copy_from_slice(sketch);
                }
            }
            Ok(())
        });
        if is_canceled || scanned.is_err() {
            self.sketches.truncate(begin as usize * bytes);
        }
        if is_canceled {
            return Err(CoreError::Canceled.into());
        }
        scanned?;
        self.num_rows = end;
        Ok(())
    }
}

/// The documents among which neighbors are searched.
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a> {
    pub sketched: &'a Sketched,
    pub has_duplicates: bool,
}

impl Lookup<'_> {
    /// The rows whose sketches are most similar to that of a document, ascending: at least as many as wanted, if the index has them.
    pub fn most_similar(
        &self,
        asked: &Asked<'_>,
        pool: Pool<'_>,
        limit: usize,
    ) -> Result<Vec<u32>> {
        let bytes = self.rules().sketch_bytes();
        let num = LEAST_CANDIDATES.max(limit.saturating_mul(CANDIDATES_A_NEIGHBOR));
        let (isa, method) = (self.sketching.isa, self.rules().method);
        // Lower is more similar: unequal slots, or differing bits.
        let ranks = match method {
            Method::Simhash { bits, .. } => bits,
            Method::Minhash { num_slots, .. } => num_slots,
        };
        let absent = ranks + 1;
        let mut rank_of = Vec::with_capacity(pool.sketched.num_rows as usize);
        let mut counts = vec![0_usize; absent as usize + 1];
        let sketches = pool.sketched.sketches.chunks_exact(bytes);
        for (row, sketch) in (0..pool.sketched.num_rows).zip(sketches) {
            let is_there = match pool.has_duplicates {
                true => !self.is_gone(row),
                false => self.is_kept(row)?,
            };
            let rank = match (is_there, method) {
                (false, _) => absent,
                (true, Method::Simhash { .. }) => u32::from(distance_of(asked.sketch, sketch)),
                (true, Method::Minhash { slot_bytes, .. }) => {
                    ranks - num_equal(asked.sketch, sketch, slot_bytes as usize, isa)
                }
            };
            counts[rank as usize] += 1;
            rank_of.push(rank);
        }
        let mut left = num;
        let mut last = 0;
        for (rank, &count) in counts[..absent as usize].iter().enumerate() {
            last = rank as u32;
            if count >= left {
                break;
            }
            left -= count;
        }
        let mut found = Vec::with_capacity(num.min(rank_of.len()));
        for (row, rank) in (0..).zip(rank_of) {
            if rank < last {
                found.push(row);
            } else if rank == last && left > 0 {
                left -= 1;
                found.push(row);
            }
        }
        Ok(found)
    }
}
