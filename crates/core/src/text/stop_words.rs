//! Which words do not count?

/// Words that are left out of the tokens.
#[derive(Debug, Clone, Default)]
pub struct StopWords {
    words: Vec<String>,
}

impl StopWords {
    /// These words, normalized and folded as the texts will be: each is compared as a whole with tokens.
    pub fn new(words: Vec<String>) -> Self {
        StopWords { words }
    }

    /// The words.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}
