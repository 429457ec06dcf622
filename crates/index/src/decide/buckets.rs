//! Which rows does a document look at?

use likewise_core::bands::{BUCKET_SIZE, NUM_LEVELS};

use crate::decide::asked::Asked;
use crate::decide::lookup::Lookup;
use crate::error::{Error, Result};
use crate::rules::Method;
use crate::state::Layer;
use crate::state::in_memory::level_of;

/// The level of a band at which a document could become a member, and its number of members; none if all are full.
pub type BandEnd = Option<(u32, usize)>;

impl Lookup<'_> {
    /// The rows that a document looks at: those near it, or the members of its buckets, ascending. Gives its place in each band too.
    pub fn seen(&mut self, asked: &Asked<'_>) -> Result<(Vec<u32>, Vec<BandEnd>)> {
        let mut seen = Vec::new();
        let mut ends = Vec::new();
        if asked.is_blank() {
            return Ok((seen, ends));
        }
        let Method::Minhash { bands, .. } = self.rules().method else {
            return Ok((asked.near.iter().map(|near| near.row).collect(), ends));
        };
        // A level is filled before the one below it: what has room has none below, until documents go.
        let has_gaps = self.pending.gone.is_some() || self.state.has_gone();
        for band in 0..bands {
            let mut end = None;
            for level in 0..NUM_LEVELS {
                let before = seen.len();
                self.bucket(asked, band, level, &mut seen)?;
                let num = seen.len() - before;
                if end.is_none() && num < BUCKET_SIZE {
                    end = Some((level, num));
                    if !has_gaps {
                        break;
                    }
                }
            }
            ends.push(end);
        }
        seen.sort_unstable();
        seen.dedup();
        Ok((seen, ends))
    }

    /// Appends the members of one bucket. Documents that are gone are none: tables may know them or not.
    pub fn bucket(
        &mut self,
        asked: &Asked<'_>,
        band: u32,
        level: u32,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let key = self.keys.of(asked.sketch, band, level);
        let begin = out.len();
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let ahead = self.ahead.as_ref().zip(asked.place).filter(|_| level == 0);
        if let Some((ahead, place)) = ahead {
            ahead.bucket_of(place, band, &mut found);
        }
        for layer in &self.state.layers {
            match layer {
                Layer::Memory(tail) => tail.bucket(band, key, out),
                Layer::Segment(_) if ahead.is_some() => {}
                Layer::Segment(segment) => segment.bucket(band, key, &mut found)?,
            }
        }
        for &row in &found {
            // Some bits of the key decide in a segment: who is found there is asked in full.
            if self.is_gone(row) {
                continue;
            }
            if level_of(self.row(row)?.levels, band) == Some(level)
                && self.key_of(row, band, level)? == key
            {
                out.push(row);
            }
        }
        self.found = found;
        self.state.promoted_tables.bucket(band, key, out);
        self.pending.promoted_tables.bucket(band, key, out);
        let mut end = begin;
        for at in begin..out.len() {
            if !self.is_gone(out[at]) {
                out[end] = out[at];
                end += 1;
            }
        }
        out.truncate(end);
        Ok(())
    }

    fn key_of(&mut self, row: u32, band: u32, level: u32) -> Result<u64> {
        self.row(row)?;
        let sketch = match (self.state.memory_of(row), self.held.get(&row)) {
            (Some(tail), _) => tail.row(row).sketch,
            (None, Some(held)) => &held.sketch,
            (None, None) => return Err(Error::Damaged),
        };
        Ok(self.keys.of(sketch, band, level))
    }
}
