//! Code points that are punctuation.

use std::fmt::Write as _;

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

use super::{header, scalars};

/// Ranges of punctuation.
pub fn punctuation() -> String {
    let category = CodePointMapData::<GeneralCategory>::new();
    let is_punctuation = |c: char| {
        matches!(
            category.get(c),
            GeneralCategory::ConnectorPunctuation
                | GeneralCategory::DashPunctuation
                | GeneralCategory::OpenPunctuation
                | GeneralCategory::ClosePunctuation
                | GeneralCategory::InitialPunctuation
                | GeneralCategory::FinalPunctuation
                | GeneralCategory::OtherPunctuation
        )
    };
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for point in scalars().filter(|&c| is_punctuation(c)).map(|c| c as u32) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == point => *last = point,
            _ => ranges.push((point, point)),
        }
    }
    let mut out = header(
        "Which code points are punctuation (general category P*)? First and last of each range, rising.",
    );
    writeln!(
        out,
        "pub static PUNCTUATION: [(u32, u32); {}] = [",
        ranges.len()
    )
    .expect("string");
    for (first, last) in ranges {
        writeln!(out, "    (0x{first:04X}, 0x{last:04X}),").expect("string");
    }
    out.push_str("];\n");
    out
}
