//! What is the layout of the file of a segment?

use serde::{Deserialize, Serialize};

use crate::sections::Section;

pub(super) const MAGIC: &[u8; 8] = b"LWSEGMNT";
/// Magic number of the last part of the file.
pub(super) const END_MAGIC: &[u8; 8] = b"LWSEGEND";
pub(super) const VERSION: u32 = 1;
/// Size of the header and of the last part, in bytes.
pub(super) const HEADER_BYTES: usize = 64;
/// Alignment of sections, in bytes.
pub(super) const ALIGNMENT: u64 = 64;
pub(super) const TABLES_ENDING: &str = "lws";
/// File name extension of the fingerprints.
pub(super) const HAMMING_ENDING: &str = "hamming";

/// Parameters of the bands of signatures, as in [`likewise_core::bands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandPlan {
    pub num_slots: u32,
    pub slot_bytes: u32,
    pub bands: u32,
    pub rows: u32,
}

/// Parameters of the search of fingerprints by distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HammingPlan {
    pub bits: u32,
    pub within: u32,
    /// Maximum number of table bytes per fingerprint; `None` for the fastest tables.
    pub table_bytes: Option<u32>,
}

/// The JSON description before the last part.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) sketch_id: String,
    pub(super) num_rows: u32,
    pub(super) num_found: u32,
    /// The held rows, ascending, as 32-bit numbers; absent if they are consecutive.
    pub(super) rows: Option<Section>,
    pub(super) kept: Section,
    pub(super) found: Section,
    pub(super) short: Section,
    pub(super) ids: TableEntry,
    pub(super) groups: TableEntry,
    pub(super) classes: TableEntry,
    pub(super) band_plan: Option<BandPlan>,
    pub(super) bands: Vec<TableEntry>,
    pub(super) hamming: Option<HammingEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HammingEntry {
    pub(super) num_bytes: u64,
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableShape {
    pub(super) num_entries: u64,
    pub(super) row_bits: u32,
    pub(super) remainder_bits: u32,
}

impl TableShape {
    /// Whether a table can have this shape.
    pub(super) fn is_sound(&self) -> bool {
        self.num_entries <= u64::from(u32::MAX)
            && (1..=31).contains(&self.row_bits)
            && self.remainder_bits <= 33
    }

    #[inline(always)]
    pub(super) fn entry_bits(&self) -> u32 {
        self.row_bits + self.remainder_bits
    }

    /// Number of words for the first entries of groups of prefixes, two to a word.
    pub(super) fn start_words(&self) -> usize {
        self.num_entries.div_ceil(64).div_ceil(2) as usize
    }

    pub(super) fn unary_words(&self) -> usize {
        (2 * self.num_entries).div_ceil(64) as usize
    }

    pub(super) fn entry_words(&self) -> usize {
        (self.num_entries * u64::from(self.entry_bits())).div_ceil(64) as usize
    }
}

/// What the store records about a segment, in addition to rows, batch and event, to identify its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) num_bytes: u64,
    /// Checksum of the last part of the file, which covers every byte of the segment.
    pub(super) checksum: u64,
}

/// Returns every section with its name, for callers that check them all.
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
            ("classes".to_owned(), &self.classes),
        ]
        .into_iter()
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
