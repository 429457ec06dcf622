//! What are the fields of one record?

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::rules::{CsvDialect, CsvRules};
use crate::column::TextColumn;

/// Parses the bytes of one record, which may arrive in several parts.
pub(super) struct RecordParser {
    core: Reader,
    output: Vec<u8>,
    ends: Vec<usize>,
    num_output: usize,
    num_ends: usize,
    /// Longest output that is kept.
    max_output: usize,
    /// Whether the record was longer, so that its first bytes were dropped.
    is_too_long: bool,
}

impl RecordParser {
    pub fn new(dialect: CsvDialect, max_document: u64) -> Self {
        let mut core = ReaderBuilder::new()
            .delimiter(dialect.delimiter)
            .quoting(dialect.has_quotes)
            .build();
        // The reader drops a byte order mark at its start; it must not do so inside a file.
        let _ = core.read_record(b"\n", &mut [0], &mut [0]);
        RecordParser {
            core,
            output: vec![0; 4096],
            ends: vec![0; 64],
            num_output: 0,
            num_ends: 0,
            max_output: max_document as usize + 4096,
            is_too_long: false,
        }
    }

    pub fn clear(&mut self) {
        (self.num_output, self.num_ends, self.is_too_long) = (0, 0, false);
    }

    /// Reads bytes up to the end of the record, which may come in a later call. Returns how many bytes were consumed,
    /// and whether the record is complete. The consumed bytes include the line end, or its first byte.
    pub fn feed(&mut self, input: &[u8]) -> (usize, bool) {
        let mut num_taken = 0;
        loop {
            let (result, read, written, ended) = self.core.read_record(
                &input[num_taken..],
                &mut self.output[self.num_output..],
                &mut self.ends[self.num_ends..],
            );
            num_taken += read;
            self.num_output += written;
            self.num_ends += ended;
            match result {
                // Without input, the reader would treat the call as the end of the file.
                _ if num_taken == input.len() && result != ReadRecordResult::Record => {
                    if result == ReadRecordResult::OutputFull {
                        self.grow_output();
                    }
                    return (num_taken, false);
                }
                ReadRecordResult::Record => return (num_taken, true),
                ReadRecordResult::OutputFull => self.grow_output(),
                ReadRecordResult::OutputEndsFull => self.grow_ends(),
                ReadRecordResult::InputEmpty | ReadRecordResult::End => return (num_taken, false),
            }
        }
    }

    fn grow_output(&mut self) {
        match self.output.len() < self.max_output {
            true => {
                let size = (self.output.len() * 2).min(self.max_output);
                self.output.resize(size, 0);
            }
            false => (self.num_output, self.is_too_long) = (0, true),
        }
    }

    fn grow_ends(&mut self) {
        match self.ends.len() < 1 << 20 {
            true => self.ends.resize(self.ends.len() * 2, 0),
            false => (self.num_ends, self.is_too_long) = (0, true),
        }
    }

    pub fn len(&self) -> usize {
        self.num_ends
    }

    /// Field `i` of the complete record, unquoted.
    pub fn field(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.output[start..self.ends[i]]
    }

    /// Checks the complete record, which has `length` bytes in the file.
    pub fn check(&self, length: u64, rules: &CsvRules) -> Result<(), String> {
        if length > rules.max_document || self.is_too_long {
            return Err(format!(
                "the record has {length} bytes; --max-document allows {} (perhaps a quote is never closed)",
                rules.max_document
            ));
        }
        if self.len() != rules.num_columns {
            return Err(format!(
                "the record has {} fields, but the header has {}",
                self.len(),
                rules.num_columns
            ));
        }
        let wanted = rules.text_columns.iter().chain(&rules.id_column);
        for &column in wanted.chain(rules.field_columns.iter().flatten()) {
            if let Err(error) = std::str::from_utf8(self.field(column)) {
                return Err(format!(
                    "field {} is not valid UTF-8 (at byte {} of the field)",
                    column + 1,
                    error.valid_up_to() + 1
                ));
            }
        }
        match rules.id_column {
            Some(column) if rules.id_required && self.field(column).is_empty() => {
                Err("the id is empty".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Field `i` of a checked record.
    pub fn text(&self, i: usize) -> &str {
        std::str::from_utf8(self.field(i)).unwrap_or_default()
    }

    /// Appends the text of a checked record.
    pub fn push_text(&self, rules: &CsvRules, out: &mut TextColumn) {
        for (i, &column) in rules.text_columns.iter().enumerate() {
            if i > 0 {
                out.push_part("\n");
            }
            out.push_part(self.text(column));
        }
        out.end_text();
    }
}

/// Encodes a field as JSON: numbers as numbers that keep every digit, an empty field as "".
pub(super) fn as_json(value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    json_number(value).unwrap_or_else(|| serde_json::to_string(value).unwrap_or_default())
}

/// Writes a decimal number as JSON does (`+.50` becomes `0.50`), or returns `None` if the value is not one.
fn json_number(value: &str) -> Option<String> {
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (sign, unsigned) = match value.as_bytes()[0] {
        b'-' => ("-", &value[1..]),
        b'+' => ("", &value[1..]),
        _ => ("", value),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let mut number = format!("{sign}{}", if whole.is_empty() { "0" } else { whole });
    if !fraction.is_empty() {
        number = format!("{number}.{fraction}");
    }
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !is_digits(digits) {
            return None;
        }
        number = format!("{number}e{exponent}");
    }
    Some(number)
}
