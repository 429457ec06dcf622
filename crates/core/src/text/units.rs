//! Where do lines, paragraphs and sentences end?

use memchr::{memchr, memchr3};
use unicode_segmentation::UnicodeSegmentation;

use super::tables::{self, WHITE_SPACE};

/// Number of bytes that are checked together for the end of a line.
const LINE_STEP: usize = 32;

/// Calls `take` with every line of a text, in order, without its line end: LF, CR, CR LF, VT, FF, NEL, LS or PS.
pub(crate) fn lines<'a>(text: &'a str, mut take: impl FnMut(&'a str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let end = end_of_line(rest.as_bytes());
        take(&rest[..end]);
        let ending = &rest[end..];
        let num_bytes = match ending.starts_with("\r\n") {
            true => 2,
            false => ending.chars().next().map_or(0, char::len_utf8),
        };
        rest = &ending[num_bytes..];
    }
}

/// Calls `take` with every paragraph: consecutive nonblank lines, including the line ends inside.
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

/// Calls `take` with every sentence (UAX #29), with the spaces after it; a line end ends one too.
pub(crate) fn sentences<'a>(text: &'a str, mut take: impl FnMut(&'a str)) {
    let mut start = 0;
    // No rule crosses a line feed (SB4), so lines are cut one by one.
    while start < text.len() {
        let rest = &text.as_bytes()[start..];
        let end = memchr(b'\n', rest).map_or(text.len(), |at| start + at + 1);
        let line = &text[start..end];
        let solid = line.trim_end_matches('\n').trim_end_matches('\r');
        let ending = &line[solid.len()..];
        if line.is_ascii() && memchr(b'\r', solid.as_bytes()).is_none() && ending.len() <= 2 {
            ascii_sentences(line, solid.len(), &mut take);
        } else {
            line.split_sentence_bounds().for_each(&mut take);
        }
        start = end;
    }
}

/// Calls `take` with the sentences of an ASCII line, whose first `len` bytes precede its line end.
fn ascii_sentences<'a>(line: &'a str, len: usize, take: &mut impl FnMut(&'a str)) {
    let bytes = &line.as_bytes()[..len];
    let is_at = |at: usize, class: fn(&u8) -> bool| bytes.get(at).is_some_and(class);
    let (mut start, mut at) = (0, 0);
    while let Some(found) = memchr3(b'.', b'!', b'?', &bytes[at..]) {
        let terminator = at + found;
        at = terminator + 1;
        let is_full_stop = bytes[terminator] == b'.';
        if is_full_stop {
            let follows_letter = terminator > 0 && is_at(terminator - 1, u8::is_ascii_alphabetic);
            let joins_upper = follows_letter && is_at(at, u8::is_ascii_uppercase);
            // SB6, SB7.
            if joins_upper || is_at(at, u8::is_ascii_digit) {
                continue;
            }
        }
        // SB9, SB10.
        while is_at(at, |b| {
            matches!(b, b'"' | b'\'' | b'(' | b')' | b'[' | b']' | b'{' | b'}')
        }) {
            at += 1;
        }
        while is_at(at, |b| matches!(b, b' ' | b'\t' | b'\x0b' | b'\x0c')) {
            at += 1;
        }
        if at == len {
            break;
        }
        // SB8: what looks like the rest of a sentence. The search ends at the next terminator, so that all searches
        // together take linear time.
        let tells = |b: &u8| b.is_ascii_alphabetic() || is_terminator(b);
        let next = bytes[at..].iter().find(|b| tells(b));
        let goes_on = is_full_stop && next.is_some_and(u8::is_ascii_lowercase);
        // SB8a.
        let continues = is_at(at, |b| {
            is_terminator(b) || matches!(b, b',' | b'-' | b':' | b';')
        });
        if !goes_on && !continues {
            take(&line[start..at]);
            start = at;
        }
    }
    if start < line.len() {
        take(&line[start..]);
    }
}

fn is_terminator(byte: &u8) -> bool {
    matches!(byte, b'.' | b'!' | b'?')
}

/// Returns the position of the first line end of a text, or its length.
fn end_of_line(text: &[u8]) -> usize {
    // The first bytes of characters occur nowhere else in UTF-8.
    let may_end = |&byte: &u8| matches!(byte, b'\n'..=b'\r' | 0xC2 | 0xE2);
    let ends = |at: &usize| {
        matches!(
            text[*at..],
            [b'\n'..=b'\r', ..] | [0xC2, 0x85, ..] | [0xE2, 0x80, 0xA8 | 0xA9, ..]
        )
    };
    let (steps, rest) = text.as_chunks::<LINE_STEP>();
    for (i, step) in steps.iter().enumerate() {
        // Without an early exit, so that the compiler compares whole registers.
        if step.iter().fold(false, |any, byte| any | may_end(byte)) {
            let mut places = i * LINE_STEP..(i + 1) * LINE_STEP;
            if let Some(end) = places.find(ends) {
                return end;
            }
        }
    }
    let mut places = text.len() - rest.len()..text.len();
    places.find(ends).unwrap_or(text.len())
}

/// Whether a line contains only whitespace.
pub(crate) fn is_blank(line: &str) -> bool {
    line.chars()
        .all(|c| tables::property(u32::from(c)) & WHITE_SPACE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

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
    fn lines_end_at_any_place_as_unicode_says() {
        let ends_line = |c| matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
        for scalar in
            "\t\n\u{b}\u{c}\r\u{e}\u{85}\u{84}\u{b5}\u{2027}\u{2028}\u{2029}\u{202a}\u{a0a8}"
                .chars()
        {
            for before in 0..2 * LINE_STEP + 2 {
                for filling in ["a", "\u{2019}", "\u{e9}"] {
                    let line = filling.repeat(before);
                    let text = format!("{line}{scalar}b");
                    let expected: Vec<&str> = text.split(ends_line).collect();
                    assert_eq!(all(|text, take| lines(text, take), &text), expected);
                }
            }
        }
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

    #[test]
    fn ascii_lines_are_cut_as_all_others() {
        let check = |text: &str| {
            let expected: Vec<&str> = text.split_sentence_bounds().collect();
            assert_eq!(
                all(|text, take| sentences(text, take), text),
                expected,
                "{text:?}"
            );
        };
        // Every ASCII character at the relevant places, before and after a terminator.
        for c in 0..128_u8 {
            for d in 0..128_u8 {
                let (c, d) = (char::from(c), char::from(d));
                for text in [
                    format!("a.{c}{d}b C"),
                    format!("A{c}.{d} B"),
                    format!("x? {c}{d}y"),
                    format!("{c}.){d}"),
                ] {
                    check(&text);
                }
            }
        }
        let alphabet: Vec<char> =
            "aBZ09..!?,-:;)\"' \t\x0b\n\n\r_\u{85}\u{2028}\u{e9}\u{301}\u{2019}"
                .chars()
                .collect();
        let mut state = 1;
        for _ in 0..60_000 {
            let mut text = String::new();
            state = mix64(state);
            for _ in 0..state % 14 {
                state = mix64(state + 1);
                // Mostly ASCII.
                let num_chars = if state >> 60 == 0 { alphabet.len() } else { 20 };
                text.push(alphabet[(state >> 8) as usize % num_chars]);
            }
            check(&text);
        }
    }

    #[test]
    fn long_runs_take_linear_time() {
        let close = ")".repeat(1 << 20);
        assert_eq!(
            all(|text, take| sentences(text, take), &format!("a.{close}")).len(),
            1
        );
        let stops = "a. ,".repeat(1 << 18);
        assert_eq!(all(|text, take| sentences(text, take), &stops).len(), 1);
    }
}
