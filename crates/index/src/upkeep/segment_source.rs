//! What does the store provide for building segments?

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use likewise_core::features::Shape;
use likewise_disk::Error;
use likewise_disk::segments::{BandPlan, HammingPlan, Needed, RowSource, SegmentPlan, SourceRow};
use likewise_disk::store::Store;

use crate::keys::Keys;
use crate::rules::{Method, Rules};
use crate::state::in_memory::COLLAPSED;

/// Bytes of tables for a fingerprint of a large segment: more would be faster, but most rows stand in such segments.
const TABLE_BYTES: u32 = 22;
/// Rows of a large segment. In small ones few bytes would cost much time, as each entry has more bits left.
const LARGE: usize = 1 << 21;

/// Bytes of tables per fingerprint of a segment with this many rows; `None` for the fastest.
pub fn table_bytes(num_rows: usize) -> Option<u32> {
    (num_rows >= LARGE).then_some(TABLE_BYTES)
}

/// Rows that are read in one transaction, a matter of milliseconds: while one is open, the log cannot restart.
const ROWS_A_STATE: u32 = 1 << 10;

/// The contents of segments by these rules; fingerprints with at most this many bytes of tables each.
pub fn segment_plan(rules: &Rules, table_bytes: Option<u32>) -> SegmentPlan {
    match rules.method {
        Method::Simhash { bits, within } => SegmentPlan {
            classes: true,
            hamming: Some(HammingPlan {
                bits,
                within,
                table_bytes,
            }),
            bands: None,
        },
        Method::Minhash {
            num_slots,
            slot_bytes,
            bands,
            rows,
            ..
        } => SegmentPlan {
            classes: true,
            hamming: None,
            bands: Some(BandPlan {
                num_slots,
                slot_bytes,
                bands,
                rows,
            }),
        },
    }
}

/// The rows of a store as segments take them.
pub struct TrueRows<'a> {
    /// The truth.
    pub store: &'a Store,
    /// Decides which rows are in tables.
    pub rules: &'a Rules,
    pub last_event: u64,
    /// Most rows of any range that are not gone.
    pub most_rows: u32,
    /// Ends the work when set.
    pub cancel: &'a AtomicBool,
}

impl RowSource for TrueRows<'_> {
    fn identity(&self) -> [u8; 16] {
        self.store.identity()
    }

    fn sketch_id(&self) -> &str {
        &self.store.description().sketch_id
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn most_rows(&self, rows: &Range<u32>) -> u32 {
        self.most_rows.min(rows.end - rows.start)
    }

    fn batch_before(&self, end: u32) -> Result<u64, Error> {
        self.store.batch_before(end)?.ok_or_else(|| Error::Damaged {
            reason: format!("no batch of the store ends before row {end}"),
        })
    }

    fn each_row(
        &self,
        rows: Range<u32>,
        _: Needed,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // What happens between the states comes behind `last_event`, and is replayed.
        let (mut start, mut num_live) = (rows.start, 0);
        while start < rows.end {
            let end = rows.end.min(start.saturating_add(ROWS_A_STATE));
            // A chunk may cover many rows that were dropped.
            start = self.each_row_of_a_state(start..end, rows.end, &mut |row| {
                num_live += u32::from(!row.is_gone);
                each(row)
            })?;
        }
        match num_live <= self.most_rows {
            true => Ok(()),
            // A chunk that is older than it should be has documents that were dropped since.
            false => Err(Error::Damaged {
                reason: format!(
                    "the database has {num_live} documents of rows {rows:?} where there are at most {}",
                    self.most_rows
                ),
            }),
        }
    }
}

impl TrueRows<'_> {
    fn each_row_of_a_state(
        &self,
        rows: Range<u32>,
        most: u32,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<(), Error>,
    ) -> Result<u32, Error> {
        let mut next = rows.end;
        let keys = Keys::default();
        let sketch_bytes = self.rules.sketch_bytes();
        let mut exceptions: Vec<(u16, u8)> = Vec::new();
        self.store.scan(rows.clone(), |chunk| {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::Canceled);
            }
            next = chunk.span().end.min(most);
            let rows = rows.start..next;
            let mut levels = chunk.levels().iter().peekable();
            for (place, &row) in chunk.rows().iter().enumerate() {
                exceptions.clear();
                while let Some(level) = levels.next_if(|level| level.position as usize <= place) {
                    if level.position as usize == place {
                        exceptions.push((level.band, level.level));
                    }
                }
                if !rows.contains(&row) {
                    continue;
                }
                let verdict = chunk.verdicts()[place];
                let shape = chunk.shapes()[place];
                // One that collapsed and is kept was promoted since.
                let stands = shape & COLLAPSED == 0 || verdict.is_none();
                let digest = chunk.feature_digests().map_or(0, |digests| digests[place]);
                let class = keys.class_hash(self.rules, shape, digest);
                each(&SourceRow {
                    row,
                    id: chunk.id(place),
                    sketch: &chunk.sketches()[place * sketch_bytes..(place + 1) * sketch_bytes],
                    leader: verdict.map(|evidence| evidence.kept_row),
                    is_gone: chunk.gone()[place],
                    is_short: self.rules.is_short(chunk.num_features()[place]),
                    is_found: stands && shape & !COLLAPSED != Shape::Empty as u8,
                    class: class.filter(|_| stands),
                    levels: &exceptions,
                })?;
            }
            Ok(())
        })?;
        Ok(next)
    }
}
