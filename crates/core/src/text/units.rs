//! Where do lines, paragraphs and sentences end?

use unicode_segmentation::UnicodeSegmentation;

use super::tables::{self, WHITE_SPACE};

/// Calls `take` with every line of a text, in order, without what ends it: LF, CR, CR LF, VT, FF, NEL, LS or PS.
pub(crate) fn lines<'a>(text: &'a str, mut take: impl FnMut(&'a str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(ends_line).unwrap_or(rest.len());
        take(&rest[..end]);
        let ending = &rest[end..];
        let num_bytes = match ending.starts_with("\r\n") {
            true => 2,
            false => ending.chars().next().map_or(0, char::len_utf8),
        };
        rest = &ending[num_bytes..];
    }
}

/// Calls `take` with every paragraph: consecutive lines that are not blank, and what ends those inside.
pub(crate) fn paragraphs<'a>(text: &'a str, mut take: impl FnMut(&'a str)) {
    let place = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    let mut open: Option<(usize, usize)> = None;
    lines(text, |line| {
        if is_blank(line) {
            if let Some((start, end)) = open.take() {
                take(&text[start..end]);
            }
            return;
        }
        let (start, end) = (place(line), place(line) + line.len());
        open = Some((open.map_or(start, |(first, _)| first), end));
    });
    if let Some((start, end)) = open {
        take(&text[start..end]);
    }
}

/// Calls `take` with every sentence by the rules of UAX #29, with the spaces behind it. A line's end is a sentence's.
pub(crate) fn sentences<'a>(text: &'a str, take: impl FnMut(&'a str)) {
    text.split_sentence_bounds().for_each(take);
}

fn ends_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether there is nothing but white space.
pub(crate) fn is_blank(line: &str) -> bool {
    line.chars()
        .all(|c| tables::property(u32::from(c)) & WHITE_SPACE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<'a>(cut: fn(&'a str, &mut dyn FnMut(&'a str)), text: &'a str) -> Vec<&'a str> {
        let mut found = Vec::new();
        cut(text, &mut |part| found.push(part));
        found
    }

    #[test]
    fn lines_end_as_unicode_says() {
        let of = |text| all(|text, take| lines(text, take), text);
        assert_eq!(
            of("a\nb\r\nc\rd\u{b}e\u{c}f\u{85}g\u{2028}h\u{2029}i"),
            ["a", "b", "c", "d", "e", "f", "g", "h", "i"]
        );
        assert_eq!(of("\n\na\n"), ["", "", "a"]);
        assert_eq!(of(""), [""; 0]);
        assert_eq!(of("a\tb\u{1c}c"), ["a\tb\u{1c}c"]);
    }

    #[test]
    fn blank_lines_part_paragraphs() {
        let of = |text| all(|text, take| paragraphs(text, take), text);
        assert_eq!(of("a\nb\n \u{3000}\t\r\nc\n\n\nd\n"), ["a\nb", "c", "d"]);
        assert_eq!(of("\n \n"), [""; 0]);
        assert_eq!(of("a"), ["a"]);
    }

    #[test]
    fn sentences_end_as_unicode_says() {
        let of = |text| all(|text, take| sentences(text, take), text);
        assert_eq!(
            of("It costs 3.50 in all. Mr. x came! \u{4f60}\u{597d}\u{3002}\u{518d}\u{89c1}"),
            [
                "It costs 3.50 in all. ",
                "Mr. x came! ",
                "\u{4f60}\u{597d}\u{3002}",
                "\u{518d}\u{89c1}"
            ]
        );
        assert_eq!(of("one\ntwo"), ["one\n", "two"]);
    }
}
