//! What does a string of valid JSON hold?

use std::borrow::Cow;

/// Appends what a string holds, given with its quotes; a lone surrogate is U+FFFD.
pub(super) fn push_string(raw: &str, out: &mut String) {
    let mut rest = &raw[1..raw.len() - 1];
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // Texts in other scripts than Latin are often all escapes.
        let mut num_read = 0;
        while let Some(escape) = Escape::read(&rest.as_bytes()[num_read..]) {
            out.push(escape.character);
            num_read += escape.num_raw;
        }
        if num_read == 0 {
            break;
        }
        rest = &rest[num_read..];
    }
    out.push_str(rest);
}

/// Returns what a string holds, given with its quotes.
pub(super) fn string_of(raw: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', raw.as_bytes()).is_none() {
        return Cow::Borrowed(&raw[1..raw.len() - 1]);
    }
    let mut held = String::new();
    push_string(raw, &mut held);
    Cow::Owned(held)
}

/// An escape, or two of them that are a surrogate pair.
pub(super) struct Escape {
    /// Length of its escaped form, and of the character in UTF-8.
    pub num_raw: usize,
    pub num_bytes: usize,
    /// U+FFFD for a lone surrogate.
    pub character: char,
}

impl Escape {
    /// Reads the escape at the start of valid JSON, or a surrogate pair; `None` if there is none.
    #[inline]
    pub fn read(raw: &[u8]) -> Option<Self> {
        let &[b'\\', kind, ..] = raw else {
            return None;
        };
        if kind != b'u' {
            return Some(Escape {
                num_raw: 2,
                num_bytes: 1,
                character: match kind {
                    b'n' => '\n',
                    b'r' => '\r',
                    b't' => '\t',
                    b'f' => '\u{C}',
                    b'b' => '\u{8}',
                    _ => char::from(kind),
                },
            });
        }
        let unit = code_unit(raw)?;
        let low = match (0xD800..0xDC00).contains(&unit) && raw.len() >= 12 && raw[6..8] == *b"\\u"
        {
            true => code_unit(&raw[6..]).filter(|low| (0xDC00..0xE000).contains(low)),
            false => None,
        };
        let character = match low {
            Some(low) => char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)),
            None => char::from_u32(unit),
        };
        Some(Escape {
            num_raw: if low.is_some() { 12 } else { 6 },
            num_bytes: character.map_or(3, char::len_utf8),
            character: character.unwrap_or(char::REPLACEMENT_CHARACTER),
        })
    }
}

/// Reads the four digits after `\u`.
fn code_unit(raw: &[u8]) -> Option<u32> {
    let digits = raw.get(2..6)?.iter();
    let mut digits = digits.map(|&digit| char::from(digit).to_digit(16));
    digits.try_fold(0, |unit, digit| Some(unit << 4 | digit?))
}
