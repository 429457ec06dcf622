//! Why can bytes not be joined as a Parquet file?

use std::fmt;

/// Why bytes cannot be joined as a Parquet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The bytes end too early.
    Short,
    /// The bytes are not a Parquet footer.
    Malformed,
    /// The file has a page index or a Bloom filter, whose own offsets would become wrong.
    Indexed,
    /// The schema or the rows differ from those of the first file.
    Unlike,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Short => "the footer ends too early",
            Damage::Malformed => "not a Parquet footer",
            Damage::Indexed => "a file with a page index or a Bloom filter cannot be joined",
            Damage::Unlike => "the schema is not that of the first file",
        })
    }
}
