//! What can a document be?

use super::own_tokens::OwnTokens;

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
