//! A Hamming set in one file. FORMAT.md describes every byte.

mod build;
mod layout;
mod read;
mod section;
mod write;

pub use crate::sections::Damage;
pub use build::{HammingBuild, Progress};
pub(crate) use read::hamming_set_of;
pub use read::{OpenedSet, open_hamming_set};
pub use write::write_hamming_set;
pub(crate) use write::write_hamming_to;

const MAGIC: &[u8; 8] = b"LWHAMMNG";
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER_BYTES: usize = 64;
/// Alignment of sections, in bytes: a page.
const ALIGNMENT: u64 = 4096;

/// Properties that distinguish a file from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    pub num_bytes: u64,
    /// The checksum of the header, which covers all other checksums.
    pub checksum: u64,
}
