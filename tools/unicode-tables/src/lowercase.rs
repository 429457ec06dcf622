//! Lower case of scalars, and which scalars are letters and numbers.

use icu_casemap::CaseMapper;
use icu_properties::props::{CaseIgnorable, Cased, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::output::{Output, ranges};

/// What the tokens of the `simhash` package need: lower case, letters and numbers, and the context of a final sigma.
pub fn tables(out: &mut Output) {
    let category = CodePointMapData::<GeneralCategory>::new();
    let (cased, ignorable) = (
        CodePointSetData::new::<Cased>(),
        CodePointSetData::new::<CaseIgnorable>(),
    );
    let is_counted = |c: char| {
        use GeneralCategory as G;
        matches!(
            category.get(c),
            G::UppercaseLetter
                | G::LowercaseLetter
                | G::TitlecaseLetter
                | G::ModifierLetter
                | G::OtherLetter
                | G::DecimalNumber
                | G::LetterNumber
                | G::OtherNumber
        )
    };
    out.comment(&[
        "Letters and numbers (general category L and N), cased and case-ignorable scalars: ranges [first, last], ascending.",
        "LOWERCASE, [first, last, step, delta]: every step-th scalar of a range has the lower case that is delta further,",
        "modulo 2^32. U+0130 has two scalars and is not among them.",
    ]);
    out.array("LETTERS_AND_NUMBERS", &ranges(is_counted));
    out.array("CASED", &ranges(|c| cased.contains(c)));
    out.array("CASE_IGNORABLE", &ranges(|c| ignorable.contains(c)));
    let mapper = CaseMapper::new();
    let mut runs: Vec<[u32; 4]> = Vec::new();
    for c in super::scalars().filter(|&c| c != '\u{130}') {
        let lower = mapper.simple_lowercase(c);
        if lower == c {
            continue;
        }
        let (at, delta) = (c as u32, (lower as u32).wrapping_sub(c as u32));
        match runs.last_mut() {
            Some([first, last, step, same])
                if *same == delta
                    && (at - *last == *step || (first == last && at - *last <= 2)) =>
            {
                (*step, *last) = (at - *last, at);
            }
            _ => runs.push([at, at, 1, delta]),
        }
    }
    out.array("LOWERCASE", &runs);
}
