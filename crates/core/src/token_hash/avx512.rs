//! Eight token hashes at a time.

use std::arch::x86_64::*;

use super::keys::{Keys, MAX_SHORT_BYTES, PRIME_MX1, PRIME_MX2, PRIME64_2, PRIME64_3};

/// Same as `TokenHasher::hash`. Safety: the processor must have the instruction sets named.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn hash(
    keys: &Keys,
    text: &[u8],
    starts: &[u32],
    ends: &[u32],
    hashes: &mut Vec<u64>,
) {
    let num_tokens = starts.len().min(ends.len());
    let done = hashes.len();
    hashes.resize(done + num_tokens, 0);
    let out = &mut hashes[done..];
    let mut at = 0;
    while at + 8 <= num_tokens {
        eight(
            keys,
            text,
            &starts[at..at + 8],
            &ends[at..at + 8],
            &mut out[at..at + 8],
        );
        at += 8;
    }
    let rest = num_tokens - at;
    if rest > 0 {
        // Filled up with the first of the remaining tokens; the surplus hashes are discarded.
        let (mut last_starts, mut last_ends, mut last) = ([starts[at]; 8], [ends[at]; 8], [0; 8]);
        last_starts[..rest].copy_from_slice(&starts[at..num_tokens]);
        last_ends[..rest].copy_from_slice(&ends[at..num_tokens]);
        eight(keys, text, &last_starts, &last_ends, &mut last);
        out[at..].copy_from_slice(&last[..rest]);
    }
}

/// Hashes eight tokens; all slices hold eight.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
fn eight(keys: &Keys, text: &[u8], starts: &[u32], ends: &[u32], out: &mut [u64]) {
    let set = |value: u64| _mm512_set1_epi64(value as i64);
    let sixteen_at = |i: usize| {
        let start = starts[i] as usize;
        let bytes = &text[start..start + 16];
        // SAFETY: the slice is 16 bytes long.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    };
    let four = |i: usize| {
        let low =
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(sixteen_at(i)), sixteen_at(i + 2));
        let high = _mm256_inserti128_si256::<1>(
            _mm256_castsi128_si256(sixteen_at(i + 4)),
            sixteen_at(i + 6),
        );
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    };
    let (even, odd) = (four(0), four(1));
    // The first and the second eight bytes of every token.
    let (first, second) = (
        _mm512_unpacklo_epi64(even, odd),
        _mm512_unpackhi_epi64(even, odd),
    );
    assert!(starts.len() == 8 && ends.len() == 8 && out.len() == 8);
    // SAFETY: eight entries each.
    let lens = unsafe {
        let starts = _mm256_loadu_si256(starts.as_ptr().cast());
        _mm512_cvtepu32_epi64(_mm256_sub_epi32(
            _mm256_loadu_si256(ends.as_ptr().cast()),
            starts,
        ))
    };
    let bits = _mm512_slli_epi64::<3>(lens);

    // Shifts by 64 and more, including "negative" ones, give 0.
    let last_four = _mm512_srlv_epi64(first, _mm512_sub_epi64(bits, set(32)));
    let mut middle = _mm512_and_si512(last_four, set(0xFFFF_FFFF));
    middle = _mm512_add_epi64(middle, _mm512_slli_epi64::<32>(first));
    middle = _mm512_xor_si512(middle, set(keys.middle));
    let rotated = _mm512_xor_si512(
        _mm512_rol_epi64::<49>(middle),
        _mm512_rol_epi64::<24>(middle),
    );
    middle = _mm512_mullo_epi64(_mm512_xor_si512(middle, rotated), set(PRIME_MX2));
    let shifted = _mm512_add_epi64(_mm512_srli_epi64::<35>(middle), lens);
    middle = _mm512_mullo_epi64(_mm512_xor_si512(middle, shifted), set(PRIME_MX2));
    middle = _mm512_xor_si512(middle, _mm512_srli_epi64::<28>(middle));

    let byte = set(0xFF);
    let half_bits = _mm512_slli_epi64::<3>(_mm512_srli_epi64::<1>(lens));
    let middle_byte = _mm512_and_si512(_mm512_srlv_epi64(first, half_bits), byte);
    let last_byte = _mm512_and_si512(
        _mm512_srlv_epi64(first, _mm512_sub_epi64(bits, set(8))),
        byte,
    );
    let mut small = _mm512_slli_epi64::<16>(_mm512_and_si512(first, byte));
    small = _mm512_or_si512(small, _mm512_slli_epi64::<24>(middle_byte));
    small = _mm512_or_si512(
        small,
        _mm512_or_si512(last_byte, _mm512_slli_epi64::<8>(lens)),
    );
    small = _mm512_xor_si512(small, set(keys.small));
    small = _mm512_mullo_epi64(
        _mm512_xor_si512(small, _mm512_srli_epi64::<33>(small)),
        set(PRIME64_2),
    );
    small = _mm512_mullo_epi64(
        _mm512_xor_si512(small, _mm512_srli_epi64::<29>(small)),
        set(PRIME64_3),
    );
    small = _mm512_xor_si512(small, _mm512_srli_epi64::<32>(small));

    let mut hash = _mm512_mask_mov_epi64(middle, _mm512_cmplt_epu64_mask(lens, set(4)), small);
    let over_8 = _mm512_cmpgt_epu64_mask(lens, set(8));
    if over_8 != 0 {
        let from_first = _mm512_srlv_epi64(first, _mm512_sub_epi64(bits, set(64)));
        let from_second = _mm512_sllv_epi64(second, _mm512_sub_epi64(set(128), bits));
        let last = _mm512_or_si512(from_first, from_second);
        let low = _mm512_xor_si512(first, set(keys.large[0]));
        let high = _mm512_xor_si512(last, set(keys.large[1]));
        let mut large = _mm512_add_epi64(_mm512_add_epi64(swap_bytes(low), high), lens);
        large = _mm512_add_epi64(large, fold_product(low, high));
        large = _mm512_mullo_epi64(
            _mm512_xor_si512(large, _mm512_srli_epi64::<37>(large)),
            set(PRIME_MX1),
        );
        large = _mm512_xor_si512(large, _mm512_srli_epi64::<32>(large));
        hash = _mm512_mask_mov_epi64(hash, over_8, large);
    }
    // SAFETY: eight entries.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), hash) };
    let mut long = _mm512_cmpgt_epu64_mask(lens, set(MAX_SHORT_BYTES as u64));
    while long != 0 {
        let i = long.trailing_zeros() as usize;
        out[i] = keys.long(&text[starts[i] as usize..ends[i] as usize]);
        long &= long - 1;
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn swap_bytes(words: __m512i) -> __m512i {
    let reversed = _mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    _mm512_shuffle_epi8(words, _mm512_broadcast_i32x4(reversed))
}

/// Returns the upper half of the 128-bit products, XORed with the lower half.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fold_product(a: __m512i, b: __m512i) -> __m512i {
    let low_half = _mm512_set1_epi64(0xFFFF_FFFF);
    let (a_high, b_high) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
    let low_low = _mm512_mul_epu32(a, b);
    let low_high = _mm512_add_epi64(
        _mm512_mul_epu32(a, b_high),
        _mm512_srli_epi64::<32>(low_low),
    );
    let high_low = _mm512_add_epi64(
        _mm512_mul_epu32(a_high, b),
        _mm512_and_si512(low_high, low_half),
    );
    let mut upper = _mm512_add_epi64(
        _mm512_mul_epu32(a_high, b_high),
        _mm512_srli_epi64::<32>(low_high),
    );
    upper = _mm512_add_epi64(upper, _mm512_srli_epi64::<32>(high_low));
    let lower = _mm512_or_si512(
        _mm512_slli_epi64::<32>(high_low),
        _mm512_and_si512(low_low, low_half),
    );
    _mm512_xor_si512(upper, lower)
}
