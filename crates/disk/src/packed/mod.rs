//! How are files in gzip and zstd read and written?
//!
//! A packed file cannot be read again by offset, so it is unpacked once into a plain file and read from there.

mod frames;
pub mod pack;
#[cfg(test)]
mod tests;
pub mod unpack;

use crate::error::Error;

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// gzip, one member or several.
    Gzip,
    /// Zstandard, one frame or several, skippable ones between them.
    Zstd,
}

impl Codec {
    /// The codec of that name.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if there is none.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "gzip" => Ok(Codec::Gzip),
            "zstd" => Ok(Codec::Zstd),
            _ => Err(Error::invalid(
                "codec",
                format!("{name:?} is not one of gzip, zstd"),
            )),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
        }
    }
}

/// How much a packed file may unpack to: a file of zeros packs a thousand times and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Most bytes in all.
    pub max_bytes: u64,
    /// Most bytes for each byte read, once the first megabytes are over.
    pub max_ratio: u64,
}
