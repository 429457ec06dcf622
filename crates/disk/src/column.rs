//! How are many texts stored in one buffer?

/// Concatenated texts in one buffer, laid out like Arrow's `large_utf8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextColumn {
    /// The concatenated texts, without separators.
    pub bytes: String,
    /// Text i is `bytes[offsets[i]..offsets[i + 1]]`; n + 1 values, the first 0. Signed, as in Arrow.
    pub offsets: Vec<i64>,
}

impl TextColumn {
    /// Creates an empty column with capacity for `num_bytes` bytes of text.
    pub fn with_capacity(num_bytes: usize) -> Self {
        TextColumn {
            bytes: String::with_capacity(num_bytes),
            offsets: vec![0],
        }
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, i: usize) -> &str {
        &self.bytes[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// Appends `part` to the open text, which [`end_text`](Self::end_text) closes.
    pub fn push_part(&mut self, part: &str) {
        self.bytes.push_str(part);
    }

    pub fn end_text(&mut self) {
        self.offsets.push(self.bytes.len() as i64);
    }

    pub fn push(&mut self, text: &str) {
        self.push_part(text);
        self.end_text();
    }
}

/// Concatenated documents of tokens in one buffer, in the encoding of the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenColumn {
    /// The concatenated documents, without separators.
    pub bytes: Vec<u8>,
    /// Document i is `bytes[offsets[i]..offsets[i + 1]]`; n + 1 values, the first 0.
    pub offsets: Vec<i64>,
}

impl TokenColumn {
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
