//! How are many texts held in one piece of memory?

/// Texts one after another in one buffer, laid out as Arrow's `large_utf8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextColumn {
    /// All texts, without anything between them.
    pub bytes: String,
    /// Text i is `bytes[offsets[i]..offsets[i + 1]]`; n + 1 values, the first 0. Signed, as Arrow has it.
    pub offsets: Vec<i64>,
}

impl TextColumn {
    /// An empty column with room for `num_bytes` bytes of text.
    pub fn with_capacity(num_bytes: usize) -> Self {
        TextColumn {
            bytes: String::with_capacity(num_bytes),
            offsets: vec![0],
        }
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Text `i`.
    pub fn get(&self, i: usize) -> &str {
        &self.bytes[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// Adds `part` to the text that [`end_text`](Self::end_text) will close.
    pub fn push_part(&mut self, part: &str) {
        self.bytes.push_str(part);
    }

    /// Closes a text.
    pub fn end_text(&mut self) {
        self.offsets.push(self.bytes.len() as i64);
    }

    /// Adds one text.
    pub fn push(&mut self, text: &str) {
        self.push_part(text);
        self.end_text();
    }
}

/// Documents of tokens one after another in one buffer, as the core encodes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenColumn {
    /// All documents, without anything between them.
    pub bytes: Vec<u8>,
    /// Document i is `bytes[offsets[i]..offsets[i + 1]]`; n + 1 values, the first 0.
    pub offsets: Vec<i64>,
}

impl TokenColumn {
    /// Adds one document.
    pub fn push(&mut self, encoded: &[u8]) {
        self.bytes.extend_from_slice(encoded);
        self.offsets.push(self.bytes.len() as i64);
    }
}

impl Default for TokenColumn {
    fn default() -> Self {
        TokenColumn {
            bytes: Vec::new(),
            offsets: vec![0],
        }
    }
}

impl Default for TextColumn {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}
