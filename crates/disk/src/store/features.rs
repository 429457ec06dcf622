//! How is a feature set encoded?
//!
//! Gaps between sorted 64-bit features are Rice codes: 57 bits per feature at 400 features.

use super::bytes::{BitReader, BitWriter, Cursor, Malformed, put_packed, put_varint};

/// Flag of a feature set: weights follow. The lower bits are the width of the low part of a gap.
const HAS_WEIGHTS: u8 = 0x80;

/// Writes ascending features and their weights. Empty weights mean that all are 1.
pub(super) fn put_features(out: &mut Vec<u8>, features: &[u64], weights: &[u32]) {
    put_varint(out, features.len() as u64);
    let Some(&last) = features.last() else {
        return;
    };
    let mean = (last / features.len() as u64).max(1);
    let width = mean.ilog2();
    out.push(width as u8 | (HAS_WEIGHTS * u8::from(!weights.is_empty())));
    let mut bits = BitWriter::new(out);
    let mut before = 0;
    for &feature in features {
        let gap = feature - before;
        before = feature;
        // The high parts add up to less than twice the number of features.
        let mut ones = gap >> width;
        while ones > 32 {
            bits.put(u64::from(u32::MAX), 32);
            ones -= 32;
        }
        bits.put((1 << ones) - 1, ones as u32 + 1);
        bits.put(gap & ((1 << width) - 1), width);
    }
    bits.end();
    if !weights.is_empty() {
        put_packed(out, weights.iter().copied());
    }
}

/// Reads features and weights from all of the bytes.
pub(super) fn get_features(bytes: &[u8]) -> Result<(Vec<u64>, Vec<u32>), Malformed> {
    let mut cursor = Cursor(bytes);
    let count = cursor.count()?;
    if count == 0 {
        cursor.end()?;
        return Ok((Vec::new(), Vec::new()));
    }
    let form = cursor.byte()?;
    let width = u32::from(form & !HAS_WEIGHTS);
    if width > 63 {
        return Err(Malformed);
    }
    let mut bits = BitReader::new(cursor.0);
    let mut features = Vec::with_capacity(count);
    let mut before = 0u64;
    for _ in 0..count {
        let ones = bits.ones()?;
        let gap = ones.wrapping_shl(width) | bits.take(width);
        before = before.wrapping_add(gap);
        features.push(before);
    }
    let num_bytes = bits.num_bytes();
    cursor.take(num_bytes)?;
    let weights = match form & HAS_WEIGHTS {
        0 => Vec::new(),
        _ => {
            let weights = cursor.packed(count)?;
            (0..count).map(|i| weights.get(i)).collect()
        }
    };
    cursor.end()?;
    Ok((features, weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(count: u64, seed: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..count)
            .map(|i| xxhash_rust::xxh3::xxh3_64_with_seed(&i.to_le_bytes(), seed))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn feature_sets_come_back() {
        let mut sets: Vec<(Vec<u64>, Vec<u32>)> = (0..70)
            .map(|count| (features(count, 3), Vec::new()))
            .collect();
        sets.push(((0..1000).collect(), (0..1000).map(|i| i % 15 + 1).collect()));
        sets.push((vec![0], vec![u32::MAX]));
        sets.push((vec![u64::MAX], vec![]));
        sets.push((vec![0, u64::MAX], vec![]));
        sets.push((vec![0, 1, 2, u64::MAX - 1, u64::MAX], vec![1, 2, 3, 4, 5]));
        sets.push(((0..5000).map(|i| i * 3).chain([u64::MAX]).collect(), vec![]));
        for (features, weights) in sets {
            let mut bytes = Vec::new();
            put_features(&mut bytes, &features, &weights);
            assert_eq!(get_features(&bytes), Ok((features, weights)));
        }
    }

    #[test]
    fn four_hundred_features_take_57_bits_each() {
        let mut bytes = Vec::new();
        put_features(&mut bytes, &features(400, 1), &[]);
        assert!(bytes.len() * 8 < 400 * 58, "{}", bytes.len() * 8 / 400);
    }

    #[test]
    fn a_block_that_is_cut_is_refused_or_gives_what_was_there() {
        let mut bytes = Vec::new();
        put_features(&mut bytes, &features(40, 1), &[2; 40]);
        for end in 0..bytes.len() {
            assert!(get_features(&bytes[..end]).is_err(), "{end}");
        }
    }
}
