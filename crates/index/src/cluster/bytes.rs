//! How are values packed for the servers of a cluster?
//!
//! Integers are little-endian; counts and lengths are varints of seven bits a byte, low bits first.

pub use likewise_disk::store::Cursor as Unpack;
use likewise_disk::store::put_varint;

use crate::error::{Error, Result};
use crate::rules::Rules;

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

/// A value with one encoding, which depends on the rules of the index.
pub trait Packed: Sized {
    fn put(&self, rules: &Rules, out: &mut Vec<u8>);

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self>;

    /// Takes a value that another one says is there.
    fn take_if(is_there: bool, rules: &Rules, from: &mut Unpack<'_>) -> Result<Option<Self>> {
        is_there.then(|| Self::take(rules, from)).transpose()
    }
}

macro_rules! packed_values {
    ($($type:ty: |$value:ident, $out:ident| $put:expr, |$from:ident| $take:expr;)*) => {$(
        impl Packed for $type {
            fn put(&self, _: &Rules, $out: &mut Vec<u8>) {
                let $value = self;
                $put
            }

            fn take(_: &Rules, $from: &mut Unpack<'_>) -> Result<Self> {
                Ok($take)
            }
        }
    )*};
}

packed_values! {
    u32: |value, out| out.raw(&value.to_le_bytes()), |from| from.u32()?;
    u64: |value, out| out.raw(&value.to_le_bytes()), |from| from.u64()?;
    u128: |value, out| out.raw(&value.to_le_bytes()), |from| from.u128()?;
    usize: |value, out| out.count(*value), |from| from.size()?;
    String: |value, out| out.counted(value.as_bytes()), |from| from.text()?.to_owned();
}

impl<T: Packed> Packed for Vec<T> {
    fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
        out.count(self.len());
        self.iter().for_each(|value| value.put(rules, out));
    }

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        (0..from.size()?).map(|_| T::take(rules, from)).collect()
    }
}

/// Packs a struct as its fields, in the order in which they are given.
macro_rules! packed_fields {
    ($type:ident: $($field:ident),*) => {
        impl $crate::cluster::bytes::Packed for $type {
            fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
                $(self.$field.put(rules, out);)*
            }

            fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
                $(let $field = $crate::cluster::bytes::Packed::take(rules, from)?;)*
                Ok($type { $($field),* })
            }
        }
    };
}
pub(super) use packed_fields;

/// Takes bytes behind 32 bits of their number, as a script packs them.
pub fn take_string<'b>(unpack: &mut Unpack<'b>) -> Result<&'b [u8]> {
    let num = unpack.u32()?;
    Ok(unpack.take(num as usize)?)
}

/// The text that ends what is unpacked.
pub fn last_text<'b>(from: &mut Unpack<'b>) -> Result<&'b str> {
    std::str::from_utf8(from.rest()).map_err(|_| Error::Unreadable)
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
