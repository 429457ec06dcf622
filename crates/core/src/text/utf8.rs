//! How is one scalar read from UTF-8 and written to it?

/// Returns the scalar at `bytes[at]`, which must be the first byte of a well-formed sequence, and its length in bytes.
#[inline(always)]
pub(crate) fn decode(bytes: &[u8], at: usize) -> (u32, usize) {
    let low = |i: usize| u32::from(bytes[at + i] & 0x3F);
    let lead = u32::from(bytes[at]);
    if lead < 0x80 {
        (lead, 1)
    } else if lead < 0xE0 {
        ((lead & 0x1F) << 6 | low(1), 2)
    } else if lead < 0xF0 {
        ((lead & 0x0F) << 12 | low(1) << 6 | low(2), 3)
    } else {
        ((lead & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3), 4)
    }
}

/// Returns the scalar at the start of four bytes of text, and its length in bytes.
#[inline(always)]
pub(crate) fn decode_first(bytes: [u8; 4]) -> (u32, usize) {
    decode(&bytes, 0)
}

/// Returns the start of the last scalar of a nonempty well-formed text.
#[inline]
pub(crate) fn last_start(bytes: &[u8]) -> usize {
    let mut at = bytes.len() - 1;
    while bytes[at] & 0xC0 == 0x80 {
        at -= 1;
    }
    at
}

#[inline]
pub(crate) fn push(c: u32, out: &mut Vec<u8>) {
    let low = |shift: u32| 0x80 | (c >> shift & 0x3F) as u8;
    if c < 0x80 {
        out.push(c as u8);
    } else if c < 0x800 {
        out.extend_from_slice(&[0xC0 | (c >> 6) as u8, low(0)]);
    } else if c < 0x1_0000 {
        out.extend_from_slice(&[0xE0 | (c >> 12) as u8, low(6), low(0)]);
    } else {
        out.extend_from_slice(&[0xF0 | (c >> 18) as u8, low(12), low(6), low(0)]);
    }
}
