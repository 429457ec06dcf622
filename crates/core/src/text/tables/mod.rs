//! Which properties does Unicode define for a scalar?
//!
//! The generated files are written by tools/unicode-tables; this module reads them. Other code of the core must not use
//! the standard library's character properties: their Unicode version changes with the compiler.

#[rustfmt::skip]
mod compositions;
#[rustfmt::skip]
pub(crate) mod lowercase;
#[rustfmt::skip]
mod mappings;
#[rustfmt::skip]
pub(crate) mod properties;
#[rustfmt::skip]
pub(crate) mod punctuation;

use compositions::{COMPOSITES, COMPOSITIONS, ORDER_BITS, ORDER_BLOCKS, ORDER_VALUES};
use mappings::{
    MAPPING_BITS, MAPPING_BLOCKS, MAPPING_NOT_SIMPLE, MAPPING_POOL, MAPPING_STARTS, MAPPING_VALUES,
};
use properties::{PROPERTY_BITS, PROPERTY_BLOCKS, PROPERTY_VALUES};

/// Bits of a property that hold the Word_Break value.
pub(crate) const WORD_BREAK: u8 = 31;
/// `Alphabetic`, or category Nd, Nl or No.
pub(crate) const ALPHANUMERIC: u8 = 1 << 5;
/// `White_Space`.
pub(crate) const WHITE_SPACE: u8 = 1 << 6;
/// Maps to itself and never interacts with the preceding text.
pub(crate) const STABLE: u8 = 1 << 7;

const HANGUL_FIRST: u32 = 0xAC00;
const HANGUL_LAST: u32 = 0xD7A3;
const LEADING_FIRST: u32 = 0x1100;
const VOWEL_FIRST: u32 = 0x1161;
/// The code point before the first trailing consonant.
const TRAILING_BASE: u32 = 0x11A7;
const NUM_LEADING: u32 = 19;
const NUM_VOWELS: u32 = 21;
const NUM_TRAILING: u32 = 28;

/// Returns the Word_Break value and flags of a code point below 0x110000.
#[inline(always)]
pub(crate) fn property(c: u32) -> u8 {
    let block = PROPERTY_BLOCKS[(c >> PROPERTY_BITS) as usize] as usize;
    PROPERTY_VALUES[block << PROPERTY_BITS | (c as usize & ((1 << PROPERTY_BITS) - 1))]
}

/// Returns the number of the `NFKC_Casefold` mapping of a code point, or 0 if it maps to itself.
#[inline(always)]
pub(crate) fn mapping_number(c: u32) -> usize {
    let block = MAPPING_BLOCKS[(c >> MAPPING_BITS) as usize] as usize;
    MAPPING_VALUES[block << MAPPING_BITS | (c as usize & ((1 << MAPPING_BITS) - 1))] as usize
}

/// Whether mapping `number` exists and its bytes can be copied without examining its scalars.
#[inline(always)]
pub(crate) fn is_simple_mapping(number: usize) -> bool {
    number.wrapping_sub(1) < MAPPING_NOT_SIMPLE - 1
}

/// Returns the UTF-8 of mapping `number`, which must not be 0.
#[inline(always)]
pub(crate) fn mapping(number: usize) -> &'static [u8] {
    &MAPPING_POOL[MAPPING_STARTS[number - 1] as usize..MAPPING_STARTS[number] as usize]
}

/// Returns the first four bytes at mapping `number`, and its length, or `None` if it is longer than four bytes.
#[inline(always)]
pub(crate) fn short_mapping(number: usize) -> Option<([u8; 4], usize)> {
    let (start, end) = (
        MAPPING_STARTS[number - 1] as usize,
        MAPPING_STARTS[number] as usize,
    );
    if end - start > 4 {
        return None;
    }
    Some((
        MAPPING_POOL.get(start..start + 4)?.try_into().ok()?,
        end - start,
    ))
}

/// Returns the rank of the combining class (0 for class 0), and whether the scalar may compose with one before it.
#[inline]
pub(crate) fn order(c: u32) -> (u8, bool) {
    let block = ORDER_BLOCKS[(c >> ORDER_BITS) as usize] as usize;
    let value = ORDER_VALUES[block << ORDER_BITS | (c as usize & ((1 << ORDER_BITS) - 1))];
    (value & 127, value > 127)
}

/// Returns the primary composite of two scalars.
pub(crate) fn compose(first: u32, second: u32) -> Option<u32> {
    if (LEADING_FIRST..LEADING_FIRST + NUM_LEADING).contains(&first) {
        let vowel = second.wrapping_sub(VOWEL_FIRST);
        return (vowel < NUM_VOWELS)
            .then(|| HANGUL_FIRST + ((first - LEADING_FIRST) * NUM_VOWELS + vowel) * NUM_TRAILING);
    }
    if (HANGUL_FIRST..=HANGUL_LAST).contains(&first) {
        let trailing = second.wrapping_sub(TRAILING_BASE);
        let is_open = (first - HANGUL_FIRST).is_multiple_of(NUM_TRAILING);
        return (is_open && trailing > 0 && trailing < NUM_TRAILING).then(|| first + trailing);
    }
    let found = COMPOSITIONS.binary_search_by_key(&(first, second), |&(a, b, _)| (a, b));
    found.ok().map(|i| COMPOSITIONS[i].2)
}

/// Returns the two scalars whose primary composite is `c`.
pub(crate) fn decompose(c: u32) -> Option<(u32, u32)> {
    if (HANGUL_FIRST..=HANGUL_LAST).contains(&c) {
        let index = c - HANGUL_FIRST;
        let trailing = index % NUM_TRAILING;
        if trailing > 0 {
            return Some((c - trailing, TRAILING_BASE + trailing));
        }
        let open = index / NUM_TRAILING;
        return Some((
            LEADING_FIRST + open / NUM_VOWELS,
            VOWEL_FIRST + open % NUM_VOWELS,
        ));
    }
    let found = COMPOSITES.binary_search_by_key(&c, |&i| COMPOSITIONS[i as usize].2);
    found.ok().map(|i| {
        let (first, second, _) = COMPOSITIONS[COMPOSITES[i] as usize];
        (first, second)
    })
}
