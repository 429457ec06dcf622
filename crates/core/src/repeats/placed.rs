//! Where do the words of a text stand?

/// A text and where its words stand.
#[derive(Debug, Clone, Copy)]
pub struct PlacedWords<'a> {
    /// The text.
    pub text: &'a str,
    /// Where each word begins.
    pub starts: &'a [u32],
    /// Where each ends.
    pub ends: &'a [u32],
}

impl PlacedWords<'_> {
    /// Word `i`.
    pub(super) fn word(&self, i: usize) -> &str {
        &self.text[self.starts[i] as usize..self.ends[i] as usize]
    }

    /// What stands between word `i` and the next one, and whether there is none.
    pub(super) fn gap_behind(&self, i: usize) -> (&str, bool) {
        let next = self.starts.get(i + 1).map(|&next| next as usize);
        let gap = &self.text[self.ends[i] as usize..next.unwrap_or(self.text.len())];
        (gap, next.is_none())
    }
}
