//! A Hamming set in one file: every byte is described in FORMAT.md.

mod build;
mod held;
mod layout;
mod read;
mod section;
mod source;
mod write;

pub use crate::sections::Damage;
pub use build::{HammingBuild, Progress};
pub(crate) use read::hamming_set_of;
pub use read::{OpenedSet, open_hamming_set};
pub use source::{IndexSource, MAX_ROWS};
pub use write::write_hamming_set;
pub(crate) use write::write_hamming_to;

/// What every file begins with.
const MAGIC: &[u8; 8] = b"LWHAMMNG";
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER_BYTES: usize = 64;
/// Sections begin at multiples of so many bytes: those of a page.
const ALIGNMENT: u64 = 4096;

/// What tells a file from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// Its bytes.
    pub num_bytes: u64,
    /// The checksum of its header, which covers all others.
    pub checksum: u64,
}
