//! How are entries sorted?
//!
//! An entry is a permuted code, possibly followed by its row: entries are ordered by their words.

/// Number of entries from which radix passes beat comparisons.
const FEW: usize = 48;
/// Maximum number of bits per pass: this many write positions stay in the caches.
const MAX_DIGIT_BITS: u32 = 10;

/// Sorts entries that agree from bit `bits` of their first word on, with `scratch` of the same length.
pub(crate) fn sort<const N: usize>(entries: &mut [[u64; N]], scratch: &mut [[u64; N]], bits: u32) {
    let len = entries.len();
    if len <= FEW {
        sort_few(entries);
        return;
    }
    if bits == 0 {
        entries.sort_unstable();
        return;
    }
    let digit_bits = (len.ilog2() - 2).clamp(1, MAX_DIGIT_BITS).min(bits);
    let shift = bits - digit_bits;
    let mask = (1_u64 << digit_bits) - 1;
    let mut starts = [0_u32; (1 << MAX_DIGIT_BITS) + 1];
    let starts = &mut starts[..(1 << digit_bits) + 1];
    for entry in entries.iter() {
        starts[(entry[0] >> shift & mask) as usize + 1] += 1;
    }
    if starts.iter().any(|&count| count as usize == len) {
        sort(entries, scratch, shift);
        return;
    }
    let mut total = 0;
    for start in starts.iter_mut() {
        total += *start;
        *start = total;
    }
    for entry in entries.iter() {
        let next = &mut starts[(entry[0] >> shift & mask) as usize];
        scratch[*next as usize] = *entry;
        *next += 1;
    }
    entries.copy_from_slice(scratch);
    // Each start has moved to the end of its part.
    let mut from = 0;
    for &end in &starts[..1 << digit_bits] {
        let end = end as usize;
        if end - from > 1 {
            sort(&mut entries[from..end], &mut scratch[from..end], shift);
        }
        from = end;
    }
}

/// Sorts by insertion, with comparisons that mostly end at the first word.
#[inline(always)]
fn sort_few<const N: usize>(entries: &mut [[u64; N]]) {
    for i in 1..entries.len() {
        let entry = entries[i];
        let mut at = i;
        while at > 0 && is_less(&entry, &entries[at - 1]) {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        entries[at] = entry;
    }
}

#[inline(always)]
fn is_less<const N: usize>(left: &[u64; N], right: &[u64; N]) -> bool {
    for (left, right) in left.iter().zip(right) {
        if left != right {
            return left < right;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use likewise_core::hash::mix64;

    #[test]
    fn sorts_as_comparison_does() {
        for len in [0, 1, 48, 49, 1000, 70_000] {
            for mask in [u64::MAX, 0xff, 0xff00_0000_0000_0000, 0] {
                let mut entries: Vec<[u64; 3]> = (0..len)
                    .map(|i| [mix64(i) & mask, mix64(i) >> 60, len - i])
                    .collect();
                let mut expected = entries.clone();
                expected.sort();
                let mut scratch = entries.clone();
                sort(&mut entries, &mut scratch, 64);
                assert!(entries == expected, "{len} {mask:x}");
            }
        }
    }
}
