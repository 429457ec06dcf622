//! Parts of a file whose blocks have checksums: how they are written, mapped and checked.

mod read;
mod write;

use serde::{Deserialize, Serialize};

pub use read::Damage;
pub(crate) use read::{Sections, damaged};
pub(crate) use write::SectionStream;

/// Bytes that one checksum covers.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;

/// Bytes of the file and the checksums of their blocks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) num_bytes: u64,
    /// XXH3 of the checksums of the blocks, which stand behind the section as 64-bit numbers.
    pub(crate) checksum: u64,
}

impl Section {
    /// Where the checksums of the blocks stand.
    pub(crate) fn checksums_offset(&self) -> u64 {
        self.offset.saturating_add(self.num_bytes)
    }
}
