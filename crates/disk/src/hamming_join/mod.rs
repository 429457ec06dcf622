//! How are fingerprints joined if they do not fit in memory?
//!
//! For each key of a plan, the fingerprints are partitioned into files by the first bits of the key. Each file is
//! joined with itself and with the files whose bits are near. A file that is still too large is joined in pieces.

mod flat;
#[cfg(test)]
mod tests;

use std::path::Path;

use likewise_core::error::invalid_if;
use likewise_hamming::Fingerprints;
use likewise_hamming::join::{
    JoinOptions, JoinSide, PairBatch, PartPair, join, join_parts, plan_parts,
};
use likewise_hamming::plan::SearchPlan;

use crate::error::Error;
use crate::fingerprints::FlatFingerprints;
use flat::{Part, spill};

/// Maximum number of files of one key, as a power of two: 2^8.
const MAX_SPREAD_BITS: u32 = 8;
/// Number of sampled fingerprints from which the plan learns the selectivity of bits.
const NUM_SAMPLED: usize = 1 << 14;
/// Memory per fingerprint during a join, in bytes per word and in addition: it is in the piece, in a table, and may be
/// collapsed.
const BYTES_A_WORD: usize = 24;
const BYTES_BESIDE: usize = 20;

/// Receives batches; `false` ends the join.
pub type Consumer<'a> = &'a mut (dyn FnMut(PairBatch) -> bool + Send);

/// Joins two pieces, or one piece with itself.
type JoinPieces<'a> = &'a mut dyn FnMut(&JoinSide<'_>, Option<&JoinSide<'_>>) -> Result<(), Error>;

/// A join that is larger than memory.
#[derive(Debug)]
pub struct LargeJoin<'a> {
    pub left: &'a FlatFingerprints,
    /// The right set; `None` joins the left one with itself.
    pub right: Option<&'a FlatFingerprints>,
    pub bits: u32,
    /// Approximate memory limit, in bytes.
    pub memory_bytes: usize,
    /// An existing folder with space for about `8 * words + 4` bytes per fingerprint; files created there are deleted.
    pub folder: &'a Path,
}

impl LargeJoin<'_> {
    /// Whether the whole join fits in memory.
    pub fn fits(&self) -> bool {
        let num_right = self.right.map_or(0, |right| right.len);
        self.left.len + num_right <= self.max_rows()
    }

    /// Number of rows that fit in memory together.
    fn max_rows(&self) -> usize {
        let bytes_a_row = BYTES_A_WORD * self.num_words() + BYTES_BESIDE;
        (self.memory_bytes / bytes_a_row).max(2)
    }

    fn num_words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    /// Passes every pair of rows at distance `within` or less to `consumer`, each once. The smaller row comes first; in
    /// a join of two sets, the row of the left set. Returns [`Error::InvalidParameter`] if `within` or the width is out
    /// of range or a set has more than 2^31 rows, or [`Error::Canceled`], also if `consumer` ended the join. Cost: each
    /// key writes and reads the fingerprints once.
    pub fn run(&self, options: &JoinOptions<'_>, consumer: Consumer<'_>) -> Result<(), Error> {
        for file in [self.left].into_iter().chain(self.right) {
            invalid_if(file.len > 1 << 31, "fingerprints", || {
                format!("{} rows; at most 2147483648 are joined", file.len)
            })?;
        }
        if !self.fits() {
            let plan = self.plan(self.left.len, options)?;
            return self.run_by(&plan, options, consumer);
        }
        let whole = |file| Part::Flat(file).read(0, file.len, options.run.cancel);
        let left = whole(self.left)?;
        let right = self.right.map(whole).transpose()?;
        self.join_empty(&mut *consumer)?;
        let right = right.as_ref().map(|right| right.side(self.bits));
        Ok(join(
            &left.side(self.bits),
            right.as_ref(),
            options,
            consumer,
        )?)
    }

    /// Returns the plan for sets with the skew of these, if the left one has `num_left` rows.
    fn plan(&self, num_left: usize, options: &JoinOptions<'_>) -> Result<SearchPlan, Error> {
        let sample = self.left.sample(NUM_SAMPLED)?;
        let sample = Fingerprints::new(&sample, self.bits);
        let num_right = self.right.map(|right| right.len);
        Ok(plan_parts(sample, num_left, num_right, options)?)
    }

    /// Finds all pairs, part by part.
    fn run_by(
        &self,
        plan: &SearchPlan,
        options: &JoinOptions<'_>,
        consumer: Consumer<'_>,
    ) -> Result<(), Error> {
        let is_self = self.right.is_none();
        let mut ordered = |mut batch: PairBatch| {
            if is_self {
                for (left, right) in batch.left.iter_mut().zip(&mut batch.right) {
                    if left > right {
                        std::mem::swap(left, right);
                    }
                }
            }
            consumer(batch)
        };
        self.join_empty(&mut ordered)?;
        if plan.keys().is_empty() {
            return self.compare_all(options, &mut ordered);
        }
        for key in 0..plan.keys().len() {
            self.join_key(plan, key, options, &mut ordered)?;
        }
        Ok(())
    }

    /// Reports the pairs of empty texts.
    fn join_empty(&self, consumer: Consumer<'_>) -> Result<(), Error> {
        let left = self.left.empty_rows();
        let mut batch = PairBatch::default();
        for (index, &a) in left.iter().enumerate() {
            let others = match self.right {
                None => &left[index + 1..],
                Some(right) => right.empty_rows(),
            };
            for &b in others {
                batch.left.push(a);
                batch.right.push(b);
                batch.distance.push(0);
                if batch.len() == 1 << 16 && !consumer(std::mem::take(&mut batch)) {
                    return Err(Error::Canceled);
                }
            }
        }
        if !batch.is_empty() && !consumer(batch) {
            return Err(Error::Canceled);
        }
        Ok(())
    }

    /// Compares every pair, a block of rows from each side at a time.
    fn compare_all(&self, options: &JoinOptions<'_>, consumer: Consumer<'_>) -> Result<(), Error> {
        let left = Part::Flat(self.left);
        let right = self.right.map(Part::Flat);
        self.in_pieces(&left, right.as_ref(), options, &mut |left, right| {
            Ok(join(left, right, options, &mut *consumer)?)
        })
    }

    /// Finds the pairs that one key owns.
    fn join_key(
        &self,
        plan: &SearchPlan,
        index: usize,
        options: &JoinOptions<'_>,
        consumer: Consumer<'_>,
    ) -> Result<(), Error> {
        let key = &plan.keys()[index];
        let num_rows = self.left.len + self.right.map_or(0, |right| right.len);
        // Twice as many files as evenly distributed rows would need.
        let num_bits = (2 * num_rows / self.max_rows() + 1)
            .next_power_of_two()
            .ilog2()
            .clamp(1, MAX_SPREAD_BITS)
            .min(key.width());
        let buffer_bytes = self.memory_bytes / 4;
        let spread = |file: &FlatFingerprints, name: &str| {
            spill(
                file,
                key,
                num_bits,
                (self.folder, name),
                buffer_bytes,
                options.run.cancel,
            )
        };
        let left = spread(self.left, "left")?;
        let right = self.right.map(|file| spread(file, "right")).transpose()?;
        for from in 0..left.len() {
            for to in 0..left.len() {
                let num_errors = (from ^ to).count_ones();
                if num_errors > key.radius || (right.is_none() && to < from) {
                    continue;
                }
                let pair = PartPair {
                    plan,
                    key: index,
                    num_bits,
                    num_errors,
                };
                let other = match &right {
                    Some(right) => Some(&right[to]),
                    None => (from != to).then(|| &left[to]),
                };
                self.in_pieces(&left[from], other, options, &mut |left, right| {
                    Ok(join_parts(left, right, &pair, options, &mut *consumer)?)
                })?;
            }
        }
        Ok(())
    }

    /// Joins two parts, or one with itself, in pieces that fit in memory.
    fn in_pieces(
        &self,
        left: &Part<'_>,
        right: Option<&Part<'_>>,
        options: &JoinOptions<'_>,
        join: JoinPieces<'_>,
    ) -> Result<(), Error> {
        if left.len() == 0 || right.is_some_and(|right| right.len() == 0) {
            return Ok(());
        }
        let fits = left.len() + right.map_or(0, Part::len) <= self.max_rows();
        let piece = if fits {
            usize::MAX
        } else {
            self.max_rows() / 2
        };
        for start in (0..left.len()).step_by(piece) {
            let end = start.saturating_add(piece).min(left.len());
            let rows = left.read(start, end, options.run.cancel)?;
            let side = rows.side(self.bits);
            let (other, first) = match right {
                None => {
                    join(&side, None)?;
                    (left, end)
                }
                Some(right) => (right, 0),
            };
            for start in (first..other.len()).step_by(piece) {
                let end = start.saturating_add(piece).min(other.len());
                let rows = other.read(start, end, options.run.cancel)?;
                join(&side, Some(&rows.side(self.bits)))?;
            }
        }
        Ok(())
    }
}
