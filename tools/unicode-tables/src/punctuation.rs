//! Code points that are punctuation.

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

use super::output::{Output, ranges};

pub fn table(out: &mut Output) {
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
    out.comment(&["Punctuation (general category P*): ranges [first, last], ascending."]);
    out.array("PUNCTUATION", &ranges(is_punctuation));
}
