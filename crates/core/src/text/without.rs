//! What remains of a text when ranges of it are removed?

use super::may_be_one_word;

/// Copies a text without the removed ranges. The text is passed in consecutive parts, plain or as escapes.
#[derive(Debug, Clone)]
pub struct Without<'a> {
    /// Ranges that have not begun yet.
    starts: &'a [u32],
    ends: &'a [u32],
    keeps_words_apart: bool,
    /// End of the removed text, over the ranges that have begun.
    end: usize,
    /// Number of bytes of text before the current position.
    at: usize,
    /// Whether only whitespace remains.
    pub is_blank: bool,
    pub num_removed: u64,
    /// Whether something was removed since the last kept scalar.
    is_cut: bool,
    /// The last kept scalar, and the one before it.
    left: (Option<char>, Option<char>),
}

impl<'a> Without<'a> {
    /// Begins a text with sorted ranges that may overlap; a space keeps words apart if `keeps_words_apart`.
    pub fn new(starts: &'a [u32], ends: &'a [u32], keeps_words_apart: bool) -> Self {
        Without {
            starts,
            ends,
            keeps_words_apart,
            end: 0,
            at: 0,
            is_blank: true,
            num_removed: 0,
            is_cut: false,
            left: (None, None),
        }
    }

    /// Appends the remaining part of plain text.
    pub fn plain(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        while !text.is_empty() {
            self.begin_stretches();
            let goes = self.at < self.end;
            let until = match (goes, self.starts.first()) {
                (true, _) => self.end,
                (false, Some(&start)) => start as usize,
                (false, None) => usize::MAX,
            };
            let (part, rest) = text.split_at((until - self.at).min(text.len()));
            if goes {
                self.num_removed += part.len() as u64;
                self.is_cut = true;
            } else {
                self.is_blank = self.is_blank && is_blank_text(part);
                self.keep_apart(first_scalar(part), out);
                let last = last_scalar(part);
                let before = last.and_then(|c| last_scalar(&part[..part.len() - c.len_utf8()]));
                self.left = (last, before.or(self.left.0));
                out.extend_from_slice(part);
            }
            self.at += part.len();
            text = rest;
        }
    }

    /// Appends an escape as it is `written`, unless it is removed: one character of `num_bytes` bytes.
    pub fn escape(&mut self, written: &[u8], character: char, num_bytes: usize, out: &mut Vec<u8>) {
        self.begin_stretches();
        if self.at < self.end {
            self.num_removed += num_bytes as u64;
            self.is_cut = true;
        } else {
            self.is_blank &= is_blank_character(character);
            self.keep_apart(Some(character), out);
            self.left = (Some(character), self.left.0);
            out.extend_from_slice(written);
        }
        self.at += num_bytes;
    }

    /// Writes a space before a kept scalar if it would continue the word before the cut.
    fn keep_apart(&mut self, next: Option<char>, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_cut)
            && self.keeps_words_apart
            && let ((Some(last), earlier), Some(next)) = (self.left, next)
            && may_be_one_word(earlier, last, next)
        {
            out.push(b' ');
        }
    }

    /// Starts the ranges that begin here or earlier.
    fn begin_stretches(&mut self) {
        while let (Some(&start), Some(&end)) = (self.starts.first(), self.ends.first())
            && start as usize <= self.at
        {
            self.end = self.end.max(end as usize);
            self.starts = &self.starts[1..];
            self.ends = &self.ends[1..];
        }
    }
}

/// Returns the first scalar of UTF-8.
fn first_scalar(text: &[u8]) -> Option<char> {
    let width = match *text.first()? {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    };
    std::str::from_utf8(text.get(..width)?).ok()?.chars().next()
}

/// Returns the last scalar of UTF-8.
fn last_scalar(text: &[u8]) -> Option<char> {
    let start = text.iter().rposition(|&byte| byte & 0xC0 != 0x80)?;
    std::str::from_utf8(&text[start..]).ok()?.chars().next()
}

fn is_blank_text(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.chars().all(is_blank_character))
}

/// Whether a character is Unicode whitespace or an information separator, as in Python's `str.isspace`.
fn is_blank_character(c: char) -> bool {
    matches!(
        c,
        '\t'..='\r'
            | '\u{1C}'..=' '
            | '\u{85}'
            | '\u{A0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200A}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202F}'
            | '\u{205F}'
            | '\u{3000}'
    )
}
