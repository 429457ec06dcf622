//! How are values packed for the servers of a cluster?
//!
//! Integers are little-endian; counts and lengths are varints of seven bits a byte, low bits first.

use crate::error::{Error, Result};

pub trait Pack {
    fn count(&mut self, value: usize);
    /// Bytes behind their number.
    fn counted(&mut self, bytes: &[u8]);
    /// Bytes as they are.
    fn raw(&mut self, bytes: &[u8]);
}

impl Pack for Vec<u8> {
    fn count(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn counted(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Takes values from packed bytes.
#[derive(Debug, Clone, Copy)]
pub struct Unpack<'b> {
    rest: &'b [u8],
}

impl<'b> Unpack<'b> {
    /// From the first byte on.
    pub fn new(bytes: &'b [u8]) -> Self {
        Unpack { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.rest)
    }

    /// So many bytes.
    pub fn raw(&mut self, num: usize) -> Result<&'b [u8]> {
        let (head, rest) = self.rest.split_at_checked(num).ok_or(Error::Unreadable)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(Error::Unreadable)?;
        self.rest = rest;
        Ok(*head)
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub fn count(&mut self) -> Result<usize> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::Unreadable)
    }

    /// Bytes behind their number.
    pub fn counted(&mut self) -> Result<&'b [u8]> {
        let num = self.count()?;
        self.raw(num)
    }

    /// Text behind its number of bytes.
    pub fn text(&mut self) -> Result<&'b str> {
        std::str::from_utf8(self.counted()?).map_err(|_| Error::Unreadable)
    }

    /// Bytes behind 32 bits of their number, as a script packs them.
    pub fn string(&mut self) -> Result<&'b [u8]> {
        let num = self.u32()?;
        self.raw(num as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_what_is_cut_is_an_error() {
        let mut packed = Vec::new();
        for value in [0, 1, 127, 128, 300, 1 << 20, u32::MAX as usize] {
            packed.count(value);
        }
        packed.counted("Straße".as_bytes());
        let mut unpack = Unpack::new(&packed);
        for value in [0, 1, 127, 128, 300, 1 << 20, u32::MAX as usize] {
            assert_eq!(unpack.count().unwrap(), value);
        }
        assert_eq!(unpack.text().unwrap(), "Straße");
        assert!(unpack.is_empty());
        assert!(unpack.byte().is_err());
        assert!(Unpack::new(&[5, 1, 2]).counted().is_err());
        assert!(Unpack::new(&[0x80; 12]).count().is_err());
    }
}
