//! Which words are ignored?

/// Words that are removed from the tokens.
#[derive(Debug, Clone, Default)]
pub struct StopWords {
    words: Vec<String>,
}

impl StopWords {
    /// Creates the list from words that are normalized and folded like the texts: each is compared as a whole with
    /// tokens.
    pub fn new(words: Vec<String>) -> Self {
        StopWords { words }
    }

    /// The words.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}
