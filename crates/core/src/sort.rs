//! How are hashes sorted?

const DIGIT_BITS: u32 = 8;
const NUM_DIGITS: usize = 1 << DIGIT_BITS;
/// Number of items below which they are sorted by comparisons.
const LEAST_BY_DIGITS: usize = 64;

/// Sorts items that begin with a hash, whose first `num_equal` bits are equal: by the two bytes after these, then by the
/// rest. Cost: about 5 ns per item if the hashes are spread.
pub(crate) fn sort_hashed<T: Copy + Ord>(
    items: &mut Vec<T>,
    num_equal: u32,
    hash: impl Fn(T) -> u64,
) {
    if items.len() < LEAST_BY_DIGITS {
        return items.sort_unstable();
    }
    let mut sorted = items.clone();
    let lowest = 64 - num_equal - 2 * DIGIT_BITS;
    for shift in [lowest, lowest + DIGIT_BITS] {
        let digit = |item: T| (hash(item) >> shift) as usize & (NUM_DIGITS - 1);
        let mut places = [0usize; NUM_DIGITS + 1];
        for &item in &*items {
            places[digit(item) + 1] += 1;
        }
        for i in 0..NUM_DIGITS {
            places[i + 1] += places[i];
        }
        for &item in &*items {
            let place = &mut places[digit(item)];
            sorted[*place] = item;
            *place += 1;
        }
        std::mem::swap(items, &mut sorted);
    }
    items
        .chunk_by_mut(|&a, &b| hash(a) >> lowest == hash(b) >> lowest)
        .filter(|same| same.len() > 1)
        .for_each(<[T]>::sort_unstable);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn hashes_are_sorted_however_they_are_spread() {
        let mut random = Random::new(4);
        for len in [0, 1, LEAST_BY_DIGITS - 1, LEAST_BY_DIGITS, 5000] {
            for (num_equal, mask) in [
                (0, u64::MAX),
                (8, u64::MAX >> 8),
                (0, 0xFFFF),
                (8, 0xFF << 48),
                (0, 0xFF << 40 | 7),
            ] {
                let first = if num_equal == 0 { 0 } else { 5 << 56 };
                let mut hashes: Vec<u64> = (0..len).map(|_| first | random.next() & mask).collect();
                let mut wanted = hashes.clone();
                wanted.sort_unstable();
                sort_hashed(&mut hashes, num_equal, |hash| hash);
                assert_eq!(hashes, wanted, "{len} {mask:x}");
            }
        }
    }
}
