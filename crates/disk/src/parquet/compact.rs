//! Thrift's compact protocol: structs copied field by field, with changes to some fields.
//!
//! Source: Apache Thrift, "Thrift Compact protocol encoding". Only the types of a Parquet footer are supported: no
//! maps.

use super::damage::Damage;

/// Types of the compact protocol, as numbered in its field headers.
pub mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const STRUCT: u8 = 12;
}

/// Structs nested more deeply count as damage.
const MAX_DEPTH: usize = 64;

/// Reads values from the front of a footer.
#[derive(Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let (front, rest) = self.bytes.split_at_checked(count).ok_or(Damage::Short)?;
        self.bytes = rest;
        Ok(front)
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Damage> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damage::Malformed)
    }

    pub fn signed(&mut self) -> Result<i64, Damage> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads the (number, type) of the field after number `last`, or `None` at the end of the struct.
    pub fn field(&mut self, last: i16) -> Result<Option<(i16, u8)>, Damage> {
        let header = self.byte()?;
        match (header >> 4, header & 15) {
            (_, 0) => Ok(None),
            (0, kind) => {
                let number = i16::try_from(self.signed()?).map_err(|_| Damage::Malformed)?;
                Ok(Some((number, kind)))
            }
            (delta, kind) => {
                let number = last.checked_add(i16::from(delta));
                Ok(Some((number.ok_or(Damage::Malformed)?, kind)))
            }
        }
    }

    /// Reads the (length, element type) of the next list.
    pub fn list(&mut self) -> Result<(usize, u8), Damage> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        // An element takes at least one byte.
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len() => Ok((length, header & 15)),
            _ => Err(Damage::Malformed),
        }
    }

    /// Returns the bytes of the next value, which has type `kind`.
    pub fn value(&mut self, kind: u8) -> Result<&'a [u8], Damage> {
        let before = self.bytes;
        self.skip(kind, MAX_DEPTH)?;
        Ok(&before[..before.len() - self.bytes.len()])
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), Damage> {
        let depth = depth.checked_sub(1).ok_or(Damage::Malformed)?;
        match kind {
            // For Booleans, the type in the field header is the value.
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.take(1).map(drop),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.take(8).map(drop),
            kind::BINARY => {
                let length = usize::try_from(self.varint()?).map_err(|_| Damage::Malformed)?;
                self.take(length).map(drop)
            }
            kind::LIST | kind::SET => {
                let (length, element) = self.list()?;
                if matches!(element, kind::TRUE | kind::FALSE) {
                    return self.take(length).map(drop);
                }
                (0..length).try_for_each(|_| self.skip(element, depth))
            }
            kind::STRUCT => {
                let mut last = 0;
                while let Some((number, kind)) = self.field(last)? {
                    self.skip(kind, depth)?;
                    last = number;
                }
                Ok(())
            }
            _ => Err(Damage::Malformed),
        }
    }
}

/// Writes one struct, field by field.
pub struct StructWriter<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

impl<'a> StructWriter<'a> {
    /// Starts a struct at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        StructWriter { out, last: 0 }
    }

    /// Writes a field header and returns the buffer that its value is appended to. Field numbers must ascend.
    pub fn field(&mut self, number: i16, kind: u8) -> &mut Vec<u8> {
        match number - self.last {
            delta @ 1..=15 => self.out.push((delta as u8) << 4 | kind),
            _ => {
                self.out.push(kind);
                push_signed(self.out, i64::from(number));
            }
        }
        self.last = number;
        self.out
    }

    pub fn end(self) {
        self.out.push(0);
    }
}

/// Appends a signed number of 16 to 64 bits.
pub fn push_signed(out: &mut Vec<u8>, value: i64) {
    push_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub fn push_list(out: &mut Vec<u8>, length: usize, kind: u8) {
    match length {
        0..15 => out.push((length as u8) << 4 | kind),
        _ => {
            out.push(0xf0 | kind);
            push_varint(out, length as u64);
        }
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
