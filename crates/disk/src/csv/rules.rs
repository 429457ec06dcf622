//! How are the records of a CSV file written, and which of its columns are wanted?

use crate::error::{Error, Result};
use likewise_core::error::invalid_if;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvDialect {
    pub delimiter: u8,
    /// Whether a quote at the beginning of a field opens a quoted field; otherwise it is an ordinary character.
    pub has_quotes: bool,
}

/// What to take from each record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRules {
    pub dialect: CsvDialect,
    /// Number of columns of the header; a record with more or fewer fields is bad.
    pub num_columns: usize,
    /// Columns that hold the text; several are joined by a newline in this order.
    pub text_columns: Vec<usize>,
    pub id_column: Option<usize>,
    /// Whether a record with an empty id is bad.
    pub id_required: bool,
    /// Further columns to return as JSON; `None` if the file has no such column.
    pub field_columns: Vec<Option<usize>>,
    /// Longest record, in bytes; a longer one is a bad row. At most 4 GiB - 1.
    pub max_document: u64,
}

impl CsvRules {
    /// Checks the rules: columns are in the header, a text column is named, `max_document` is in range.
    pub fn check(&self) -> Result<()> {
        let wanted = self.text_columns.iter().chain(&self.id_column);
        for &column in wanted.chain(self.field_columns.iter().flatten()) {
            invalid_if(column >= self.num_columns, "columns", || {
                format!("{column} is not one of {} columns", self.num_columns)
            })?;
        }
        if self.text_columns.is_empty() {
            return Err(Error::invalid("text_columns", "no column is named"));
        }
        if self.max_document == 0 || self.max_document > u64::from(u32::MAX) {
            let message = format!("{} is outside 1..{}", self.max_document, u32::MAX);
            return Err(Error::invalid("max_document", message));
        }
        Ok(())
    }
}
