//! What stands where in the file of a segment?

use serde::{Deserialize, Serialize};

use crate::sections::Section;

/// What every file begins with.
pub(super) const MAGIC: &[u8; 8] = b"LWSEGMNT";
/// What its last part begins with.
pub(super) const END_MAGIC: &[u8; 8] = b"LWSEGEND";
/// Version of the format.
pub(super) const VERSION: u32 = 1;
/// Bytes of the header and of the last part.
pub(super) const HEADER_BYTES: usize = 64;
/// Sections begin at multiples of so many bytes.
pub(super) const ALIGNMENT: u64 = 64;
/// Endings of the names of the two files.
pub(super) const TABLES_ENDING: &str = "lws";
/// As above.
pub(super) const HAMMING_ENDING: &str = "hamming";

/// Bands of signatures, as [`likewise_core::bands`] has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandPlan {
    /// Slots of a signature.
    pub num_slots: u32,
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// Bands.
    pub bands: u32,
    /// Slots of a band.
    pub rows: u32,
}

/// Fingerprints that are searched by distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HammingPlan {
    /// Width of a fingerprint.
    pub bits: u32,
    /// The radius.
    pub within: u32,
    /// Most bytes of tables for a fingerprint; as fast as can be where `None`.
    pub table_bytes: Option<u32>,
}

/// The description that stands before the last part, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) sketch_id: String,
    /// Rows that the segment holds.
    pub(super) num_rows: u32,
    pub(super) num_found: u32,
    /// These rows, ascending, as 32-bit numbers; absent where they follow one another from the first on.
    pub(super) rows: Option<Section>,
    pub(super) kept: Section,
    pub(super) found: Section,
    pub(super) short: Section,
    pub(super) ids: TableEntry,
    pub(super) groups: TableEntry,
    pub(super) classes: Option<TableEntry>,
    pub(super) band_plan: Option<BandPlan>,
    pub(super) bands: Vec<TableEntry>,
    pub(super) hamming: Option<HammingEntry>,
}

/// The file of the fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HammingEntry {
    pub(super) num_bytes: u64,
    /// That of its header.
    pub(super) checksum: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TableEntry {
    #[serde(flatten)]
    pub(super) shape: TableShape,
    pub(super) starts: Section,
    pub(super) unary: Section,
    pub(super) entries: Section,
}

/// Sizes of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableShape {
    pub(super) num_entries: u64,
    pub(super) row_bits: u32,
    pub(super) remainder_bits: u32,
}

impl TableShape {
    /// Whether there can be such a table.
    pub(super) fn is_sound(&self) -> bool {
        self.num_entries <= u64::from(u32::MAX)
            && (1..=31).contains(&self.row_bits)
            && self.remainder_bits <= 33
    }

    /// Bits of an entry.
    #[inline(always)]
    pub(super) fn entry_bits(&self) -> u32 {
        self.row_bits + self.remainder_bits
    }

    /// Words of the first entries of groups of prefixes, two to a word.
    pub(super) fn start_words(&self) -> usize {
        self.num_entries.div_ceil(64).div_ceil(2) as usize
    }

    /// Words of the directory.
    pub(super) fn unary_words(&self) -> usize {
        (2 * self.num_entries).div_ceil(64) as usize
    }

    /// Words of the entries.
    pub(super) fn entry_words(&self) -> usize {
        (self.num_entries * u64::from(self.entry_bits())).div_ceil(64) as usize
    }
}

/// What the description of a store says of a segment beside rows, batch and event: which bytes it consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) num_bytes: u64,
    /// That of the last part of the file, which covers every byte of the segment.
    pub(super) checksum: u64,
}

/// The section of each name, for whoever checks them all.
impl Description {
    pub(super) fn sections(&self) -> Vec<(String, Section)> {
        let mut all = vec![
            ("kept".to_owned(), self.kept),
            ("found".to_owned(), self.found),
            ("short".to_owned(), self.short),
        ];
        all.extend(self.rows.map(|rows| ("rows".to_owned(), rows)));
        let bands = self.bands.iter().enumerate();
        let tables = [
            ("ids".to_owned(), &self.ids),
            ("groups".to_owned(), &self.groups),
        ]
        .into_iter()
        .chain(
            self.classes
                .iter()
                .map(|entry| ("classes".to_owned(), entry)),
        )
        .chain(bands.map(|(band, entry)| (format!("band {band}"), entry)));
        for (name, table) in tables {
            for (part, section) in [
                ("starts", table.starts),
                ("directory", table.unary),
                ("entries", table.entries),
            ] {
                all.push((format!("{part} of {name}"), section));
            }
        }
        all
    }
}
