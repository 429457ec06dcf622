//! What can a token be?

use super::own_tokens::OwnTokens;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Like [`Tokens::Word`], and Katakana is also divided into characters, as other scripts without spaces are.
    Auto,
    /// Like [`Tokens::Auto`], but neighboring characters of a script without spaces form overlapping pairs.
    Script,
    /// Words of UAX #29 that contain a letter or a digit.
    Word,
    /// Every scalar of the normalized text.
    Char,
    /// In Chinese, words of a dictionary and of a model for unknown words; elsewhere like [`Tokens::Auto`].
    Chinese,
    /// Sentences of UAX #29, each normalized separately.
    Sentence,
    /// Lines, each normalized separately.
    Line,
    /// Groups of lines between blank ones, each group normalized as a whole.
    Paragraph,
    Bytes,
    /// Ranges of bytes, cut by content or at a fixed size.
    Chunks,
    /// Tokens cut by the user: [`Document::Tokens`](super::Document::Tokens).
    User,
}

named!(Tokens {
    Auto: "auto",
    Script: "script",
    Word: "word",
    Char: "char",
    Chinese: "chinese",
    Sentence: "sentence",
    Line: "line",
    Paragraph: "paragraph",
    Bytes: "bytes",
    Chunks: "chunks",
    User: "user",
});

impl Tokens {
    /// Whether documents are read as bytes, without normalization.
    pub fn are_bytes(self) -> bool {
        matches!(self, Tokens::Bytes | Tokens::Chunks)
    }
}

/// A document as given by the caller.
#[derive(Debug, Clone, Copy)]
pub enum Document<'a> {
    Text(&'a str),
    /// Any bytes, for tokens `bytes` and `chunks`.
    Bytes(&'a [u8]),
    /// Tokens cut by the user, for tokens `user`.
    Tokens(OwnTokens<'a>),
}

impl<'a> From<&'a str> for Document<'a> {
    fn from(text: &'a str) -> Self {
        Document::Text(text)
    }
}

impl<'a> From<&'a String> for Document<'a> {
    fn from(text: &'a String) -> Self {
        Document::Text(text)
    }
}

impl<'a> Document<'a> {
    /// Returns the bytes of the document; for a text, its UTF-8.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Document::Text(text) => text.as_bytes(),
            Document::Bytes(bytes) => bytes,
            Document::Tokens(tokens) => tokens.encoded(),
        }
    }

    /// Returns the value within which a text is compared, its first line, and the rest of the text.
    pub fn split_value(self) -> (&'a str, Document<'a>) {
        match self {
            Document::Text(text) => {
                let (value, text) = text.split_once('\n').unwrap_or((text, ""));
                (value, Document::Text(text))
            }
            other => ("", other),
        }
    }

    /// Returns the number of scalars of a text, or of that from which tokens were cut; otherwise of bytes.
    pub fn length(self) -> u32 {
        match self {
            Document::Text(text) => text.chars().count() as u32,
            Document::Bytes(bytes) => bytes.len() as u32,
            Document::Tokens(tokens) => tokens.text_length(),
        }
    }
}
