//! How are gzip and zstd files read and written?
//!
//! A compressed file cannot be read again by offset, so it is decompressed once into a plain file and read from there.

mod frames;
pub mod pack;
#[cfg(test)]
mod tests;
pub mod unpack;

use crate::error::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// gzip, with one or more members.
    Gzip,
    /// Zstandard, with one or more frames, possibly with skippable ones in between.
    Zstd,
}

impl Codec {
    /// Returns the codec with this name. Returns [`Error::InvalidParameter`] if there is none.
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

    pub fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
        }
    }
}

/// Limits of decompression: a file of zeros can expand more than a thousandfold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Maximum number of plain bytes.
    pub max_bytes: u64,
    /// Maximum number of plain bytes per byte read, applied after the first megabytes.
    pub max_ratio: u64,
}
