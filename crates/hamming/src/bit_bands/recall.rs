//! With what probability is a pair found, and which bands reach a given probability?

use super::bands_a_partition;
use likewise_core::error::Error;

/// Bits per band in a recipe: buckets of ten among 10^7 dissimilar fingerprints.
const ROWS: u32 = 20;
/// Maximum number of bands in a recipe.
const MAX_BANDS: u32 = 4096;

/// Number and width of bands, and their recall at the radius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BitBandPlan {
    /// Number of bands.
    pub bands: u32,
    /// Bits per band.
    pub rows: u32,
    /// Probability that a pair at exactly the radius agrees in a band; it is higher for nearer pairs.
    pub recall: f64,
}

/// Returns the probability, over the seeds, that two fingerprints at a distance of exactly `distance` agree in some
/// band.
///
/// Exact: in one partition, the errors are a random set of that size. Of the `C(bits, d)` sets, those that touch all
/// bands are missed; their number is the coefficient of `x^d` in `((1+x)^rows - 1)^bands * (1+x)^(bits - bands*rows)`.
/// Partitions are independent.
pub fn bit_band_recall(bits: u32, distance: u32, bands: u32, rows: u32) -> f64 {
    let a_partition = bands_a_partition(bits, rows);
    let full = libm::pow(
        miss(bits, distance, a_partition, rows),
        f64::from(bands / a_partition),
    );
    1.0 - full * miss(bits, distance, bands % a_partition, rows)
}

/// Returns the probability that `distance` errors touch each of `num_bands` disjoint bands.
fn miss(bits: u32, distance: u32, num_bands: u32, rows: u32) -> f64 {
    let degree = distance as usize;
    // All terms are positive, so sums and products lose no precision.
    let mut ways = vec![0.0; degree + 1];
    ways[0] = 1.0;
    for band in 0..=num_bands {
        let (width, least) = if band == num_bands {
            (bits - num_bands * rows, 0)
        } else {
            (rows, 1)
        };
        let mut next = vec![0.0; degree + 1];
        for (errors, ways) in ways.iter().enumerate().filter(|(_, ways)| **ways > 0.0) {
            for more in least..=(width as usize).min(degree - errors) {
                next[errors + more] += ways * choose(width, more as u32);
            }
        }
        ways = next;
    }
    ways[degree] / choose(bits, distance)
}

/// Number of subsets of size `chosen` among `num`, at most `C(256, 128) < 10^76`.
fn choose(num: u32, chosen: u32) -> f64 {
    let chosen = chosen.min(num - chosen.min(num));
    (0..chosen).fold(1.0, |product, i| {
        product * f64::from(num - i) / f64::from(i + 1)
    })
}

/// Returns the smallest number of bands of `rows` bits that reaches `recall`, if `max_bands` does.
pub(super) fn bands_needed(
    bits: u32,
    within: u32,
    recall: f64,
    rows: u32,
    max_bands: u32,
) -> Option<u32> {
    if rows > bits {
        return None;
    }
    let a_partition = bands_a_partition(bits, rows);
    let missed = miss(bits, within, a_partition, rows);
    let reached = |bands: u32| bit_band_recall(bits, within, bands, rows) >= recall;
    if missed >= 1.0 || !reached(max_bands) {
        return None;
    }
    // The number of partitions follows from a logarithm; the numbers next to it are checked one by one.
    let partitions = libm::log1p(-recall) / libm::log(missed.max(1e-300));
    let mut bands = ((partitions as u32).saturating_sub(1) * a_partition).min(max_bands);
    while bands > 0 && reached(bands) {
        bands -= 1;
    }
    while !reached(bands) {
        bands += 1;
    }
    Some(bands)
}

/// Rejects parameters for which no bands can be planned.
pub(super) fn check(bits: u32, within: u32, recall: f64) -> Result<(), Error> {
    if within > bits {
        return Err(Error::invalid(
            "within",
            format!("{within} is outside 0 to {bits}, the bits of a fingerprint"),
        ));
    }
    if !(recall > 0.0 && recall < 1.0) {
        return Err(Error::invalid(
            "recall",
            format!("{recall} is not above 0 and below 1"),
        ));
    }
    Ok(())
}

pub(super) fn out_of_reach(bits: u32, within: u32, recall: f64) -> Error {
    Error::invalid(
        "recall",
        format!(
            "{recall} cannot be reached for {within} of {bits} bits, even with {MAX_BANDS} bands; lower the recall or the radius, or omit \
             recall to compare every pair"
        ),
    )
}

/// Returns the bands of a recipe: as many bits per band as [`MAX_BANDS`] bands allow, at most [`ROWS`].
///
/// # Errors
/// Returns [`Error::InvalidParameter`] if a value is out of range, or even bands of one bit miss the recall.
pub fn plan_bit_bands(bits: u32, within: u32, recall: f64) -> Result<BitBandPlan, Error> {
    check(bits, within, recall)?;
    for rows in (1..=ROWS).rev() {
        if let Some(bands) = bands_needed(bits, within, recall, rows, MAX_BANDS) {
            return Ok(BitBandPlan {
                bands,
                rows,
                recall: bit_band_recall(bits, within, bands, rows),
            });
        }
    }
    Err(out_of_reach(bits, within, recall))
}
