//! Where are the words of a text?

/// A text and the positions of its words.
#[derive(Debug, Clone, Copy)]
pub struct PlacedWords<'a> {
    pub text: &'a str,
    pub starts: &'a [u32],
    pub ends: &'a [u32],
}

impl PlacedWords<'_> {
    pub(super) fn word(&self, i: usize) -> &str {
        &self.text[self.starts[i] as usize..self.ends[i] as usize]
    }

    /// Returns the text between word `i` and the next one, and whether there is no next one.
    pub(super) fn gap_behind(&self, i: usize) -> (&str, bool) {
        let next = self.starts.get(i + 1).map(|&next| next as usize);
        let gap = &self.text[self.ends[i] as usize..next.unwrap_or(self.text.len())];
        (gap, next.is_none())
    }
}
