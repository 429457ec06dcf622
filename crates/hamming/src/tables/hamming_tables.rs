//! Which earlier fingerprints are near a later one?

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::block_table::{BlockTable, Neighbors};
use super::probe::probe_range;
use super::request::{EARLIER_SHIFT, LATER_SHIFT, Request};
use super::scan::scan_range;
use crate::code_planes::{CodePlanes, lay_out};
use crate::distance::Fingerprints;
use crate::kernels::run_kernel;
use crate::plan::block_radii::{plan_blocks, scan_cost};
use crate::{BLOCK_BITS, NUM_BLOCK_VALUES};
use likewise_core::bound::{Bound, unbroken};
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;

/// Number of later positions in one piece of work.
const GRAIN: usize = 128;
/// Estimated nanoseconds below which starting a thread costs more than it saves.
const WORTH_A_THREAD: f64 = 200_000.0;
/// Maximum number of codes for which a scan (about a millisecond) does not justify planning.
const FEW_CODES: usize = 4096;

/// How pairs are found. It does not affect the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The strategy with the lowest estimated cost.
    Cheapest,
    /// Tables on blocks of 16 bits whose neighbors are probed.
    Blocks,
    /// Comparing every pair.
    Scan,
}

/// Pairs of positions with their distances, sorted by (later, earlier), each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HammingPairs {
    /// The document of lower priority of each pair.
    pub later: Vec<u32>,
    /// The document of higher priority of each pair; smaller than its `later`.
    pub earlier: Vec<u32>,
    /// Number of differing bits.
    pub distance: Vec<u32>,
    /// Later positions from here on were not searched.
    pub end: u32,
}

/// Everything needed to find the pairs at distance `within` or less.
///
/// Documents are *positions*, `0..order.len()`, in order of priority. Memory is 8 bytes per word of a fingerprint and,
/// for each used block, the same again with 8 bytes per fingerprint and 256 KiB.
#[derive(Debug)]
pub struct HammingTables {
    pub(super) codes: CodePlanes,
    pub(super) within: u32,
    /// Empty if every pair is compared.
    pub(super) tables: Vec<BlockTable>,
    pub(super) neighbors: Neighbors,
    /// Estimated nanoseconds per position on one core.
    cost: f64,
}

impl HammingTables {
    /// Arranges the fingerprints `order[0], order[1], ...` for search by the cheapest strategy.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if the shapes do not fit or `within` is above `bits`, or
    /// [`Error::Canceled`].
    pub fn build(
        fingerprints: Fingerprints<'_>,
        order: &[u32],
        within: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        Self::build_for(
            Strategy::Cheapest,
            fingerprints,
            order,
            within,
            threads,
            cancel,
        )
    }

    /// Same as [`HammingTables::build`] with a given strategy, for tests and benchmarks.
    ///
    /// # Errors
    /// Returns the errors of [`HammingTables::build`].
    pub fn build_for(
        strategy: Strategy,
        fingerprints: Fingerprints<'_>,
        order: &[u32],
        within: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        check(&fingerprints, order, within)?;
        let codes = lay_out(&fingerprints, order);
        let num_blocks = fingerprints.bits / BLOCK_BITS;
        let (len, num_words) = (codes.len(), codes.num_words());
        let scan_cost = scan_cost(len, num_words);
        let mut radii = Vec::new();
        let mut cost = scan_cost;
        if strategy == Strategy::Blocks || (strategy == Strategy::Cheapest && len > FEW_CODES) {
            let histograms = map_ranges(
                num_blocks as usize,
                1,
                threads,
                cancel,
                || (),
                |(), range| histogram(&codes, range.start as u32),
            )?;
            let plan = plan_blocks(&histograms, len, num_words, within);
            if strategy == Strategy::Blocks || plan.cost < scan_cost {
                radii = plan.radii;
                cost = plan.cost;
            }
        }
        let max_radius = radii.iter().map(|&(_, radius)| radius).max().unwrap_or(0);
        let tables = map_ranges(
            radii.len(),
            1,
            threads,
            cancel,
            || (),
            |(), range| {
                let (block, radius) = radii[range.start];
                BlockTable::new(&codes, block, radius)
            },
        )?;
        Ok(HammingTables {
            cost: cost / len.max(1) as f64,
            codes,
            within,
            tables,
            neighbors: Neighbors::new(max_radius),
        })
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Estimated seconds on one core for finding all pairs.
    pub fn predicted_seconds(&self) -> f64 {
        self.cost * self.len() as f64 / 1e9
    }

    /// The strategy in use: [`Strategy::Blocks`] or [`Strategy::Scan`].
    pub fn strategy(&self) -> Strategy {
        if self.tables.is_empty() {
            Strategy::Scan
        } else {
            Strategy::Blocks
        }
    }

    /// Returns every pair at distance `within` or less whose later position is in `range`, sorted by (later, earlier),
    /// each once.
    ///
    /// Pairs with `states[earlier] == REMOVED` are omitted.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if `range` or `states` do not fit the positions, or [`Error::Canceled`].
    pub fn candidates(
        &self,
        range: Range<u32>,
        states: Option<&[u8]>,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<HammingPairs, Error> {
        self.candidates_up_to(usize::MAX, range, states, isa, threads, cancel)
    }

    /// Same as [`HammingTables::candidates`], up to about the position that brings the number of pairs to `max_pairs`:
    /// [`HammingPairs::end`] is the end of the searched positions, at least one (for an empty range, none). All pairs
    /// of a position are returned together.
    ///
    /// # Errors
    /// Returns the errors of [`HammingTables::candidates`].
    ///
    /// # Cost
    /// If pairs are denser than one thread may hold, up to seven times the cost of the pairs that it may hold. At most
    /// about `2 * max_pairs` pairs are held, plus those of one position or one bucket per thread.
    pub fn candidates_up_to(
        &self,
        max_pairs: usize,
        range: Range<u32>,
        states: Option<&[u8]>,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<HammingPairs, Error> {
        if range.start > range.end || range.end as usize > self.len() {
            return Err(Error::invalid(
                "range",
                format!("{range:?} is outside the {} positions", self.len()),
            ));
        }
        if let Some(states) = states
            && states.len() < range.end as usize
        {
            return Err(Error::invalid(
                "states",
                format!("{} states; the range ends at {}", states.len(), range.end),
            ));
        }
        let request = Request {
            codes: &self.codes,
            within: self.within,
            tables: &self.tables,
            neighbors: &self.neighbors,
            states,
            bound: Bound::new(max_pairs, threads),
        };
        let request = &request;
        let cost = self.cost * range.len() as f64;
        let threads = if cost < WORTH_A_THREAD { 1 } else { threads };
        let parts = map_ranges(
            range.len(),
            GRAIN,
            threads,
            cancel,
            || (),
            |(), piece| {
                if request.bound.is_reached(piece.start) {
                    return None;
                }
                let piece = range.start + piece.start as u32..range.start + piece.end as u32;
                let (start, asked) = (piece.start, piece.end);
                let (hits, end) = request.hits_of(piece, isa);
                request.bound.add(hits.len());
                Some(((start, hits), end, asked))
            },
        )?;
        Ok(concatenate(range.start, &unbroken(parts)))
    }
}

impl Request<'_> {
    /// Returns the sorted hits of a piece of the range, or of its first part if they are too dense, and the end of that
    /// part.
    fn hits_of(&self, mut piece: Range<u32>, isa: Isa) -> (Vec<u64>, u32) {
        let mut hits = Vec::new();
        let (request, num_words) = (self, self.codes.num_words());
        loop {
            let (piece_now, out) = (piece.clone(), &mut hits);
            if self.tables.is_empty() {
                run_kernel!(isa, num_words, scan_range, (request: &Request<'_>, piece_now: Range<u32>, out: &mut Vec<u64>));
            } else {
                run_kernel!(isa, num_words, probe_range, (request: &Request<'_>, piece_now: Range<u32>, out: &mut Vec<u64>));
            }
            if !self.is_too_dense(&piece, hits.len()) {
                return (sort_hits(&hits), piece.end);
            }
            piece.end = piece.start + piece.len() as u32 / 2;
            hits.clear();
        }
    }
}

/// Returns the hits of a piece in ascending order.
///
/// Starts with a counting sort by the later position: the hits of one position arrive nearly sorted, those of a piece
/// do not.
fn sort_hits(hits: &[u64]) -> Vec<u64> {
    let mut next = [0; GRAIN];
    for hit in hits {
        next[(hit >> LATER_SHIFT) as usize] += 1;
    }
    let mut total = 0;
    for slot in &mut next {
        total += std::mem::replace(slot, total);
    }
    let mut sorted = vec![0; hits.len()];
    for &hit in hits {
        let slot = &mut next[(hit >> LATER_SHIFT) as usize];
        sorted[*slot] = hit;
        *slot += 1;
    }
    for of_one in sorted.chunk_by_mut(|a, b| a >> LATER_SHIFT == b >> LATER_SHIFT) {
        if !of_one.is_sorted() {
            of_one.sort_unstable();
        }
    }
    sorted
}

fn concatenate(start: u32, parts: &[((u32, Vec<u64>), u32)]) -> HammingPairs {
    let num_pairs = parts.iter().map(|((_, hits), _)| hits.len()).sum();
    let mut pairs = HammingPairs {
        later: Vec::with_capacity(num_pairs),
        earlier: Vec::with_capacity(num_pairs),
        distance: Vec::with_capacity(num_pairs),
        end: start,
    };
    for ((start, hits), end) in parts {
        pairs.end = *end;
        pairs
            .later
            .extend(hits.iter().map(|hit| start + (hit >> LATER_SHIFT) as u32));
        pairs
            .earlier
            .extend(hits.iter().map(|hit| (hit >> EARLIER_SHIFT) as u32));
        pairs
            .distance
            .extend(hits.iter().map(|hit| *hit as u32 & 0xffff));
    }
    pairs
}

fn check(fingerprints: &Fingerprints<'_>, order: &[u32], within: u32) -> Result<(), Error> {
    fingerprints.check()?;
    let bits = fingerprints.bits;
    if within > bits {
        return Err(Error::invalid(
            "within",
            format!("{within} is outside 0 to {bits}, the bits of a fingerprint"),
        ));
    }
    let num_rows = fingerprints.len();
    if u32::try_from(order.len()).is_err() {
        return Err(Error::invalid(
            "order",
            format!("{} positions; at most 4294967295 fit", order.len()),
        ));
    }
    if let Some(row) = order.iter().find(|&&row| row as usize >= num_rows) {
        return Err(Error::invalid(
            "order",
            format!("row {row} is outside the {num_rows} fingerprints"),
        ));
    }
    Ok(())
}

fn histogram(codes: &CodePlanes, block: u32) -> Vec<u32> {
    let mut counts = vec![0; NUM_BLOCK_VALUES];
    for value in codes.block_values(block) {
        counts[value] += 1;
    }
    counts
}
