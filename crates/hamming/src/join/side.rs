//! What is the input of a join?

use crate::distance::Fingerprints;
use crate::plan::MAX_JOINED;
use likewise_core::error::{Error, Result};

#[derive(Debug, Clone, Copy)]
pub struct JoinSide<'a> {
    pub fingerprints: Fingerprints<'a>,
    /// The row of each fingerprint; `None` if rows are positions.
    pub rows: Option<&'a [u32]>,
    /// Nonzero if the text was empty: such rows pair only with each other. `None` if no text is empty.
    pub is_empty: Option<&'a [u8]>,
}

impl<'a> JoinSide<'a> {
    /// Creates a side whose fingerprints are rows 0, 1, ..., of nonempty texts.
    pub fn of(fingerprints: Fingerprints<'a>) -> Self {
        JoinSide {
            fingerprints,
            rows: None,
            is_empty: None,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        self.fingerprints.check()?;
        let len = self.fingerprints.len();
        if len as u64 > MAX_JOINED {
            return Err(Error::invalid(
                "fingerprints",
                format!("{len} rows; at most {MAX_JOINED} are joined at once"),
            ));
        }
        for (name, given) in [
            ("rows", self.rows.map(<[u32]>::len)),
            ("is_empty", self.is_empty.map(<[u8]>::len)),
        ] {
            if given.is_some_and(|given| given != len) {
                return Err(Error::invalid(
                    name,
                    format!("{} of them for {len} fingerprints", given.unwrap_or(0)),
                ));
            }
        }
        Ok(())
    }

    pub(super) fn row(&self, index: usize) -> u32 {
        self.rows.map_or(index as u32, |rows| rows[index])
    }

    pub(super) fn is_empty_at(&self, index: usize) -> bool {
        self.is_empty.is_some_and(|is_empty| is_empty[index] != 0)
    }

    /// Returns fingerprint `index`, with bits beyond the width cleared.
    #[inline(always)]
    pub(super) fn code<const W: usize>(&self, index: usize) -> [u64; W] {
        let words = &self.fingerprints.words[index * W..][..W];
        let mut code: [u64; W] = std::array::from_fn(|w| words[w]);
        code[W - 1] &= u64::MAX >> (64 * W as u32 - self.fingerprints.bits);
        code
    }
}
