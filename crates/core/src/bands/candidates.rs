//! Which pairs of a range of documents are worth measuring?

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::buckets::{BandBuckets, check_rows, unpack};
use super::position_set::PositionSet;
use crate::error::Error;
use crate::isa::Isa;
use crate::parallel::map_ranges;
use crate::prefetch::prefetch_read;
use crate::sketch::Signatures;
use crate::states::REMOVED;

/// Pairs of positions, sorted by (later, earlier), each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// The document of lower priority of each pair.
    pub later: Vec<u32>,
    /// The document of higher priority of each pair; smaller than its `later`.
    pub earlier: Vec<u32>,
    /// Distinct candidate pairs before states and estimate left some out.
    pub num_considered: u64,
}

/// Later positions in one piece of work: few, since one may look at thousands of members and its neighbour at none.
const GRAIN: usize = 64;
/// Slices below which starting a thread costs more than it saves.
const FEW_SLICES: usize = 2048;
/// Entries up to which sorting beats the set.
const FEW_ENTRIES: usize = 24;
/// Signatures ahead for which memory is asked.
const LOOKAHEAD: usize = 8;
const CACHE_LINE: usize = 64;
/// Cache lines of a signature that are asked for; the processor's own prefetcher brings the rest.
const PREFETCHED_LINES: usize = 8;

/// What the pieces of one call share.
struct Request<'a> {
    buckets: &'a BandBuckets,
    signatures: Signatures<'a>,
    order: &'a [u32],
    states: Option<&'a [u8]>,
    min_equal: u32,
    isa: Isa,
}

struct Scratch {
    seen: PositionSet,
    found: Vec<u32>,
}

impl BandBuckets {
    /// Candidate pairs whose later position lies in `range`, sorted by (later, earlier), each once.
    ///
    /// Left out are pairs whose earlier document has `states[earlier] == REMOVED`, and pairs of fewer than `min_equal` equal slots.
    /// `signatures` and `order` are those of [`BandBuckets::build`].
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where `range`, `order` or `states` do not fit the positions; [`Error::Cancelled`].
    ///
    /// # Cost
    /// About 1 ns a bucket member looked at and 10 ns a distinct pair; an eighth of a byte a position a thread.
    #[allow(clippy::too_many_arguments)]
    pub fn candidates(
        &self,
        signatures: Signatures<'_>,
        order: &[u32],
        range: Range<u32>,
        states: Option<&[u8]>,
        min_equal: u32,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Pairs, Error> {
        if order.len() != self.len() {
            return Err(Error::invalid(
                "order",
                format!("{} positions; the buckets hold {}", order.len(), self.len()),
            ));
        }
        let range = range.start as usize..range.end as usize;
        if range.start > range.end || range.end > self.len() {
            return Err(Error::invalid(
                "range",
                format!("{range:?} is outside the {} positions", self.len()),
            ));
        }
        if let Some(states) = states
            && states.len() < range.end
        {
            return Err(Error::invalid(
                "states",
                format!("{} states; the range ends at {}", states.len(), range.end),
            ));
        }
        // Earlier positions lie before the range's end.
        check_rows(&signatures, &order[..range.end])?;
        let request = Request {
            buckets: self,
            signatures,
            order,
            states,
            min_equal,
            isa,
        };
        let num_slices = self.offsets[range.end] - self.offsets[range.start];
        let threads = if num_slices < FEW_SLICES { 1 } else { threads };
        let parts = map_ranges(
            range.len(),
            GRAIN,
            threads,
            cancel,
            || Scratch {
                seen: PositionSet::new(range.end),
                found: Vec::new(),
            },
            |scratch, piece| {
                request.pairs_of(scratch, range.start + piece.start..range.start + piece.end)
            },
        )?;
        Ok(concatenate(parts))
    }
}

impl Request<'_> {
    fn pairs_of(&self, scratch: &mut Scratch, range: Range<usize>) -> Pairs {
        let mut pairs = Pairs::default();
        for later in range {
            let slices =
                &self.buckets.slices[self.buckets.offsets[later]..self.buckets.offsets[later + 1]];
            if slices.is_empty() {
                continue;
            }
            scratch.found.clear();
            self.find_distinct(slices, scratch);
            pairs.num_considered += scratch.found.len() as u64;
            if let Some(states) = self.states {
                scratch
                    .found
                    .retain(|&earlier| states[earlier as usize] != REMOVED);
            }
            self.keep_likely(later, &scratch.found, &mut pairs);
        }
        pairs
    }

    /// Distinct members of the slices, ascending.
    fn find_distinct(&self, slices: &[u64], scratch: &mut Scratch) {
        let num_entries: usize = slices.iter().map(|&slice| unpack(slice).1).sum();
        let Scratch { seen, found } = scratch;
        let members = |slice: u64| {
            let (start, length) = unpack(slice);
            &self.buckets.members[start..start + length]
        };
        if num_entries <= FEW_ENTRIES || num_entries * 16 < seen.summary_len() {
            for &slice in slices {
                found.extend_from_slice(members(slice));
            }
            found.sort_unstable();
            found.dedup();
        } else {
            for &slice in slices {
                for &member in members(slice) {
                    seen.insert(member);
                }
            }
            seen.drain_into(found);
        }
    }

    /// Appends the pairs of `later` that have enough equal slots.
    fn keep_likely(&self, later: usize, found: &[u32], pairs: &mut Pairs) {
        if self.min_equal == 0 {
            pairs.later.extend(found.iter().map(|_| later as u32));
            pairs.earlier.extend_from_slice(found);
            return;
        }
        let row_bytes = self.signatures.num_slots * self.signatures.slot_bytes;
        let later_row = self.order[later] as usize;
        for (i, &earlier) in found.iter().enumerate() {
            if let Some(&ahead) = found.get(i + LOOKAHEAD) {
                let start = self.order[ahead as usize] as usize * row_bytes;
                for line in 0..row_bytes.div_ceil(CACHE_LINE).min(PREFETCHED_LINES) {
                    prefetch_read(self.signatures.bytes, start + line * CACHE_LINE);
                }
            }
            let earlier_row = self.order[earlier as usize] as usize;
            let num_equal = self.signatures.num_equal(later_row, earlier_row, self.isa);
            if num_equal >= self.min_equal {
                pairs.later.push(later as u32);
                pairs.earlier.push(earlier);
            }
        }
    }
}

fn concatenate(parts: Vec<Pairs>) -> Pairs {
    let num_pairs = parts.iter().map(|part| part.later.len()).sum();
    let mut all = Pairs {
        later: Vec::with_capacity(num_pairs),
        earlier: Vec::with_capacity(num_pairs),
        num_considered: 0,
    };
    for part in parts {
        all.later.extend_from_slice(&part.later);
        all.earlier.extend_from_slice(&part.earlier);
        all.num_considered += part.num_considered;
    }
    all
}
