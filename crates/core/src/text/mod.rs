//! What are the tokens of a text?
//!
//! A text is normalised (NFKC case folding, white space), then cut. All tables are of one Unicode version. Everything is
//! linear in the text, whatever it holds.

mod compose;
mod normalize;
mod tables;
#[cfg(test)]
mod tests;
mod utf8;
mod words;

pub(crate) use normalize::{Spaces, normalize as normalize_into};
pub(crate) use words::cut as cut_words;

/// Version of the text rules and of the Unicode tables behind them.
pub const TEXT_VERSION: &str = "1/unicode-17.0.0";

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// Words of UAX #29 that hold a letter or a digit.
    Word,
    /// Every scalar of the normalised text.
    Char,
    /// As [`Tokens::Word`], and Katakana is parted after every character, as other scripts without spaces are anyway.
    Auto,
}

impl Tokens {
    /// The kind of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Tokens> {
        [Tokens::Word, Tokens::Char, Tokens::Auto]
            .into_iter()
            .find(|tokens| tokens.name() == name)
    }

    /// Name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Tokens::Word => "word",
            Tokens::Char => "char",
            Tokens::Auto => "auto",
        }
    }
}

/// Writes the normalised text to `out`, in UTF-8; `out` is cleared first.
///
/// NFKC case folding, NFC, runs of white space turned into one space and dropped at both ends. Normalising twice
/// changes nothing more. Cost: linear; the result may be up to 11 times as long as the text.
pub fn normalize(text: &str, out: &mut Vec<u8>) {
    normalize_into(text, Spaces::Collapse, out);
}

/// The tokens of a text as strings, in order: for showing and comparing, where speed does not matter.
pub fn tokens(text: &str, tokens: Tokens) -> Vec<String> {
    let mut bytes = Vec::new();
    normalize(text, &mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    if tokens == Tokens::Char {
        return text.chars().map(String::from).collect();
    }
    let mut found = Vec::new();
    cut_words(text.as_bytes(), tokens == Tokens::Auto, |start, end| {
        found.push(text[start..end].to_owned())
    });
    found
}
