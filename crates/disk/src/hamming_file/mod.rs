//! A Hamming set in one file: every byte is described in FORMAT.md.

mod build;
mod held;
mod layout;
mod read;
mod section;
mod source;
mod write;

pub use build::{HammingBuild, Progress};
pub use read::{Damage, OpenedSet, open_hamming_set};
pub use source::{IndexSource, MAX_ROWS};
pub use write::write_hamming_set;

/// What every file begins with.
const MAGIC: &[u8; 8] = b"LWHAMMNG";
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER_BYTES: usize = 64;
/// Sections begin at multiples of so many bytes: those of a page.
const ALIGNMENT: u64 = 4096;
/// Bytes that one checksum covers.
const BLOCK_BYTES: usize = 64 << 10;
