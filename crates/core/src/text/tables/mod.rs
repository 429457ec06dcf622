//! Which properties does Unicode define for a scalar?
//!
//! tools/unicode-tables writes `data.rs` and `unicode.bin`; this module reads them. Other code of the core must not use
//! the standard library's character properties: their Unicode version changes with the compiler.

mod data;

pub(crate) use data::{
    CASE_IGNORABLE, CASED, LETTERS_AND_NUMBERS, LOWERCASE, PUNCTUATION, properties,
};
use data::{
    COMPOSITES, COMPOSITIONS, CONFUSABLE_POOL, CONFUSABLE_STARTS, CONFUSABLES, MAPPING_BITS,
    MAPPING_BLOCKS, MAPPING_NOT_SIMPLE, MAPPING_POOL, MAPPING_STARTS, MAPPING_VALUES, ORDER_BITS,
    ORDER_BLOCKS, ORDER_VALUES, PROPERTY_BITS, PROPERTY_BLOCKS, PROPERTY_VALUES,
};

/// All tables, little-endian; `data` names the parts.
static UNICODE: &[u8] = include_bytes!("unicode.bin");

/// Returns the bytes from `start` on.
const fn u8s<const N: usize>(start: usize) -> [u8; N] {
    match UNICODE.split_at(start).1.first_chunk() {
        Some(&bytes) => bytes,
        None => panic!("the table is longer than the file"),
    }
}

/// Returns the numbers of 16 bits from byte `start` on.
const fn u16s<const N: usize>(start: usize) -> [u16; N] {
    let mut numbers = [0; N];
    let mut i = 0;
    while i < N {
        numbers[i] = u16::from_le_bytes(u8s(start + 2 * i));
        i += 1;
    }
    numbers
}

/// Returns the numbers of 32 bits from byte `start` on.
const fn u32s<const N: usize>(start: usize) -> [u32; N] {
    let mut numbers = [0; N];
    let mut i = 0;
    while i < N {
        numbers[i] = u32::from_le_bytes(u8s(start + 4 * i));
        i += 1;
    }
    numbers
}

/// Returns the rows of `K` numbers of 32 bits from byte `start` on.
const fn u32_rows<const K: usize, const N: usize>(start: usize) -> [[u32; K]; N] {
    let mut rows = [[0; K]; N];
    let mut i = 0;
    while i < N {
        rows[i] = u32s(start + 4 * K * i);
        i += 1;
    }
    rows
}

/// Bits of a property that hold the Word_Break value.
pub(crate) const WORD_BREAK: u8 = 31;
/// `Alphabetic`, or category Nd, Nl or No.
pub(crate) const ALPHANUMERIC: u8 = 1 << 5;
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

/// Returns the number of the mapping of a code point (`NFKC_Casefold`, without U+0640), or 0 if it maps to itself.
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
    let found = COMPOSITIONS.binary_search_by_key(&[first, second], |&[a, b, _]| [a, b]);
    found.ok().map(|i| COMPOSITIONS[i][2])
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
    let found = COMPOSITES.binary_search_by_key(&c, |&i| COMPOSITIONS[i as usize][2]);
    found.ok().map(|i| {
        let [first, second, _] = COMPOSITIONS[COMPOSITES[i] as usize];
        (first, second)
    })
}

/// Returns the UTF-8 that replaces a scalar of normalized text which looks like others.
pub(crate) fn look_alike(c: u32) -> Option<&'static [u8]> {
    let i = CONFUSABLES.binary_search(&c).ok()?;
    let ends = (CONFUSABLE_STARTS[i], CONFUSABLE_STARTS[i + 1]);
    Some(&CONFUSABLE_POOL[ends.0 as usize..ends.1 as usize])
}
