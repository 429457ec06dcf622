//! What does a string of valid JSON hold?

use std::borrow::Cow;

/// Appends what a string holds, given with its quotes; a lone surrogate is U+FFFD.
pub(super) fn push_string(raw: &str, out: &mut String) {
    let mut rest = &raw[1..raw.len() - 1];
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes())
        && let Some(escape) = Escape::read(&rest.as_bytes()[at..])
    {
        out.push_str(&rest[..at]);
        out.push(escape.character);
        rest = &rest[at + escape.num_raw..];
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
    /// Reads the escape at the start of valid JSON, or a surrogate pair; `None` if no bytes are left.
    pub fn read(raw: &[u8]) -> Option<Self> {
        let &kind = raw.get(1)?;
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
    let digits = std::str::from_utf8(raw.get(2..6)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}
