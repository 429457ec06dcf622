//! Which pairs of a range of documents are worth measuring?

use std::ops::Range;

use super::buckets::{BucketView, Slice, check_layout, num_members};
use super::entries::{PositionSet, push_bits};
use crate::error::{Error, invalid_if};
use crate::parallel::Run;
use crate::prefetch::prefetch_read;
use crate::search::{Bound, Call, Pairs, REMOVED, unbroken};
use crate::sketch::Signatures;

/// Later positions in one piece of work: few, since one may look at thousands of members and the next at none.
const GRAIN: usize = 64;
/// Number of slices below which starting a thread costs more than it saves.
const FEW_SLICES: usize = 2048;
/// Number of entries up to which sorting beats the set.
const FEW_ENTRIES: usize = 24;
/// Number of signatures that are prefetched ahead.
const LOOKAHEAD: usize = 8;
const CACHE_LINE: usize = 64;
/// Number of prefetched cache lines per signature; the processor's own prefetcher loads the rest.
const PREFETCHED_LINES: usize = 8;

/// State shared by the pieces of one call.
struct Request<'a> {
    buckets: BucketView<'a>,
    signatures: Signatures<'a>,
    order: &'a [u32],
    call: &'a Call<'a>,
    bound: Bound,
}

struct Scratch {
    seen: PositionSet,
    found: Vec<u32>,
}

impl BucketView<'_> {
    /// Returns the candidate pairs of a call, at most about `2 * max_pairs`: 1 ns per member looked at, 10 ns per pair. The
    /// slices of all positions of the range must be available.
    pub fn candidates(
        &self,
        signatures: Signatures<'_>,
        order: &[u32],
        call: &Call<'_>,
    ) -> Result<Pairs, Error> {
        invalid_if(order.len() != self.num_positions, "order", || {
            format!(
                "{} positions; the buckets hold {}",
                order.len(),
                self.num_positions
            )
        })?;
        let range = call.range.start as usize..call.range.end as usize;
        let held = self.first..(self.first + self.offsets.len()).saturating_sub(1);
        invalid_if(
            range.start > range.end || range.start < held.start || range.end > held.end,
            "range",
            || format!("{range:?} is outside the positions {held:?}"),
        )?;
        if let Some(states) = call.states
            && states.len() < range.end
        {
            return Err(Error::invalid(
                "states",
                format!("{} states; the range ends at {}", states.len(), range.end),
            ));
        }
        check_layout(&signatures)?;
        invalid_if(signatures.len() != self.num_rows, "signatures", || {
            format!(
                "{} rows; the buckets were built of {}",
                signatures.len(),
                self.num_rows
            )
        })?;
        let request = Request {
            buckets: *self,
            signatures,
            order,
            call,
            bound: Bound::new(call.max_pairs, call.threads),
        };
        let num_slices =
            self.offsets[range.end - self.first] - self.offsets[range.start - self.first];
        let run = match num_slices < FEW_SLICES {
            true => Run {
                threads: 1,
                ..call.run()
            },
            false => call.run(),
        };
        let make = || Scratch {
            seen: PositionSet::new(range.end),
            found: Vec::new(),
        };
        let parts = run.map(range.len(), GRAIN, make, |scratch, piece| {
            if request.bound.is_reached(piece.start) {
                return None;
            }
            let piece = range.start + piece.start..range.start + piece.end;
            let asked = piece.end as u32;
            let pairs = request.pairs_of(scratch, piece);
            request.bound.add(pairs.later.len());
            let end = pairs.end;
            Some((pairs, end, asked))
        })?;
        Ok(concatenate(range.start as u32, unbroken(parts)))
    }
}

impl BucketView<'_> {
    /// Collects the distinct members of the slices, ascending.
    fn find_distinct(&self, slices: &[u64], scratch: &mut Scratch) {
        let num_entries: usize = slices.iter().map(|&slice| num_members(slice)).sum();
        let Scratch { seen, found } = scratch;
        if num_entries <= FEW_ENTRIES || num_entries * 16 < seen.summary_len() {
            self.sort_distinct(slices, found);
        } else {
            self.mark_distinct(slices, seen);
            seen.drain_into(found);
        }
    }

    fn sort_distinct(&self, slices: &[u64], found: &mut Vec<u32>) {
        for &slice in slices {
            match self.unpack(slice) {
                Slice::Few(members) => found.extend_from_slice(members),
                Slice::Full(chunks) => {
                    for &[word, bits] in chunks {
                        push_bits(word as u32, bits, found);
                    }
                }
            }
        }
        found.sort_unstable();
        found.dedup();
    }

    fn mark_distinct(&self, slices: &[u64], seen: &mut PositionSet) {
        for &slice in slices {
            match self.unpack(slice) {
                Slice::Few(members) => {
                    for &member in members {
                        seen.insert(member);
                    }
                }
                Slice::Full(chunks) => {
                    for &[word, bits] in chunks {
                        seen.insert_word(word as u32, bits);
                    }
                }
            }
        }
    }
}

impl Request<'_> {
    fn pairs_of(&self, scratch: &mut Scratch, range: Range<usize>) -> Pairs {
        let mut pairs = Pairs {
            end: range.end as u32,
            ..Pairs::default()
        };
        for later in range {
            if pairs.later.len() >= self.bound.a_piece {
                pairs.end = later as u32;
                break;
            }
            let slices = self.buckets.slices_of(later);
            if slices.is_empty() {
                continue;
            }
            scratch.found.clear();
            self.buckets.find_distinct(slices, scratch);
            pairs.num_considered += scratch.found.len() as u64;
            if let Some(states) = self.call.states {
                leave_removed(states, &mut scratch.found);
            }
            self.keep_likely(later, &mut scratch.found);
            let num_kept = scratch.found.len();
            pairs
                .later
                .extend(std::iter::repeat_n(later as u32, num_kept));
            pairs.earlier.extend_from_slice(&scratch.found);
        }
        pairs
    }

    /// Keeps those with enough slots equal to those of `later`.
    fn keep_likely(&self, later: usize, found: &mut Vec<u32>) {
        if self.call.min_equal == 0 {
            return;
        }
        let row_bytes = self.signatures.num_slots * self.signatures.slot_bytes;
        let later_row = self.order[later] as usize;
        let mut num_kept = 0;
        for i in 0..found.len() {
            if let Some(&ahead) = found.get(i + 2 * LOOKAHEAD) {
                prefetch_read(self.order, ahead as usize);
            }
            if let Some(&ahead) = found.get(i + LOOKAHEAD) {
                let start = self.order[ahead as usize] as usize * row_bytes;
                for line in 0..row_bytes.div_ceil(CACHE_LINE).min(PREFETCHED_LINES) {
                    prefetch_read(self.signatures.bytes, start + line * CACHE_LINE);
                }
            }
            let earlier = found[i];
            let earlier_row = self.order[earlier as usize] as usize;
            let num_equal = self
                .signatures
                .num_equal(later_row, earlier_row, self.call.isa);
            // Whether a pair passes cannot be predicted, so there is no branch on it.
            found[num_kept] = earlier;
            num_kept += usize::from(num_equal >= self.call.min_equal);
        }
        found.truncate(num_kept);
    }
}

/// Drops removed positions, without a branch: whether one is removed cannot be predicted.
fn leave_removed(states: &[u8], found: &mut Vec<u32>) {
    let mut num_kept = 0;
    for i in 0..found.len() {
        let earlier = found[i];
        found[num_kept] = earlier;
        num_kept += usize::from(states[earlier as usize] != REMOVED);
    }
    found.truncate(num_kept);
}

fn concatenate(start: u32, parts: Vec<(Pairs, u32)>) -> Pairs {
    let num_pairs = parts.iter().map(|(part, _)| part.later.len()).sum();
    let mut all = Pairs {
        later: Vec::with_capacity(num_pairs),
        earlier: Vec::with_capacity(num_pairs),
        num_considered: 0,
        end: start,
    };
    for (part, end) in parts {
        all.end = end;
        all.later.extend_from_slice(&part.later);
        all.earlier.extend_from_slice(&part.earlier);
        all.num_considered += part.num_considered;
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::bands::BandBuckets;
    use crate::hash::mix64;

    #[test]
    fn sorting_and_marking_find_the_same() {
        let n = 2000_u32;
        // Slots with two values: buckets are full at every level, and partly filled ones also occur.
        let bytes: Vec<u8> = (0..u64::from(n) * 8)
            .map(|i| (mix64(i) % 2) as u8)
            .collect();
        let signatures = Signatures {
            bytes: &bytes,
            num_slots: 8,
            slot_bytes: 1,
        };
        let order: Vec<u32> = (0..n).collect();
        let stop = AtomicBool::new(false);
        let buckets = BandBuckets::build(signatures, &order, 4, 2, 3, Run::alone(&stop)).unwrap();
        let buckets = buckets.view();
        let mut seen = PositionSet::new(n as usize);
        let mut num_full = 0;
        for later in 0..n as usize {
            let slices = buckets.slices_of(later);
            let (mut sorted, mut marked) = (Vec::new(), Vec::new());
            buckets.sort_distinct(slices, &mut sorted);
            buckets.mark_distinct(slices, &mut seen);
            seen.drain_into(&mut marked);
            assert_eq!(sorted, marked);
            num_full += slices
                .iter()
                .filter(|&&slice| matches!(buckets.unpack(slice), Slice::Full(_)))
                .count();
        }
        assert!(num_full > 1000);
    }
}
