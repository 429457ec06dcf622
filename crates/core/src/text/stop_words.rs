//! Which words are ignored?

#[derive(Debug, Clone, Default)]
pub struct StopWords {
    words: Vec<String>,
}

impl StopWords {
    /// Creates the list from words that are normalized and folded like the texts.
    pub fn new(words: Vec<String>) -> Self {
        StopWords { words }
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }
}
