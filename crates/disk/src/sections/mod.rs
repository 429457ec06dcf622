//! Sections of a file, with a checksum for each block: how they are written, mapped and checked.

mod read;
mod write;

use serde::{Deserialize, Serialize};

pub use read::Damage;
pub(crate) use read::{Sections, damaged};
pub(crate) use write::SectionStream;

/// Bytes covered by one checksum.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// The location of a section and the checksum of its block checksums.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) num_bytes: u64,
    /// XXH3 of the block checksums, which follow the section as 64-bit numbers.
    pub(crate) checksum: u64,
}

impl Section {
    pub(crate) fn checksums_offset(&self) -> u64 {
        self.offset.saturating_add(self.num_bytes)
    }
}
