//! Lower case of scalars, and which scalars are letters and numbers.

use std::fmt::Write as _;

use icu_casemap::CaseMapper;
use icu_properties::props::{CaseIgnorable, Cased, GeneralCategory};
use icu_properties::{CodePointMapData, CodePointSetData};

/// What the tokens of the `simhash` package need: lower case, letters and numbers, and the context of a final sigma.
pub fn table() -> String {
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
    let mut out = super::header(
        "Which scalars are letters and numbers, and what is their lower case?\n//!\n\
         //! LETTERS_AND_NUMBERS (general category L and N), CASED, CASE_IGNORABLE: ranges (first, last), rising. LOWERCASE: (first, last,\n\
         //! step, delta): every step-th scalar of a range has the lower case that stands delta further. U+0130 has two scalars and is\n\
         //! not among them.",
    );
    ranges(&mut out, "LETTERS_AND_NUMBERS", is_counted);
    ranges(&mut out, "CASED", |c| cased.contains(c));
    ranges(&mut out, "CASE_IGNORABLE", |c| ignorable.contains(c));
    let mapper = CaseMapper::new();
    let mut runs: Vec<(u32, u32, u32, i64)> = Vec::new();
    for c in super::scalars().filter(|&c| c != '\u{130}') {
        let lower = mapper.simple_lowercase(c);
        if lower == c {
            continue;
        }
        let (at, delta) = (c as u32, i64::from(lower as u32) - i64::from(c as u32));
        match runs.last_mut() {
            Some((first, last, step, same))
                if *same == delta
                    && (at - *last == *step || (first == last && at - *last <= 2)) =>
            {
                (*step, *last) = (at - *last, at);
            }
            _ => runs.push((at, at, 1, delta)),
        }
    }
    writeln!(
        out,
        "pub static LOWERCASE: [(u32, u32, u32, i32); {}] = [",
        runs.len()
    )
    .expect("string");
    for (first, last, step, delta) in runs {
        writeln!(out, "    (0x{first:04X}, 0x{last:04X}, {step}, {delta}),").expect("string");
    }
    out.push_str("];\n");
    out
}

/// Writes the ranges of scalars for which `has` is true.
fn ranges(out: &mut String, name: &str, has: impl Fn(char) -> bool) {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for c in super::scalars().filter(|&c| has(c)) {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == c as u32 => *last = c as u32,
            _ => found.push((c as u32, c as u32)),
        }
    }
    writeln!(out, "pub static {name}: [(u32, u32); {}] = [", found.len()).expect("string");
    for line in found.chunks(6) {
        let line: Vec<String> = line
            .iter()
            .map(|(first, last)| format!("(0x{first:04X}, 0x{last:04X})"))
            .collect();
        writeln!(out, "    {},", line.join(", ")).expect("string");
    }
    out.push_str("];\n\n");
}
