//! Which pairs of one set do bands find if buckets are not capped?

use std::sync::atomic::{AtomicBool, Ordering};

use super::compare::{Near, Question, compare_buckets};
use super::recall::{bands_needed, bit_band_recall, check, out_of_reach};
use super::sorted::{Buckets, Sorter};
use super::{BitBandPlan, BitBands, MAX_ROWS};
use crate::code_planes::CodePlanes;
use crate::code_planes::lay_out;
use crate::distance::Fingerprints;
use crate::kernels::run_kernel;
use crate::plan::Key;
use crate::stream::KeyValue;
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;

/// Number of fingerprints sampled to estimate the sizes of buckets.
const NUM_SAMPLED: usize = 1 << 16;
/// Number of bands sampled.
const NUM_SAMPLED_BANDS: u32 = 3;
/// Maximum number of bands that are worth their cost.
const MAX_BANDS: u32 = 1 << 16;
/// Nanoseconds on one core for sorting a word of a fingerprint into its bucket, and for comparing a word of a pair.
const SORT_NS: f64 = 10.0;
const PAIR_NS: f64 = 0.07;

/// Pairs that were found, by (left, right), each once.
#[derive(Debug, Clone, PartialEq)]
pub struct BitBandPairs {
    /// Smaller row.
    pub left: Vec<u32>,
    /// Larger row.
    pub right: Vec<u32>,
    /// Number of differing bits.
    pub distance: Vec<u32>,
    /// Number of bands, bits per band, and P(found) at the radius.
    pub plan: BitBandPlan,
}

/// Returns the pairs of `order` at distance `within` or less. Each is found with a probability of at least `recall`
/// over the seeds.
///
/// Buckets are not capped: a pair is found if and only if it agrees in a band. The number of bits per band minimizes
/// the cost estimated from a sample of the fingerprints.
///
/// # Errors
/// Returns [`Error::InvalidParameter`] if the shapes do not fit, a value is out of range or no bands reach the recall,
/// or [`Error::Canceled`].
///
/// # Cost
/// 10^7 fingerprints of 128 bits within 32 at .95: about 400 bands of 16 bits, a quarter of a second each. Memory: for
/// each thread 28 bytes per fingerprint of 128 bits, in addition to the fingerprints.
#[allow(clippy::too_many_arguments)]
pub fn bit_band_pairs(
    fingerprints: Fingerprints<'_>,
    order: &[u32],
    within: u32,
    recall: f64,
    seed: u64,
    isa: Isa,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<BitBandPairs, Error> {
    fingerprints.check()?;
    check(fingerprints.bits, within, recall)?;
    if let Some(row) = order
        .iter()
        .find(|&&row| row as usize >= fingerprints.len())
    {
        return Err(Error::invalid(
            "order",
            format!("row {row} is outside the fingerprints"),
        ));
    }
    let codes = lay_out(&fingerprints, order);
    let plan = cheapest(&codes, fingerprints.bits, within, recall, seed)?;
    let bands = BitBands::new(fingerprints.bits, plan.rows, plan.bands, seed);
    let masks: Vec<[u64; 4]> = (0..bands.len()).map(|band| bands.mask(band, 0)).collect();
    let parts = map_ranges(
        bands.len(),
        1,
        threads,
        cancel,
        || {
            (
                Sorter::new(codes.len(), codes.num_words()),
                Buckets::new(codes.num_words()),
            )
        },
        |(sorter, buckets), range| {
            let band = range.start;
            let question = Question {
                within,
                num_members: u32::MAX,
                low: 0,
                before: &masks[..band],
            };
            let mut near: Vec<Near> = Vec::new();
            let key = KeyValue::new(&Key {
                mask: masks[band],
                radius: 0,
            });
            sorter.load(&codes, codes.len(), &key, plan.rows, isa);
            for part in 0..sorter.num_parts() {
                if cancel.load(Ordering::Relaxed) {
                    break;
                }
                sorter.buckets(part, buckets);
                let (buckets, found) = (&*buckets, &mut near);
                run_kernel!(isa, codes.num_words(), compare_buckets, (buckets: &Buckets, question: Question<'_>, found: &mut Vec<Near>));
            }
            near
        },
    )?;
    if cancel.load(Ordering::Relaxed) {
        return Err(Error::Canceled);
    }
    // Positions are converted to rows; `order` need not ascend.
    let mut found: Vec<(u32, u32, u32)> = parts
        .into_iter()
        .flatten()
        .map(|near| {
            let (a, b) = (order[near.earlier as usize], order[near.later as usize]);
            (a.min(b), a.max(b), near.distance)
        })
        .collect();
    found.sort_unstable();
    Ok(BitBandPairs {
        left: found.iter().map(|pair| pair.0).collect(),
        right: found.iter().map(|pair| pair.1).collect(),
        distance: found.iter().map(|pair| pair.2).collect(),
        plan,
    })
}

/// Returns the bands with the least estimated cost that reach the recall.
fn cheapest(
    codes: &CodePlanes,
    bits: u32,
    within: u32,
    recall: f64,
    seed: u64,
) -> Result<BitBandPlan, Error> {
    let num_words = codes.num_words() as f64;
    let num_codes = codes.len() as f64;
    let mut best: Option<(f64, u32, u32)> = None;
    for rows in 1..=MAX_ROWS.min(bits) {
        let Some(bands) = bands_needed(bits, within, recall, rows, MAX_BANDS) else {
            continue;
        };
        let sort = num_codes * SORT_NS * num_words;
        if best.is_some_and(|(cost, ..)| f64::from(bands) * sort > cost) {
            continue;
        }
        let compare = pairs_a_band(codes, bits, rows, seed) * PAIR_NS * num_words;
        let cost = f64::from(bands) * (sort + compare);
        if best.is_none_or(|(least, ..)| cost < least) {
            best = Some((cost, bands, rows));
        }
    }
    let (_, bands, rows) = best.ok_or_else(|| out_of_reach(bits, within, recall))?;
    Ok(BitBandPlan {
        bands,
        rows,
        recall: bit_band_recall(bits, within, bands, rows),
    })
}

/// Estimates from a sample how many pairs agree in a band of `rows` bits.
fn pairs_a_band(codes: &CodePlanes, bits: u32, rows: u32, seed: u64) -> f64 {
    let step = codes.len().div_ceil(NUM_SAMPLED).max(1);
    let num_bands = NUM_SAMPLED_BANDS.min(super::bands_a_partition(bits, rows));
    let bands = BitBands::new(bits, rows, num_bands, seed);
    let mut num_pairs = 0.0;
    let mut values: Vec<u64> = Vec::new();
    for band in 0..bands.len() {
        let key = KeyValue::new(&Key {
            mask: bands.mask(band, 0),
            radius: 0,
        });
        values.clear();
        values.extend(
            (0..codes.len())
                .step_by(step)
                .map(|row| key.of_row(codes, row)),
        );
        values.sort_unstable();
        for equal in values.chunk_by(|a, b| a == b) {
            num_pairs += equal.len() as f64 * (equal.len() - 1) as f64 / 2.0;
        }
    }
    let sampled = values.len() as f64;
    let scale = codes.len() as f64 / sampled.max(1.0);
    num_pairs / f64::from(num_bands) * scale * scale
}
