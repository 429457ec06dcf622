//! How are numbers encoded in bytes?
//!
//! Everything is little-endian. Readers do not trust their input: invalid input is [`Malformed`].

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::Error;

/// The input cannot have been produced by any writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl From<Malformed> for Error {
    fn from(_: Malformed) -> Self {
        Error::Damaged {
            reason: "the database is damaged: a record is malformed".to_owned(),
        }
    }
}

pub(super) const CHECKSUM_BYTES: usize = 8;

/// Begins a record: reserves space for its checksum.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.resize(CHECKSUM_BYTES, 0);
}

/// Ends a record with the checksum of its bytes and of `place`, its position, so that misplacement is detected.
pub(super) fn seal(out: &mut [u8], place: u64) {
    let checksum = xxh3_64_with_seed(&out[CHECKSUM_BYTES..], place);
    out[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns the content of a record after its checksum, if the checksum is correct.
pub(super) fn open(record: &[u8], place: u64) -> Result<&[u8], Malformed> {
    let (checksum, content) = record
        .split_first_chunk::<CHECKSUM_BYTES>()
        .ok_or(Malformed)?;
    match xxh3_64_with_seed(content, place) == u64::from_le_bytes(*checksum) {
        true => Ok(content),
        false => Err(Malformed),
    }
}

/// Appends seven bits per byte, lowest first; the highest bit of a byte means that more follow.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends numbers as their minimum, a width, and their offsets from the minimum in that many bits.
pub(super) fn put_packed(out: &mut Vec<u8>, values: impl Iterator<Item = u32> + Clone) {
    let (mut least, mut most) = (u32::MAX, 0);
    for value in values.clone() {
        least = least.min(value);
        most = most.max(value);
    }
    let least = least.min(most);
    let width = 32 - (most - least).leading_zeros();
    put_varint(out, u64::from(least));
    out.push(width as u8);
    if width == 0 {
        return;
    }
    let mut bits = BitWriter::new(out);
    for value in values {
        bits.put(u64::from(value - least), width);
    }
    bits.end();
}

/// Numbers written by [`put_packed`], with random access.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Packed<'a> {
    least: u32,
    width: u32,
    bits: &'a [u8],
}

impl Packed<'_> {
    /// Returns number `i`, which must be below the count of the numbers.
    #[inline]
    pub(super) fn get(&self, i: usize) -> u32 {
        if self.width == 0 {
            return self.least;
        }
        let bit = i * self.width as usize;
        let word = word_at(self.bits, bit / 8) >> (bit % 8);
        let above = word & ((1u64 << self.width) - 1);
        self.least.wrapping_add(above as u32)
    }
}

/// Returns the eight bytes from `begin` on; bytes after the end are 0.
#[inline]
fn word_at(bytes: &[u8], begin: usize) -> u64 {
    if let Some(word) = bytes.get(begin..begin + 8) {
        return u64::from_le_bytes(word.try_into().unwrap_or_default());
    }
    let mut word = [0; 8];
    let rest = bytes.get(begin..).unwrap_or_default();
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// Reads values from the front.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn take(&mut self, num_bytes: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(num_bytes).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn u128(&mut self) -> Result<u128, Malformed> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// Reads a number that [`put_varint`] wrote, such as a count.
    pub fn size(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed)
    }

    /// Reads bytes behind their number.
    pub fn counted(&mut self) -> Result<&'a [u8], Malformed> {
        let num_bytes = self.size()?;
        self.take(num_bytes)
    }

    /// Reads text behind its number of bytes.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        str::from_utf8(self.counted()?).map_err(|_| Malformed)
    }

    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    pub(super) fn varint_u32(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.varint()?).map_err(|_| Malformed)
    }

    /// Reads a count of items that take at least one bit each, so it cannot exceed the remaining bits.
    pub(super) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.size()?;
        match count <= self.0.len().saturating_mul(8) {
            true => Ok(count),
            false => Err(Malformed),
        }
    }

    pub(super) fn packed(&mut self, count: usize) -> Result<Packed<'a>, Malformed> {
        let least = self.varint_u32()?;
        let width = u32::from(self.byte()?);
        if width > 32 {
            return Err(Malformed);
        }
        let num_bits = count.checked_mul(width as usize).ok_or(Malformed)?;
        let bits = self.take(num_bits.div_ceil(8))?;
        Ok(Packed { least, width, bits })
    }

    pub(super) fn end(self) -> Result<(), Malformed> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Malformed),
        }
    }
}

/// Appends bits, lowest first.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    num_bits: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        BitWriter {
            out,
            word: 0,
            num_bits: 0,
        }
    }

    /// Appends the lowest `width` bits of a value that has no others set; at most 64 bits.
    #[inline]
    pub(super) fn put(&mut self, value: u64, width: u32) {
        self.word |= value << self.num_bits;
        let total = self.num_bits + width;
        if total < 64 {
            self.num_bits = total;
            return;
        }
        self.out.extend_from_slice(&self.word.to_le_bytes());
        let taken = 64 - self.num_bits;
        self.word = value.checked_shr(taken).unwrap_or(0);
        self.num_bits = total - 64;
    }

    /// Pads the last byte with 0.
    pub(super) fn end(self) {
        let num_bytes = self.num_bits.div_ceil(8) as usize;
        self.out
            .extend_from_slice(&self.word.to_le_bytes()[..num_bytes]);
    }
}

/// Reads bits, lowest first; bits after the end are 0.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, bit: 0 }
    }

    /// Returns the next `width` bits; at most 64.
    #[inline]
    pub(super) fn take(&mut self, width: u32) -> u64 {
        if width > 57 {
            let low = self.take(32);
            return low | (self.take(width - 32) << 32);
        }
        let word = word_at(self.bytes, self.bit / 8) >> (self.bit % 8);
        self.bit += width as usize;
        word & ((1u64 << width) - 1)
    }

    /// Counts the ones before the next 0, and skips that 0.
    #[inline]
    pub(super) fn ones(&mut self) -> Result<u64, Malformed> {
        let mut count = 0;
        loop {
            if self.bit >= self.bytes.len() * 8 {
                return Err(Malformed);
            }
            let word = word_at(self.bytes, self.bit / 8) >> (self.bit % 8);
            // The bits that the shift brought in are 0, so only bits that were read are counted.
            let ones = word.trailing_ones();
            let whole = 64 - (self.bit % 8) as u32;
            self.bit += ones as usize;
            count += u64::from(ones);
            if ones < whole {
                self.bit += 1;
                // Otherwise the 0 was after the end.
                return match self.bit <= self.bytes.len() * 8 {
                    true => Ok(count),
                    false => Err(Malformed),
                };
            }
        }
    }

    /// Number of bytes read so far; the last one may have padding.
    pub(super) fn num_bytes(&self) -> usize {
        self.bit.div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for values in [
            vec![],
            vec![7],
            vec![5, 5, 5],
            vec![0, u32::MAX, 1, 1 << 31],
            (0..1000).map(|i| 3000 + i * i % 977).collect::<Vec<u32>>(),
        ] {
            let mut out = Vec::new();
            put_packed(&mut out, values.iter().copied());
            let mut cursor = Cursor(&out);
            let packed = cursor.packed(values.len()).unwrap();
            cursor.end().unwrap();
            let back: Vec<_> = (0..values.len()).map(|i| packed.get(i)).collect();
            assert_eq!(back, values);
        }
        for value in [0, 1, 127, 128, 1 << 40, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(Cursor(&out).varint(), Ok(value));
        }
    }

    #[test]
    fn bits_of_any_width_come_back() {
        let mut out = Vec::new();
        let mut state = 1u64;
        let values: Vec<(u64, u32)> = (0..5000)
            .map(|i| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(11);
                let width = i % 65;
                (state.checked_shr(64 - width).unwrap_or(0), width)
            })
            .collect();
        let mut writer = BitWriter::new(&mut out);
        for &(value, width) in &values {
            writer.put(value, width);
        }
        writer.end();
        let mut reader = BitReader::new(&out);
        for &(value, width) in &values {
            assert_eq!(reader.take(width), value, "{width} bits");
        }
        assert_eq!(reader.num_bytes(), out.len());
    }

    #[test]
    fn runs_of_ones_come_back() {
        let runs = [0, 1, 7, 8, 55, 56, 57, 63, 64, 65, 200, 0, 3];
        let mut out = Vec::new();
        let mut writer = BitWriter::new(&mut out);
        for run in runs {
            for _ in 0..run {
                writer.put(1, 1);
            }
            writer.put(0, 1);
        }
        writer.end();
        let mut reader = BitReader::new(&out);
        for run in runs {
            assert_eq!(reader.ones(), Ok(run));
        }
        assert!(BitReader::new(&[0xff; 20]).ones().is_err());
    }

    #[test]
    fn a_record_proves_itself_and_its_place() {
        let mut record = Vec::new();
        begin(&mut record);
        record.extend_from_slice(b"content");
        seal(&mut record, 7);
        assert_eq!(open(&record, 7), Ok(&b"content"[..]));
        assert_eq!(open(&record, 8), Err(Malformed));
        record[10] ^= 1;
        assert_eq!(open(&record, 7), Err(Malformed));
        assert_eq!(open(&record[..7], 7), Err(Malformed));
    }
}
