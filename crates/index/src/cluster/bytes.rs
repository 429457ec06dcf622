//! How are values packed for the servers of a cluster?
//!
//! Integers are little-endian; counts and lengths are varints of seven bits a byte, low bits first.

pub use likewise_disk::store::Cursor as Unpack;
use likewise_disk::store::put_varint;

use crate::error::Result;

pub trait Pack {
    fn count(&mut self, value: usize);
    /// Bytes behind their number.
    fn counted(&mut self, bytes: &[u8]);
    /// Bytes as they are.
    fn raw(&mut self, bytes: &[u8]);
}

impl Pack for Vec<u8> {
    fn count(&mut self, value: usize) {
        put_varint(self, value as u64);
    }

    fn counted(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Takes bytes behind 32 bits of their number, as a script packs them.
pub fn take_string<'b>(unpack: &mut Unpack<'b>) -> Result<&'b [u8]> {
    let num = unpack.u32()?;
    Ok(unpack.take(num as usize)?)
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
        let mut unpack = Unpack(&packed);
        for value in [0, 1, 127, 128, 300, 1 << 20, u32::MAX as usize] {
            assert_eq!(unpack.size().unwrap(), value);
        }
        assert_eq!(unpack.text().unwrap(), "Straße");
        assert!(unpack.0.is_empty());
        assert!(unpack.byte().is_err());
        assert!(Unpack(&[5, 1, 2]).counted().is_err());
        assert!(Unpack(&[0x80; 12]).size().is_err());
    }
}
