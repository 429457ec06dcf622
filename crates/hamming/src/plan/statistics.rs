//! How are the bits of the data distributed and correlated?

use super::MAX_BITS;

/// Distances between the compared pairs, in positions of the sample.
const OFFSETS: [usize; 16] = [1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47];

#[derive(Clone, Debug, PartialEq)]
pub struct BitStatistics {
    pub ones: Vec<f64>,
    /// Mean correlation of differences at two positions: texts that share words agree more than by chance.
    pub dependence: f64,
}

/// Returns statistics of [`crate::Fingerprints`]; a sample of ten thousand from the whole set is enough.
pub fn bit_statistics(words: &[u64], bits: u32) -> BitStatistics {
    let ones = bit_frequencies(words, bits);
    let deviations: Vec<f64> = mismatch(&ones)
        .iter()
        .map(|differs| (differs * (1.0 - differs)).sqrt())
        .collect();
    let total: f64 = deviations.iter().sum();
    let independent: f64 = deviations
        .iter()
        .map(|deviation| deviation * deviation)
        .sum();
    let num_words = bits.min(MAX_BITS).div_ceil(64) as usize;
    let (mut num_pairs, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for offset in OFFSETS {
        let later = words.get(offset * num_words..).unwrap_or(&[]);
        for (a, b) in words
            .chunks_exact(num_words)
            .zip(later.chunks_exact(num_words))
        {
            let distance: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
            num_pairs += 1.0;
            sum += f64::from(distance);
            squares += f64::from(distance * distance);
        }
    }
    // The variance of the distance is that of independent positions, plus the covariance of every two.
    let room = total * total - independent;
    let dependence = match num_pairs > 0.0 && room > 0.0 {
        true => (squares / num_pairs - (sum / num_pairs) * (sum / num_pairs) - independent) / room,
        false => 0.0,
    };
    BitStatistics {
        ones,
        dependence: dependence.clamp(0.0, MAX_DEPENDENCE),
    }
}

pub const MAX_DEPENDENCE: f64 = 0.5;

/// Returns P(two fingerprints differ) at each position: 2 p (1 - p).
pub(super) fn mismatch(ones: &[f64]) -> Vec<f64> {
    ones.iter()
        .map(|share| 2.0 * share * (1.0 - share))
        .collect()
}

/// Returns the fraction of ones at each of `bits` positions; a sample of ten thousand is enough.
pub fn bit_frequencies(words: &[u64], bits: u32) -> Vec<f64> {
    let num_words = bits.min(MAX_BITS).div_ceil(64) as usize;
    let num_codes = (words.len() / num_words.max(1)).max(1);
    (0..bits as usize)
        .map(|bit| {
            let ones = words
                .iter()
                .skip(bit / 64)
                .step_by(num_words)
                .filter(|&word| word >> (bit % 64) & 1 == 1);
            ones.count() as f64 / num_codes as f64
        })
        .collect()
}

/// Returns P(at most `radius` of the bits differ): exact for independent bits, otherwise scaled by the ratio for a
/// beta-binomial number of errors with that correlation.
pub(super) fn within_probability(mismatch: &[f64], dependence: f64, radius: u32) -> f64 {
    if radius as usize >= mismatch.len() {
        return 1.0;
    }
    let mut by_errors = vec![0.0; radius as usize + 1];
    by_errors[0] = 1.0;
    for &differs in mismatch {
        for errors in (0..by_errors.len()).rev() {
            let fewer = if errors == 0 {
                0.0
            } else {
                by_errors[errors - 1]
            };
            by_errors[errors] = by_errors[errors] * (1.0 - differs) + fewer * differs;
        }
    }
    let independent: f64 = by_errors.iter().sum();
    let mean = mismatch.iter().sum::<f64>() / mismatch.len() as f64;
    if dependence <= 0.0 || mean <= 0.0 || mean >= 1.0 {
        return independent;
    }
    let width = mismatch.len() as u32;
    let more =
        errors_within(width, mean, dependence, radius) / errors_within(width, mean, 0.0, radius);
    (independent * more).min(1.0)
}

/// Returns P(a beta-binomial number of `width` bits is at most `radius`); binomial if the correlation is 0.
fn errors_within(width: u32, mean: f64, correlation: f64, radius: u32) -> f64 {
    // Pólya's urn: each draw adds `step` balls of its color to `mean` and `1 - mean`.
    let step = correlation / (1.0 - correlation);
    let urn = |balls: f64, draws: u32| balls + f64::from(draws) * step;
    let mut term: f64 = (0..width)
        .map(|i| urn(1.0 - mean, i) / urn(1.0, i))
        .product();
    let mut sum = term;
    for errors in 0..radius {
        term *= f64::from(width - errors) / f64::from(errors + 1) * urn(mean, errors)
            / urn(1.0 - mean, width - errors - 1);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use likewise_core::testing::Random;

    #[test]
    fn skewed_bits_find_more() {
        let exact: f64 = within_probability(&[0.5, 0.1], 0.0, 0);
        assert!((exact - 0.45).abs() < 1e-12);
        let one = within_probability(&[0.5, 0.1, 0.0], 0.0, 1);
        assert!((one - 0.95).abs() < 1e-12);
        assert_eq!(within_probability(&[0.5], 0.0, 1), 1.0);
    }

    #[test]
    fn ones_are_counted_by_position() {
        let words = [0b01, 1 << 63, 0b11, 0, 0b01, 0];
        let shares = bit_frequencies(&words, 128);
        assert_eq!(shares[0], 1.0);
        assert!((shares[1] - 1.0 / 3.0).abs() < 1e-12);
        assert!((shares[127] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn dependent_bits_are_seen_and_find_as_much_more() {
        // Each bit of a fingerprint comes from one of two sources, by a preference of its own: the closer the
        // preferences, the more bits agree.
        let mut random = Random::new(17);
        let [first, second] = [random.next(), random.next()];
        let codes: Vec<u64> = (0..20_000)
            .map(|_| {
                let (a, b) = (random.next(), random.next());
                let taste = match random.below(3) {
                    0 => a & b,
                    1 => a,
                    _ => a | b,
                };
                (first & taste) | (second & !taste)
            })
            .collect();
        let found = bit_statistics(&codes, 64);
        assert!(found.dependence > 0.01, "{}", found.dependence);
        // The 16 lowest positions in which the sources differ: counted and predicted.
        let mut key = first ^ second;
        while key.count_ones() > 16 {
            key &= !(1 << key.ilog2());
        }
        let mismatch: Vec<f64> = (0..64)
            .filter(|bit| key >> bit & 1 == 1)
            .map(|bit| mismatch(&found.ones)[bit])
            .collect();
        for radius in 0..4 {
            let (mut pairs, mut near) = (0.0, 0.0);
            for (place, a) in codes.iter().enumerate().step_by(10) {
                for b in &codes[place + 1..] {
                    pairs += 1.0;
                    near += f64::from(u8::from(((a ^ b) & key).count_ones() <= radius));
                }
            }
            let told = within_probability(&mismatch, found.dependence, radius);
            let plain = within_probability(&mismatch, 0.0, radius);
            let ratio = told / (near / pairs);
            assert!((0.6..1.6).contains(&ratio), "{radius}: {ratio}");
            assert!((ratio - 1.0).abs() < (plain / (near / pairs) - 1.0).abs());
        }
        let coins: Vec<u64> = (0..20_000).map(|_| random.next()).collect();
        assert!(bit_statistics(&coins, 64).dependence < 0.0003);
        assert_eq!(bit_statistics(&[5], 64).dependence, 0.0);
        assert_eq!(bit_statistics(&[5; 100], 64).dependence, 0.0);
    }

    #[test]
    fn errors_follow_the_urn() {
        // Two draws, by hand: P(none) = .75 (.75 + s) / (1 + s).
        let step = 0.2 / 0.8;
        let none = 0.75 * (0.75 + step) / (1.0 + step);
        assert!((errors_within(2, 0.25, 0.2, 0) - none).abs() < 1e-12);
        let one = none + 2.0 * 0.25 * 0.75 / (1.0 + step);
        assert!((errors_within(2, 0.25, 0.2, 1) - one).abs() < 1e-12);
        assert!((errors_within(3, 0.5, 0.0, 1) - 0.5).abs() < 1e-12);
    }
}
