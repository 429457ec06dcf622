//! Why are bytes no Parquet file that can be joined?

use std::fmt;

/// Why bytes are no Parquet file that can be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// They end too early.
    Short,
    /// They are no footer of Parquet.
    Malformed,
    /// They hold a page index or a Bloom filter, whose own offsets would stay wrong.
    Indexed,
    /// Its schema or its rows differ from those of the first file.
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
