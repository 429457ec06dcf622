//! What may a document be?

use super::own_tokens::OwnTokens;

/// A document as it comes.
#[derive(Debug, Clone, Copy)]
pub enum Document<'a> {
    /// A text.
    Text(&'a str),
    /// Any bytes, for tokens `bytes` and `chunks`.
    Bytes(&'a [u8]),
    /// Tokens that the user cut, for tokens `user`.
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
    /// The bytes of the document; of a text its UTF-8.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Document::Text(text) => text.as_bytes(),
            Document::Bytes(bytes) => bytes,
            Document::Tokens(tokens) => tokens.encoded(),
        }
    }

    /// The value that a text is compared within, which is its first line, and the text behind it; of what is no text, no value.
    pub fn split_value(self) -> (&'a str, Document<'a>) {
        match self {
            Document::Text(text) => {
                let (value, text) = text.split_once('\n').unwrap_or((text, ""));
                (value, Document::Text(text))
            }
            other => ("", other),
        }
    }

    /// Unicode scalars of a text, or of the text that tokens were cut from; else the number of bytes.
    pub fn length(self) -> u32 {
        match self {
            Document::Text(text) => text.chars().count() as u32,
            Document::Bytes(bytes) => bytes.len() as u32,
            Document::Tokens(tokens) => tokens.text_length(),
        }
    }
}
