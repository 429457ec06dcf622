//! How are tokens encoded that the user cut?
//!
//! Each document is one byte string, so that tokens can be passed like texts: the length of the text in scalars (32
//! bits), then for each token its weight (8 bits), its length in bytes (32 bits, all little-endian) and its UTF-8. A
//! document without tokens may have its text instead, after a header that no token has.

/// Tokens of one document, encoded.
#[derive(Debug, Clone, Copy)]
pub struct OwnTokens<'a> {
    encoded: &'a [u8],
}

const HEADER: usize = 4;
const PER_TOKEN: usize = 5;
/// In place of the weight and length of a token. Texts are shorter than that length, so no token is read there.
const TEXT_MARK: [u8; PER_TOKEN] = [0, 0xFF, 0xFF, 0xFF, 0xFF];

/// Begins a document in `out` whose text has `text_length` scalars.
pub fn begin_own_tokens(text_length: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&text_length.to_le_bytes());
}

/// Appends a token to the last document of `out`; returns false if the token is too long.
pub fn push_own_token(token: &[u8], weight: u8, out: &mut Vec<u8>) -> bool {
    match u32::try_from(token.len()) {
        Ok(len) if len < u32::MAX => {
            out.push(weight);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(token);
            true
        }
        _ => false,
    }
}

/// Ends the tokens of the last document of `out`, which begins at `start`; returns false if it has no tokens. Tokens
/// that are all empty describe nothing, and are removed.
pub fn end_own_tokens(start: usize, out: &mut Vec<u8>) -> bool {
    let has_tokens = OwnTokens::new(&out[start..])
        .iter()
        .any(|(token, _)| !token.is_empty());
    if !has_tokens {
        out.truncate(start + HEADER);
    }
    has_tokens
}

/// Appends the text of the last document of `out`, which has no tokens and is described by its text instead.
pub fn push_text_without_tokens(text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        out.extend_from_slice(&TEXT_MARK);
        out.extend_from_slice(text.as_bytes());
    }
}

impl<'a> OwnTokens<'a> {
    /// Reads tokens written by [`begin_own_tokens`] and [`push_own_token`]; only complete ones.
    pub fn new(encoded: &'a [u8]) -> Self {
        OwnTokens { encoded }
    }

    pub(super) fn encoded(self) -> &'a [u8] {
        self.encoded
    }

    /// Returns the number of scalars of the text from which the tokens were cut.
    pub fn text_length(self) -> u32 {
        self.encoded
            .first_chunk()
            .map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Returns the text of a document without tokens; empty if there are tokens, or no text is known.
    pub fn text(self) -> &'a str {
        let rest = self.encoded.get(HEADER..).unwrap_or_default();
        let text = rest.strip_prefix(&TEXT_MARK).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// Returns the document in a form for people: its tokens separated by spaces, or its text if it has no tokens.
    pub fn shown(self) -> String {
        let tokens: Vec<_> = self
            .iter()
            .map(|(token, _)| String::from_utf8_lossy(token))
            .collect();
        match tokens.is_empty() {
            true => self.text().to_owned(),
            false => tokens.join(" "),
        }
    }

    /// Returns the tokens in order, with their weights.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], u8)> {
        let mut rest = self.encoded.get(HEADER..).unwrap_or_default();
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_at_checked(PER_TOKEN)?;
            let len = u32::from_le_bytes(*head.last_chunk()?) as usize;
            let (token, behind) = behind.split_at_checked(len)?;
            rest = behind;
            Some((token, head[0]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut bytes = Vec::new();
        begin_own_tokens(9, &mut bytes);
        for (token, weight) in [("a", 3), ("", 0), ("\u{732b}\0", 15)] {
            assert!(push_own_token(token.as_bytes(), weight, &mut bytes));
        }
        assert!(end_own_tokens(0, &mut bytes));
        let tokens = OwnTokens::new(&bytes);
        let found: Vec<_> = tokens.iter().collect();
        assert_eq!(tokens.text_length(), 9);
        assert_eq!(
            found,
            [(&b"a"[..], 3), (&b""[..], 0), ("\u{732b}\0".as_bytes(), 15)]
        );
        assert_eq!((tokens.text(), &*tokens.shown()), ("", "a  \u{732b}\0"));
        for cut in 0..bytes.len() {
            assert!(OwnTokens::new(&bytes[..cut]).iter().count() < 3);
        }
    }

    #[test]
    fn a_document_without_tokens_has_its_text() {
        let mut bytes = Vec::new();
        begin_own_tokens(2, &mut bytes);
        assert!(push_own_token(b"", 1, &mut bytes) && push_own_token(b"", 0, &mut bytes));
        assert!(!end_own_tokens(0, &mut bytes));
        assert_eq!(OwnTokens::new(&bytes).text(), "");
        push_text_without_tokens("\u{732b}!", &mut bytes);
        let tokens = OwnTokens::new(&bytes);
        assert_eq!(tokens.iter().count(), 0);
        assert_eq!(
            (tokens.text(), &*tokens.shown()),
            ("\u{732b}!", "\u{732b}!")
        );
    }
}
