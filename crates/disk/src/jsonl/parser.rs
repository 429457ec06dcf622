//! What does a line hold, or why is it not a row?

use std::borrow::Cow;
use std::ops::Range;

use serde::de::{DeserializeSeed, IgnoredAny};

use super::capture::{Captured, Found, ObjectSeed, TextSeed, TextSlot};
use super::escape::{push_string, string_of};
use super::nan::{replace_non_numbers, type_of};
use super::rules::{JsonlRules, Node, TokenRules};
use super::tokens::{encode_text, encode_tokens, has_no_tokens};
use crate::column::TextColumn;
use crate::error::Result;

/// Parses lines one after another, reusing its memory.
pub(super) struct RowParser<'r> {
    rules: &'r JsonlRules,
    tree: Node,
    captured: Captured,
    encoded: Vec<u8>,
    of_text: Option<Box<RowParser<'r>>>,
}

pub(super) struct Row<'a> {
    line: &'a str,
    captured: &'a Captured,
    /// The tokens, if the rules ask for them.
    pub encoded: &'a [u8],
    /// The id, if the row has one.
    pub id: Option<Cow<'a, str>>,
}

/// UTF-8 encoding of U+FEFF at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<'r> RowParser<'r> {
    pub fn new(rules: &'r JsonlRules) -> Result<Self> {
        Ok(RowParser {
            rules,
            tree: rules.tree()?,
            captured: Captured::new(rules),
            encoded: Vec::new(),
            of_text: match &rules.text_without_tokens {
                Some(rules) => Some(Box::new(RowParser::new(rules)?)),
                None => None,
            },
        })
    }

    /// Whether the line counts as blank. `offset` is its position in the file.
    pub fn is_blank(line: &[u8], offset: u64) -> bool {
        without_mark(line, offset)
            .iter()
            .all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\x0B' | b'\x0C'))
    }

    /// Returns an error with the reason if a line of this length is rejected unread.
    pub fn check_length(&self, length: u64) -> Result<(), String> {
        match length > self.rules.max_document {
            true => Err(format!(
                "the line has {length} bytes, more than the {} allowed (max_document)",
                self.rules.max_document
            )),
            false => Ok(()),
        }
    }

    /// Parses a line without its newline; `offset` is its position in the file. The error is the reason, for people.
    pub fn parse<'a>(&'a mut self, line: &'a [u8], offset: u64) -> Result<Row<'a>, String> {
        self.check_length(line.len() as u64)?;
        let line = without_mark(line, offset);
        let line = std::str::from_utf8(line).map_err(|error| {
            let at = error.valid_up_to();
            format!(
                "bad UTF-8: byte 0x{:02x} at byte {at} of the line",
                line[at]
            )
        })?;
        match line
            .trim_start_matches([' ', '\t', '\r'])
            .as_bytes()
            .first()
        {
            Some(b'{') => {}
            first => return Err(not_an_object(line, first.copied())),
        }
        if has_inner_control(line.as_bytes()) {
            // The pass below accepts control characters in keys; this one rejects those inside strings.
            check_json(line)?;
        }
        if self.capture(line, false).is_err()
            && let Err(error) = self.capture(line, true)
        {
            let replaced = replace_non_numbers(line).ok_or_else(|| bad_json(&error))?;
            self.capture(&replaced, true)
                .map_err(|error| bad_json(&error))?;
        }
        self.resolve(line)
    }

    /// Returns the ranges of the strings of the first text field, including quotes.
    pub fn text_places(&mut self, line: &[u8], offset: u64) -> Result<Vec<Range<usize>>, String> {
        let inner = without_mark(line, offset);
        let num_before = line.len() - inner.len();
        let inner = std::str::from_utf8(inner).map_err(|error| error.to_string())?;
        if let Err(error) = self.capture(inner, true) {
            let replaced = replace_non_numbers(inner).ok_or_else(|| bad_json(&error))?;
            self.capture(&replaced, true)
                .map_err(|error| bad_json(&error))?;
        }
        let (slot, name) = (&mut self.captured.texts[0], &self.rules.text_fields[0]);
        resolve_text(inner, slot, name)?;
        let places = match &slot.found {
            Found::Parts => slot.parts.clone(),
            Found::Raw(range) => vec![range.clone()],
            Found::Absent => Vec::new(),
        };
        let shifted = |range: Range<usize>| num_before + range.start..num_before + range.end;
        Ok(places.into_iter().map(shifted).collect())
    }

    /// Finds the requested values. With `all_raw`, only invalid JSON is an error.
    fn capture(&mut self, line: &str, all_raw: bool) -> Result<(), serde_json::Error> {
        self.captured.forget_all(&self.tree);
        let mut deserializer = serde_json::Deserializer::from_str(line);
        ObjectSeed {
            line,
            node: &self.tree,
            out: &mut self.captured,
            all_raw,
        }
        .deserialize(&mut deserializer)?;
        deserializer.end()
    }

    /// Checks that text and id exist and have the right types.
    fn resolve<'a>(&'a mut self, line: &'a str) -> Result<Row<'a>, String> {
        for (slot, name) in self.captured.texts.iter_mut().zip(&self.rules.text_fields) {
            match self.rules.tokens {
                Some(rules) => resolve_tokens(line, slot, name, rules, &mut self.encoded)?,
                None => resolve_text(line, slot, name)?,
            }
        }
        if let (true, Some(parser)) = (has_no_tokens(&self.encoded), &mut self.of_text)
            && let Ok(row) = parser.parse(line.as_bytes(), 1)
        {
            let mut text = TextColumn::default();
            row.push_text(&mut text);
            encode_text(text.get(0), &mut self.encoded);
        }
        let id = match (&self.captured.id, &self.rules.id_field) {
            (Some(range), Some(name)) => parse_id(&line[range.clone()], name)?,
            _ => None,
        };
        if id.is_none() && self.rules.id_required {
            let name = self.rules.id_field.as_deref().unwrap_or("id");
            return Err(match &self.captured.id {
                Some(range) => format!("id field \"{name}\" is {}", type_of(&line[range.clone()])),
                None => format!("no id field \"{name}\""),
            });
        }
        Ok(Row {
            line,
            captured: &self.captured,
            encoded: &self.encoded,
            id,
        })
    }
}

impl Row<'_> {
    /// Appends the text to a column; several fields are joined by newlines.
    pub fn push_text(&self, out: &mut TextColumn) {
        for (i, slot) in self.captured.texts.iter().enumerate() {
            if i > 0 {
                out.push_part("\n");
            }
            match &slot.found {
                Found::Raw(range) => push_string(&self.line[range.clone()], &mut out.bytes),
                Found::Parts => push_parts(self.line, &slot.parts, out),
                Found::Absent => {}
            }
        }
        out.end_text();
    }

    /// Further field `i` as it is written, or "" if it is absent.
    pub fn field(&self, i: usize) -> &str {
        match &self.captured.fields[i] {
            Some(range) => &self.line[range.clone()],
            None => "",
        }
    }
}

/// Ensures that a text slot holds a string.
fn resolve_text(line: &str, slot: &mut TextSlot, name: &str) -> Result<(), String> {
    let range: Range<usize> = match &slot.found {
        Found::Parts => return has_text(slot, name),
        Found::Absent => return Err(format!("no field \"{name}\"")),
        Found::Raw(range) => range.clone(),
    };
    let raw = &line[range.clone()];
    match (raw.as_bytes()[0], slot.is_in_list()) {
        (b'"', false) => Ok(()),
        (b'[', _) | (b'"' | b'n', true) => {
            let read = |line: &str, slot: &mut TextSlot| {
                let mut deserializer = serde_json::Deserializer::from_str(&line[range.clone()]);
                TextSeed { line, slot }.deserialize(&mut deserializer)
            };
            read(line, slot)
                .or_else(|error| match replace_non_numbers(line) {
                    Some(replaced) => read(&replaced, slot),
                    None => Err(error),
                })
                .map_err(|error| format!("field \"{name}\": {}", without_position(&error)))?;
            has_text(slot, name)
        }
        (b'n', _) => Err(format!("field \"{name}\" is null")),
        _ => Err(format!(
            "field \"{name}\" is {}, not a string",
            type_of(raw)
        )),
    }
}

/// Ensures that a list holds a string.
fn has_text(slot: &TextSlot, name: &str) -> Result<(), String> {
    match slot.found == Found::Parts && slot.parts.is_empty() {
        true => Err(format!("no text in \"{name}\"")),
        false => Ok(()),
    }
}

/// Appends the strings of a list, joined by newlines.
fn push_parts(line: &str, parts: &[Range<usize>], out: &mut TextColumn) {
    for (i, range) in parts.iter().enumerate() {
        if i > 0 {
            out.push_part("\n");
        }
        push_string(&line[range.clone()], &mut out.bytes);
    }
}

/// Ensures that a slot holds a list of tokens, and encodes it.
fn resolve_tokens(
    line: &str,
    slot: &TextSlot,
    name: &str,
    rules: TokenRules,
    encoded: &mut Vec<u8>,
) -> Result<(), String> {
    let Found::Raw(range) = &slot.found else {
        return Err(format!("no tokens field \"{name}\""));
    };
    let raw = &line[range.clone()];
    match raw.as_bytes()[0] {
        b'[' => encode_tokens(raw, name, rules, encoded),
        b'n' => Err(format!("field \"{name}\" is null")),
        _ => Err(format!(
            "field \"{name}\" is {}, not a list of tokens",
            type_of(raw)
        )),
    }
}

/// Parses an id: a string or a whole number, also as pandas makes it a fraction; `None` for null and NaN.
fn parse_id<'a>(raw: &'a str, name: &str) -> Result<Option<Cow<'a, str>>, String> {
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Some(Cow::Borrowed(raw)));
    }
    if let Some((whole, fraction)) = raw.split_once('.')
        && fraction.bytes().all(|byte| byte == b'0')
    {
        return Ok(Some(Cow::Borrowed(if whole == "-0" { "0" } else { whole })));
    }
    match raw.as_bytes()[0] {
        b'n' | b'N' => Ok(None),
        b'"' => Ok(Some(string_of(raw))),
        _ => Err(format!(
            "id field \"{name}\" is {}; ids must be strings or whole numbers; use --id-field none to ignore ids",
            type_of(raw)
        )),
    }
}

/// Explains why a line that does not begin with a brace is not a row.
fn not_an_object(line: &str, first: Option<u8>) -> String {
    match (check_json(line), first) {
        (Ok(()), _) => format!(
            "the line is {}, not a JSON object",
            type_of(line.trim_start())
        ),
        (Err(reason), _) => reason,
    }
}

/// Checks that the line is exactly one JSON value; control characters inside strings are rejected.
fn check_json(line: &str) -> Result<(), String> {
    let Err(error) = serde_json::from_str::<IgnoredAny>(line) else {
        return Ok(());
    };
    match replace_non_numbers(line) {
        Some(replaced) => serde_json::from_str::<IgnoredAny>(&replaced)
            .map(|_| ())
            .map_err(|error| bad_json(&error)),
        None => Err(bad_json(&error)),
    }
}

/// Returns the reason, for people, without the library's line number, which is always 1.
fn bad_json(error: &serde_json::Error) -> String {
    let message = without_position(error);
    match error.column() {
        0 => format!("bad JSON: {message}"),
        column => format!("bad JSON at byte {column} of the line: {message}"),
    }
}

fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line 1 column ").next();
    message.unwrap_or_default().to_owned()
}

/// Whether there is a control character before the end of the line, where a carriage return is usual.
fn has_inner_control(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Without an early exit, the loop is vectorized.
    line.iter()
        .fold(false, |found, &byte| found | (byte < 0x20))
}

fn without_mark(line: &[u8], offset: u64) -> &[u8] {
    match offset {
        0 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
        _ => line,
    }
}
