//! Which differences between characters are ignored?

use memchr::memchr3_iter;

use super::tables::{self, ALPHANUMERIC, PUNCTUATION, WORD_BREAK, properties};
use super::{numerals, simplified, utf8};

/// A set of foldings, applied to normalized text in the order of [`Fold::NAMES`]; the result is normalized again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Fold(u16);

const URLS: u16 = 1;
const SIGNS: u16 = 2;
const POINTS: u16 = 4;
const LOOK_ALIKES: u16 = 8;
const TRADITIONAL: u16 = 16;
const WIDTH: u16 = 32;
const ACCENTS: u16 = 64;
const PUNCTUATION_MARKS: u16 = 128;
const NUMERALS: u16 = 256;
const DIGITS: u16 = 512;

impl Fold {
    /// The foldings, in the order in which they are applied.
    pub const NAMES: [&str; 10] = [
        "urls",
        "signs",
        "points",
        "confusables",
        "traditional",
        "width",
        "accents",
        "punctuation",
        "numerals",
        "digits",
    ];

    /// Returns the set with these names, or `None` if a name is unknown.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Fold> {
        names.into_iter().try_fold(Fold(0), |fold, name| {
            let place = Fold::NAMES.iter().position(|&known| known == name)?;
            Some(Fold(fold.0 | 1 << place))
        })
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether characters are simplified, which depends on a library's table.
    pub fn simplifies(self) -> bool {
        self.has(TRADITIONAL)
    }

    /// Returns the set without `punctuation`.
    pub(crate) fn without_punctuation(self) -> Fold {
        Fold(self.0 & !PUNCTUATION_MARKS)
    }

    /// Whether nothing is folded, or signs alone, which few texts hold.
    pub(crate) fn at_most_signs(self) -> bool {
        self.0 & !SIGNS == 0
    }

    fn has(self, folding: u16) -> bool {
        self.0 & folding != 0
    }

    /// Writes the folded text to `out`; returns false if nothing changed. It may need to be normalized again.
    pub(crate) fn apply(self, text: &[u8], out: &mut Vec<u8>) -> bool {
        if self.has(URLS) {
            let mut earlier = Vec::with_capacity(text.len());
            replace(text, &mut earlier);
            if !Fold(self.0 & !URLS).apply(&earlier, out) {
                *out = earlier;
            }
            return out != text;
        }
        if self.has(SIGNS) {
            let rest = Fold(self.0 & !SIGNS);
            return match spell_signs(text, out) {
                false => !rest.is_empty() && rest.apply(text, out),
                true if rest.is_empty() => true,
                true => {
                    let spelled = std::mem::take(out);
                    if !rest.apply(&spelled, out) {
                        *out = spelled;
                    }
                    out != text
                }
            };
        }
        if self.has(NUMERALS) {
            let mut earlier = Vec::new();
            Fold(self.0 & !(NUMERALS | DIGITS)).push_each(text, &mut earlier);
            numerals::read(&earlier, out);
            if self.has(DIGITS) {
                std::mem::swap(&mut earlier, out);
                Fold(DIGITS).push_each(&earlier, out);
            }
        } else {
            self.push_each(text, out);
        }
        out != text
    }

    /// Applies the foldings that consider one character at a time.
    fn push_each(self, text: &[u8], out: &mut Vec<u8>) {
        out.clear();
        out.reserve(text.len() + 8);
        if self.is_empty() {
            out.extend_from_slice(text);
            return;
        }
        let mut after_digit = false;
        let mut at = 0;
        while at < text.len() {
            let (c, num_bytes) = utf8::decode(text, at);
            at += num_bytes;
            self.push(c, &mut after_digit, out);
        }
    }

    fn push(self, mut c: u32, after_digit: &mut bool, out: &mut Vec<u8>) {
        if self.has(POINTS) && c >= FIRST_POINT {
            match unpointed(c) {
                Some(letter) => c = letter,
                None => return,
            }
        }
        if self.has(LOOK_ALIKES)
            && let Some(replacement) = tables::look_alike(c)
        {
            let rest = Fold(self.0 & !(POINTS | LOOK_ALIKES));
            let mut at = 0;
            while at < replacement.len() {
                let (c, num_bytes) = utf8::decode(replacement, at);
                rest.push(c, after_digit, out);
                at += num_bytes;
            }
            return;
        }
        if self.has(TRADITIONAL) && c >= simplified::FIRST {
            c = simplified::simplified(c);
        }
        if self.has(WIDTH) && c >= 0x80 {
            c = narrow(c);
        }
        if self.has(ACCENTS) && c >= 0x80 {
            if is_accent(c) {
                return;
            }
            if c < NO_ACCENTS_FROM
                && has_accent(c)
                && let Some((first, second)) = tables::decompose(c)
            {
                let rest = Fold(self.0 & !(LOOK_ALIKES | TRADITIONAL | WIDTH));
                rest.push(first, after_digit, out);
                rest.push(second, after_digit, out);
                return;
            }
        }
        if self.has(PUNCTUATION_MARKS) && is_punctuation(c) {
            return;
        }
        if self.has(DIGITS) {
            let is_digit = is_digit(c);
            if is_digit && *after_digit {
                return;
            }
            *after_digit = is_digit;
            if is_digit {
                c = u32::from(b'0');
            }
        }
        utf8::push(c, out);
    }
}

/// Writes the text with the signs of [`spelled`] as words to `out`; returns false, and writes nothing, if there are none.
fn spell_signs(text: &[u8], out: &mut Vec<u8>) -> bool {
    let mut copied = 0;
    for at in memchr3_iter(b'+', b'#', b'=', text) {
        let Some((start, end, word)) = spelled(text, at).filter(|&(start, ..)| start >= copied)
        else {
            continue;
        };
        if copied == 0 {
            out.clear();
        }
        out.extend_from_slice(&text[copied..start]);
        out.extend_from_slice(word);
        copied = end;
    }
    if copied > 0 {
        out.extend_from_slice(&text[copied..]);
    }
    copied > 0
}

/// Returns the range and the letters of the sign around a byte, which is `+`, `#` or `=`: names of languages, and operators
/// of two bytes.
fn spelled(text: &[u8], at: usize) -> Option<(usize, usize, &'static [u8])> {
    let before = *text.get(at.checked_sub(1)?)?;
    let next = text.get(at + 1).copied().unwrap_or(b' ');
    let found: (usize, usize, &[u8]) = match (before, text[at], next) {
        (b'a'..=b'z', b'+', b'+') => (at, at + 2, b"plusplus"),
        (b'a'..=b'z', b'#', _) if !next.is_ascii_alphanumeric() => (at, at + 1, b"sharp"),
        (_, b'=', b'=') => return None,
        (b'+', b'=', _) => (at - 1, at + 1, b" plusequals "),
        (b'-', b'=', _) => (at - 1, at + 1, b" minusequals "),
        (b'*', b'=', _) => (at - 1, at + 1, b" timesequals "),
        (b'/', b'=', _) => (at - 1, at + 1, b" overequals "),
        (b'%', b'=', _) => (at - 1, at + 1, b" modequals "),
        (b'&', b'=', _) => (at - 1, at + 1, b" andequals "),
        (b'|', b'=', _) => (at - 1, at + 1, b" orequals "),
        (b'^', b'=', _) => (at - 1, at + 1, b" xorequals "),
        (b'<', b'=', _) => (at - 1, at + 1, b" lessequals "),
        (b'>', b'=', _) => (at - 1, at + 1, b" greaterequals "),
        (b'!', b'=', _) => (at - 1, at + 1, b" notequals "),
        _ => return None,
    };
    Some(found)
}

const FIRST_POINT: u32 = 0x591;

/// Returns the letter without points: `None` for points, the letter for Arabic variants (Lucene's `ArabicNormalizer`).
fn unpointed(c: u32) -> Option<u32> {
    match c {
        0x591..=0x5BD | 0x5BF | 0x5C1 | 0x5C2 | 0x5C4 | 0x5C5 | 0x5C7 => None,
        0x610..=0x61A | 0x64B..=0x652 | 0x656..=0x658 | 0x670 => None,
        0x6D6..=0x6DC | 0x6DF..=0x6E4 | 0x6E7 | 0x6E8 | 0x6EA..=0x6ED => None,
        ALEF_MADDA | ALEF_HAMZA_ABOVE | ALEF_HAMZA_BELOW => Some(ALEF),
        TEH_MARBUTA => Some(HEH),
        DOTLESS_YEH => Some(YEH),
        _ => Some(c),
    }
}

const ALEF_MADDA: u32 = 0x622;
const ALEF_HAMZA_ABOVE: u32 = 0x623;
const ALEF_HAMZA_BELOW: u32 = 0x625;
const ALEF: u32 = 0x627;
const TEH_MARBUTA: u32 = 0x629;
const HEH: u32 = 0x647;
const DOTLESS_YEH: u32 = 0x649;
const YEH: u32 = 0x64A;

/// From here on, no canonical decomposition of a scalar of normalized text contains an accent.
const NO_ACCENTS_FROM: u32 = 0x2300;

/// Whether a scalar is a combining mark of European scripts or symbols; those of others are parts of letters.
fn is_accent(c: u32) -> bool {
    matches!(c, 0x300..=0x36F | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x20D0..=0x20FF | 0xFE20..=0xFE2F)
}

fn has_accent(c: u32) -> bool {
    is_accent(c)
        || tables::decompose(c)
            .is_some_and(|(first, second)| has_accent(first) || has_accent(second))
}

/// Whether a scalar has general category `P*`.
fn is_punctuation(c: u32) -> bool {
    match char::from_u32(c) {
        Some(ascii) if ascii.is_ascii() => {
            ascii.is_ascii_punctuation()
                && !matches!(ascii, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~')
        }
        _ => {
            let after = PUNCTUATION.partition_point(|&[first, _]| first <= c);
            after > 0 && c <= PUNCTUATION[after - 1][1]
        }
    }
}

/// Whether a scalar has general category `Nd`: other scalars with `Word_Break=Numeric` are not numbers.
pub(super) fn is_digit(c: u32) -> bool {
    let property = tables::property(c);
    property & WORD_BREAK == properties::NUMERIC && property & ALPHANUMERIC != 0
}

/// Returns the narrow mark for a wide one that normalization does not change.
fn narrow(c: u32) -> u32 {
    let mark = match c {
        0x3001 => b',',
        0x3002 => b'.',
        0x3008 | 0x300A => b'<',
        0x3009 | 0x300B => b'>',
        0x300C..=0x300F | 0x301D..=0x301F | 0x201C..=0x201F => b'"',
        0x2018..=0x201B => b'\'',
        0x3010 | 0x3014 | 0x3016 | 0x3018 | 0x301A => b'[',
        0x3011 | 0x3015 | 0x3017 | 0x3019 | 0x301B => b']',
        0x301C => b'~',
        _ => return c,
    };
    u32::from(mark)
}

const BEGINNINGS: [&[u8]; 3] = [b"https://", b"http://", b"www."];

/// Appends a text to `out`, with the word `url` between spaces in place of each address.
pub(super) fn replace(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let is_inside = at > 0 && text[at - 1].is_ascii_alphanumeric();
        // Only where an address may begin, so that the time is linear.
        let num_bytes = if is_inside {
            0
        } else {
            address_bytes(&text[at..]).unwrap_or(0)
        };
        out.extend_from_slice(if num_bytes > 0 {
            b" url "
        } else {
            &text[at..=at]
        });
        at += num_bytes.max(1);
    }
}

/// Returns the length of the address at the start of a text: characters of RFC 3986, without marks at the end.
fn address_bytes(text: &[u8]) -> Option<usize> {
    let beginning = BEGINNINGS.iter().find(|&&one| text.starts_with(one))?;
    let is_own = |b: &&u8| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(b);
    let num_bytes = text.iter().take_while(is_own).count();
    let is_after = |b: &&u8| b".,:;!?'()[]*".contains(b);
    let num_bytes = num_bytes - text[..num_bytes].iter().rev().take_while(is_after).count();
    (num_bytes > beginning.len()).then_some(num_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{self, TextRules};

    fn folded(names: &[&str], text: &str) -> String {
        let fold = Fold::from_names(names.iter().copied()).unwrap_or_default();
        assert_eq!(fold.is_empty(), names.is_empty());
        text::prepared(
            text,
            &TextRules {
                fold,
                ..TextRules::default()
            },
        )
    }

    #[test]
    fn addresses_are_one_word() {
        let text = "see https://T.co/a1, (www.a.de/b?c=1). xhttp://b http:// 看http://t.cn/x这";
        assert_eq!(
            folded(&["urls"], text),
            "see url , ( url ). xhttp://b http:// 看 url 这"
        );
    }

    #[test]
    fn each_folding() {
        assert_eq!(
            folded(&["traditional"], "\u{6F22}\u{8A9E} \u{982D}\u{9AEE} abc"),
            "\u{6C49}\u{8BED} \u{5934}\u{53D1} abc"
        );
        assert_eq!(
            folded(
                &["width"],
                "\u{300C}\u{4F60}\u{3001}\u{FF0C}\u{201C}\u{3002}"
            ),
            "\"\u{4F60},,\"."
        );
        assert_eq!(
            folded(
                &["accents"],
                "\u{C9}t\u{E9} a\u{323}\u{302} \u{1EA5} \u{3AC} \u{439} \u{304C} \u{CE}\u{5B0}"
            ),
            "ete a a \u{3B1} \u{438} \u{304C} i\u{5B0}"
        );
        assert_eq!(
            folded(&["punctuation"], "Don't; stop\u{3002} a_b - c $1+1\u{2026}"),
            "dont stop ab c $1+1"
        );
        assert_eq!(
            folded(&["digits"], "v12.5 \u{661}\u{662} 1 2 \u{BD} x"),
            "v0.0 0 0 0 0\u{2044}0 x"
        );
        // Hebrew and Arabic with and without points; alef with hamza, teh marbuta; tatweel is never text.
        assert_eq!(
            folded(
                &["points"],
                "\u{5E9}\u{5C1}\u{5B8}\u{5DC}\u{5D5}\u{5B9}\u{5DD}"
            ),
            "\u{5E9}\u{5DC}\u{5D5}\u{5DD}"
        );
        assert_eq!(
            folded(
                &["points"],
                "\u{623}\u{64E}\u{645}\u{652}\u{629} \u{639}\u{649}"
            ),
            "\u{627}\u{645}\u{647} \u{639}\u{64A}"
        );
        assert_eq!(
            folded(&[], "\u{645}\u{640}\u{640}\u{62F} \u{640}"),
            "\u{645}\u{62F}"
        );
        // Cyrillic er, a, u and a Greek omicron.
        assert_eq!(
            folded(
                &["confusables"],
                "\u{440}\u{430}\u{443}\u{440}\u{430}1 m0dern \u{3BF}"
            ),
            folded(&["confusables"], "paypal modern o")
        );
        assert_eq!(
            folded(
                &["signs"],
                "C++, libstdc++6; C# (f#) a#b 1++ x + y a+b c+++ ##"
            ),
            "cplusplus, libstdcplusplus6; csharp (fsharp) a#b 1++ x + y a+b cplusplus+ ##"
        );
        assert_eq!(
            folded(&["signs"], "x<=y x >= 1; a+=1 == b === != c++=d =a <=="),
            "x lessequals y x greaterequals 1; a plusequals 1 == b === notequals cplusplus=d =a <=="
        );
        // A mark after the sign is one with the letter.
        assert_eq!(folded(&["signs"], "c++\u{30C}"), "cplusplu\u{161}");
        assert_eq!(folded(&["signs", "punctuation"], "C#; C."), "csharp c");
        assert_eq!(folded(&[], "v12."), "v12.");
        assert_eq!(folded(&["digits", "punctuation"], "1,234.5"), "0");
        assert_eq!(
            folded(&["numerals"], "\u{5341}\u{4E03} \u{5343}\u{4E07}"),
            "17 \u{5343}\u{4E07}"
        );
        assert_eq!(Fold::from_names(["digits", "case"]), None);
    }

    #[test]
    fn every_folding_of_every_character_is_idempotent() {
        let mut everything = String::from("https://a.b/c a++ ");
        for c in (0..0x11_0000).filter_map(char::from_u32) {
            everything.push('a');
            everything.push(c);
            everything.push_str("1 ");
        }
        let all: Vec<Vec<&str>> = Fold::NAMES
            .iter()
            .map(|&name| vec![name])
            // Look-alikes of digits and marks are not combined with the foldings of these.
            .chain([
                [&Fold::NAMES[..2], &Fold::NAMES[4..]].concat(),
                vec!["points", "traditional", "width"],
            ])
            .collect();
        for names in all {
            let once = folded(&names, &everything);
            assert!(once != folded(&[], &everything), "{names:?}");
            assert!(folded(&names, &once) == once, "{names:?}");
        }
    }
}
