//! What is the layout of the file of a Hamming set?

use serde::{Deserialize, Serialize};

use crate::sections::Section;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) bits: u32,
    pub(super) within: u32,
    pub(super) keys: Vec<KeyEntry>,
    pub(super) next_row: u64,
    pub(super) num_removed_present: usize,
    pub(super) segments: Vec<SegmentEntry>,
    pub(super) tail_codes: Section,
    pub(super) tail_rows: Section,
    pub(super) num_tail_rows: usize,
    pub(super) removed: Section,
    /// Bytes of the caller: the ids.
    pub(super) ids: Option<Section>,
    /// Text of the caller: the recipe and its identity.
    pub(super) extra: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeyEntry {
    pub(super) mask: [u64; 4],
    pub(super) radius: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SegmentEntry {
    pub(super) tables: Vec<TableEntry>,
    pub(super) rows: Option<RowsEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TableEntry {
    pub(super) prefix_bits: u32,
    pub(super) line_shift: u32,
    pub(super) is_unary: bool,
    pub(super) num_entries: usize,
    pub(super) lines: Section,
    pub(super) escapes: Section,
    pub(super) residuals: Section,
    pub(super) rest: Section,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RowsEntry {
    pub(super) width: u32,
    pub(super) num_rows: usize,
    pub(super) numbers: Section,
    pub(super) group_ends: Section,
    pub(super) group_rows: Section,
}

/// Returns every section with its name, for callers that check them all.
impl Description {
    pub(super) fn sections(&self) -> Vec<(String, Section)> {
        let mut all = vec![
            ("tail_codes".to_owned(), self.tail_codes),
            ("tail_rows".to_owned(), self.tail_rows),
            ("removed".to_owned(), self.removed),
        ];
        all.extend(self.ids.map(|ids| ("ids".to_owned(), ids)));
        for (s, segment) in self.segments.iter().enumerate() {
            for (t, table) in segment.tables.iter().enumerate() {
                for (name, section) in [
                    ("lines", table.lines),
                    ("escapes", table.escapes),
                    ("residuals", table.residuals),
                    ("rest", table.rest),
                ] {
                    all.push((format!("{name} of table {t} of segment {s}"), section));
                }
            }
            if let Some(rows) = &segment.rows {
                for (name, section) in [
                    ("numbers", rows.numbers),
                    ("group_ends", rows.group_ends),
                    ("group_rows", rows.group_rows),
                ] {
                    all.push((format!("{name} of segment {s}"), section));
                }
            }
        }
        all
    }
}
