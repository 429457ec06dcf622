//! What are rows when stretches of their texts go?

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::map_ranges;
use likewise_core::text::may_be_one_word;

use super::parser::RowParser;
use super::rules::JsonlRules;
use crate::error::Error;
use crate::position::Window;

/// Rows that one thread writes anew at a time.
const GRAIN_ROWS: usize = 64;

/// Stretches of texts, by row and then by where they begin: bytes of the UTF-8 of the text, a lone surrogate being three.
/// They may overlap.
#[derive(Debug, Clone, Copy)]
pub struct Stretches<'a> {
    /// How many there are of each row.
    pub counts: &'a [u32],
    /// Where each begins.
    pub starts: &'a [u32],
    /// Where each ends.
    pub ends: &'a [u32],
    /// Whether a space goes where two words would become one.
    pub keeps_words_apart: bool,
}

/// Rows without stretches of their texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// The lines one after another, each with a newline; of a row of whose text nothing but white space is left none.
    pub lines: Vec<u8>,
    /// Where the line of each row ends in `lines`.
    pub ends: Vec<u64>,
    /// Bytes of text that went.
    pub num_removed_bytes: u64,
}

/// Takes `gone` out of the texts of the rows at `offsets`, `lengths` bytes long without their newline.
///
/// All else of a line stays byte for byte: escapes of the text that stays too. With `keeps_words_apart` a space is written where
/// the texts on both sides of what goes would otherwise join into one word. The rules have one text field.
///
/// # Errors
/// [`Error::Changed`] if a row is no longer one; [`Error::Invalid`] if lengths or rules do not fit; [`Error::Io`];
/// [`Error::Canceled`].
///
/// # Cost
/// A pass over the lines. Memory for the lines that come of it.
pub fn rewrite_rows(
    file: &File,
    offsets: &[u64],
    lengths: &[u32],
    rules: &JsonlRules,
    gone: Stretches<'_>,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<Rewritten, Error> {
    let num_stretches: usize = gone.counts.iter().map(|&count| count as usize).sum();
    let is_even = lengths.len() == offsets.len()
        && gone.counts.len() == offsets.len()
        && gone.starts.len() == num_stretches
        && gone.ends.len() == num_stretches;
    if !is_even {
        return Err(Error::invalid(
            "lengths",
            "the arrays do not fit each other".to_owned(),
        ));
    }
    if rules.text_fields.len() != 1 {
        return Err(Error::invalid(
            "text_fields",
            "must name exactly one field".to_owned(),
        ));
    }
    rules.tree()?;
    let rules = JsonlRules {
        id_field: None,
        id_required: false,
        fields: Vec::new(),
        ..rules.clone()
    };
    let mut first = Vec::with_capacity(offsets.len() + 1);
    first.push(0);
    for &count in gone.counts {
        first.push(first[first.len() - 1] + count as usize);
    }
    let parts = map_ranges(
        offsets.len(),
        GRAIN_ROWS,
        threads,
        cancel,
        Window::new,
        |window, range| {
            let mut parser = RowParser::new(&rules)?;
            let mut made = Rewritten::default();
            for i in range.clone() {
                let (offset, length) = (offsets[i], u64::from(lengths[i]));
                let next = (i + 1..range.end).map(|k| (offsets[k], u64::from(lengths[k])));
                let line = window
                    .fetch(file, offset, length, next)
                    .map_err(|e| Error::read(e, offset))?;
                let place = parser
                    .text_place(line, offset)
                    .map_err(|reason| Error::Changed { offset, reason })?;
                let of_row = first[i]..first[i + 1];
                made.push(
                    line,
                    place,
                    &gone.starts[of_row.clone()],
                    &gone.ends[of_row],
                    gone.keeps_words_apart,
                );
            }
            Ok::<_, Error>(made)
        },
    )?;
    let mut all = Rewritten::default();
    for part in parts {
        let part = part?;
        let base = all.lines.len() as u64;
        all.lines.extend_from_slice(&part.lines);
        all.ends.extend(part.ends.iter().map(|end| base + end));
        all.num_removed_bytes += part.num_removed_bytes;
    }
    Ok(all)
}

impl Rewritten {
    /// Adds a line whose text stands at `place`, quotes included.
    fn push(
        &mut self,
        line: &[u8],
        place: Range<usize>,
        starts: &[u32],
        ends: &[u32],
        keeps_words_apart: bool,
    ) {
        let before = self.lines.len();
        self.lines.extend_from_slice(&line[..=place.start]);
        let mut cutter = Cutter {
            starts,
            ends,
            end: 0,
            at: 0,
            is_blank: true,
            num_removed: 0,
            keeps_words_apart,
            is_cut: false,
            left: (None, None),
        };
        cutter.cut(&line[place.start + 1..place.end - 1], &mut self.lines);
        self.num_removed_bytes += cutter.num_removed;
        match cutter.is_blank {
            true => self.lines.truncate(before),
            false => {
                self.lines.extend_from_slice(&line[place.end - 1..]);
                self.lines.push(b'\n');
            }
        }
        self.ends.push(self.lines.len() as u64);
    }
}

/// Walks through a JSON string as it is written.
struct Cutter<'a> {
    /// Stretches that do not begin before where the walk is, and those that may.
    starts: &'a [u32],
    ends: &'a [u32],
    /// How far reaches what goes, of the stretches that have begun.
    end: usize,
    /// Bytes of text before here.
    at: usize,
    is_blank: bool,
    num_removed: u64,
    keeps_words_apart: bool,
    /// Whether something went since the last scalar that stays.
    is_cut: bool,
    /// The last scalar that stays, and the one before it.
    left: (Option<char>, Option<char>),
}

impl Cutter<'_> {
    /// Adds what stays of the inside of a string.
    fn cut(&mut self, mut raw: &[u8], out: &mut Vec<u8>) {
        while !raw.is_empty() {
            let plain = memchr::memchr(b'\\', raw).unwrap_or(raw.len());
            let (stretch, rest) = raw.split_at(plain);
            self.cut_plain(stretch, out);
            raw = rest;
            if let Some(escape) = Escape::read(raw) {
                let (written, rest) = raw.split_at(escape.num_raw);
                self.begin_stretches();
                if self.at < self.end {
                    self.num_removed += escape.num_bytes as u64;
                    self.is_cut = true;
                } else {
                    self.is_blank &= escape.is_blank;
                    self.keep_apart(Some(escape.character), out);
                    self.left = (Some(escape.character), self.left.0);
                    out.extend_from_slice(written);
                }
                self.at += escape.num_bytes;
                raw = rest;
            }
        }
    }

    /// The same of text without escapes.
    fn cut_plain(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
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

    /// Writes a space before a scalar that stays, if it would go on with the word before the cut.
    fn keep_apart(&mut self, next: Option<char>, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_cut)
            && self.keeps_words_apart
            && let ((Some(last), earlier), Some(next)) = (self.left, next)
            && may_be_one_word(earlier, last, next)
        {
            out.push(b' ');
        }
    }

    /// Takes up the stretches that begin here or before.
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

/// One escaped character.
struct Escape {
    /// Bytes as it is written, and as it is meant.
    num_raw: usize,
    num_bytes: usize,
    is_blank: bool,
    /// U+FFFD for a lone surrogate.
    character: char,
}

impl Escape {
    /// The escape that valid JSON begins with; of two surrogates that belong together both. `None` where nothing is left.
    fn read(raw: &[u8]) -> Option<Self> {
        let &kind = raw.get(1)?;
        if kind != b'u' {
            return Some(Escape {
                num_raw: 2,
                num_bytes: 1,
                is_blank: matches!(kind, b'n' | b'r' | b't' | b'f'),
                character: match kind {
                    b'n' | b'r' | b't' | b'f' => ' ',
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
            is_blank: character.is_some_and(is_blank_character),
            character: character.unwrap_or(char::REPLACEMENT_CHARACTER),
        })
    }
}

/// The four digits behind `\u`.
fn code_unit(raw: &[u8]) -> Option<u32> {
    let digits = std::str::from_utf8(raw.get(2..6)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// The first scalar of UTF-8.
fn first_scalar(text: &[u8]) -> Option<char> {
    let width = match *text.first()? {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        _ => 4,
    };
    std::str::from_utf8(text.get(..width)?).ok()?.chars().next()
}

/// The last scalar of UTF-8.
fn last_scalar(text: &[u8]) -> Option<char> {
    let start = text.iter().rposition(|&byte| byte & 0xC0 != 0x80)?;
    std::str::from_utf8(&text[start..]).ok()?.chars().next()
}

fn is_blank_text(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.chars().all(is_blank_character))
}

/// White space of Unicode (stable since 6.3), separators of information among it: what `str.isspace` of Python says.
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
