//! Which earlier positions does a later one look at, if buckets hold only their first members?
//!
//! The bucket levels of MinHash bands, keyed by bits of the fingerprint. So what is compared depends only on
//! fingerprints, bands and order, stays bounded on collections of templates, and is the same in an index that adds
//! documents one by one.
//!
//! All bands are searched at once for many documents, and only pairs within the radius are kept, since the buckets of
//! hundreds of bands would not fit in memory.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::compare::{Near, Question, compare_buckets};
use super::sorted::{Buckets, Sorter};
use super::{BitBands, MAX_ROWS};
use crate::code_planes::CodePlanes;
use crate::code_planes::lay_out;
use crate::distance::Fingerprints;
use crate::kernels::run_kernel;
use crate::plan::Key;
use crate::stream::KeyValue;
use crate::tables::HammingPairs;
use likewise_core::bands::{BUCKET_SIZE, NUM_LEVELS};
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;

/// Fingerprints in order of priority, and the bands that group them.
#[derive(Debug)]
pub struct BitBandBuckets {
    codes: CodePlanes,
    bands: BitBands,
    rows: u32,
    within: u32,
}

/// State shared by the bands of one call.
struct Shared<'a> {
    /// Pairs `later << 32 | earlier`, sorted and distinct up to `num_sorted`.
    pairs: Mutex<(Vec<u64>, usize)>,
    num_capped: AtomicU64,
    is_full: AtomicBool,
    max_pairs: usize,
    cancel: &'a AtomicBool,
}

/// Pairs added before all are sorted again.
const NUM_UNSORTED: usize = 1 << 20;

impl Shared<'_> {
    fn add(&self, near: &[Near]) {
        let Ok(mut pairs) = self.pairs.lock() else {
            return;
        };
        let (all, num_sorted) = &mut *pairs;
        let packed = |near: &Near| u64::from(near.later) << 32 | u64::from(near.earlier);
        all.extend(near.iter().map(packed));
        if all.len() > 2 * *num_sorted + NUM_UNSORTED {
            all.sort_unstable();
            all.dedup();
            *num_sorted = all.len();
            if all.len() > self.max_pairs {
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.cancel.load(Ordering::Relaxed)
    }
}

struct Scratch {
    sorter: Sorter,
    buckets: Buckets,
    near: Vec<Near>,
}

impl BitBandBuckets {
    /// Arranges the fingerprints `order[0], order[1], ...` for bands of `rows` bits.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if the shapes do not fit or a value is out of range.
    pub fn build(
        fingerprints: Fingerprints<'_>,
        order: &[u32],
        within: u32,
        bands: u32,
        rows: u32,
        seed: u64,
    ) -> Result<Self, Error> {
        fingerprints.check()?;
        let bits = fingerprints.bits;
        if let Some(row) = order
            .iter()
            .find(|&&row| row as usize >= fingerprints.len())
        {
            return Err(Error::invalid(
                "order",
                format!("row {row} is outside the fingerprints"),
            ));
        }
        if !(1..=MAX_ROWS.min(bits)).contains(&rows) {
            return Err(Error::invalid(
                "rows",
                format!("{rows} is outside 1 to {MAX_ROWS}, the bits of a band"),
            ));
        }
        if within > bits {
            return Err(Error::invalid(
                "within",
                format!("{within} is outside 0 to {bits}, the bits of a fingerprint"),
            ));
        }
        Ok(BitBandBuckets {
            codes: lay_out(&fingerprints, order),
            bands: BitBands::new(bits, rows, bands, seed),
            rows,
            within,
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

    /// Returns the pairs at distance `within` or less whose later position is in `range` and looks at the earlier one
    /// in some band, each once and sorted by (later, earlier), and how many times a position of the range met a full
    /// last level. Returns `None` if there are more than `max_pairs`: request a shorter range.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if `range` does not fit, or [`Error::Canceled`].
    ///
    /// # Cost
    /// Every band is sorted again up to the end of the range: about 20 ns per position and band on one core, however
    /// short the range.
    pub fn pairs(
        &self,
        range: Range<u32>,
        max_pairs: usize,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Option<(HammingPairs, u64)>, Error> {
        if range.start > range.end || range.end as usize > self.len() {
            return Err(Error::invalid(
                "range",
                format!("{range:?} is outside the {} positions", self.len()),
            ));
        }
        let shared = Shared {
            pairs: Mutex::new((Vec::new(), 0)),
            num_capped: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            max_pairs,
            cancel,
        };
        map_ranges(
            self.bands.len(),
            1,
            threads,
            cancel,
            || Scratch {
                sorter: Sorter::new(range.end as usize, self.codes.num_words()),
                buckets: Buckets::new(self.codes.num_words()),
                near: Vec::new(),
            },
            |scratch, band| self.fill_band(band.start, &range, isa, scratch, &shared),
        )?;
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Canceled);
        }
        let (mut pairs, _) = shared.pairs.into_inner().unwrap_or_default();
        pairs.sort_unstable();
        pairs.dedup();
        if shared.is_full.into_inner() || pairs.len() > max_pairs {
            return Ok(None);
        }
        let found = HammingPairs {
            distance: pairs
                .iter()
                .map(|pair| self.distance((pair >> 32) as usize, *pair as u32 as usize))
                .collect(),
            later: pairs.iter().map(|pair| (pair >> 32) as u32).collect(),
            earlier: pairs.iter().map(|pair| *pair as u32).collect(),
            end: range.end,
        };
        Ok(Some((found, shared.num_capped.into_inner())))
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        (0..self.codes.num_words())
            .map(|word| (self.codes.plane(word)[a] ^ self.codes.plane(word)[b]).count_ones())
            .sum()
    }

    /// Puts the positions up to the end of the range into the buckets of one band, level by level.
    fn fill_band(
        &self,
        band: usize,
        range: &Range<u32>,
        isa: Isa,
        scratch: &mut Scratch,
        shared: &Shared<'_>,
    ) {
        let Scratch {
            sorter,
            buckets,
            near,
        } = scratch;
        let question = Question {
            within: self.within,
            num_members: BUCKET_SIZE as u32,
            low: range.start,
            before: &[],
        };
        let mut overflow: Vec<u32> = Vec::new();
        let key = KeyValue::new(&Key {
            mask: self.bands.mask(band, 0),
            radius: 0,
        });
        sorter.load(&self.codes, range.end as usize, &key, self.rows, isa);
        for part in 0..sorter.num_parts() {
            sorter.buckets(part, buckets);
            self.compare(buckets, question, isa, near, &mut overflow);
            if near.len() > NUM_UNSORTED {
                shared.add(near);
                near.clear();
            }
            if shared.is_over() {
                return;
            }
        }
        for level in 1..NUM_LEVELS {
            if overflow.is_empty() {
                break;
            }
            let mut grouped = self.grouped(&self.bands.mask(band, level), &mut overflow);
            overflow.clear();
            for run in grouped.drain(..) {
                buckets.fill(&self.codes, &run);
                self.compare(buckets, question, isa, near, &mut overflow);
            }
            if shared.is_over() {
                return;
            }
        }
        let num_capped = overflow.iter().filter(|&&position| position >= range.start);
        shared
            .num_capped
            .fetch_add(num_capped.count() as u64, Ordering::Relaxed);
        shared.add(near);
        near.clear();
    }

    /// Groups positions that agree in all bits of a mask, in ascending runs of two or more.
    fn grouped(&self, mask: &[u64; 4], positions: &mut [u32]) -> Vec<Vec<u32>> {
        let bits_of = |position: u32| -> [u64; 4] {
            std::array::from_fn(|word| match word < self.codes.num_words() {
                true => self.codes.plane(word)[position as usize] & mask[word],
                false => 0,
            })
        };
        positions.sort_unstable_by_key(|&position| (bits_of(position), position));
        positions
            .chunk_by(|&a, &b| bits_of(a) == bits_of(b))
            .filter(|run| run.len() > 1)
            .map(<[u32]>::to_vec)
            .collect()
    }

    /// Compares the leading members of buckets with later ones; members beyond [`BUCKET_SIZE`] are added to `overflow`.
    fn compare(
        &self,
        buckets: &Buckets,
        question: Question<'_>,
        isa: Isa,
        near: &mut Vec<Near>,
        overflow: &mut Vec<u32>,
    ) {
        let found = near;
        run_kernel!(isa, self.codes.num_words(), compare_buckets, (buckets: &Buckets, question: Question<'_>, found: &mut Vec<Near>));
        for &(start, end) in &buckets.ranges {
            let full = (start as usize + BUCKET_SIZE).min(end as usize);
            overflow.extend_from_slice(&buckets.positions[full..end as usize]);
        }
    }
}
