//! What can a token be?

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

impl Tokens {
    pub const ALL: [Tokens; 11] = [
        Tokens::Auto,
        Tokens::Script,
        Tokens::Word,
        Tokens::Char,
        Tokens::Chinese,
        Tokens::Sentence,
        Tokens::Line,
        Tokens::Paragraph,
        Tokens::Bytes,
        Tokens::Chunks,
        Tokens::User,
    ];

    pub fn from_name(name: &str) -> Option<Tokens> {
        Tokens::ALL.into_iter().find(|tokens| tokens.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Tokens::Auto => "auto",
            Tokens::Script => "script",
            Tokens::Word => "word",
            Tokens::Char => "char",
            Tokens::Chinese => "chinese",
            Tokens::Sentence => "sentence",
            Tokens::Line => "line",
            Tokens::Paragraph => "paragraph",
            Tokens::Bytes => "bytes",
            Tokens::Chunks => "chunks",
            Tokens::User => "user",
        }
    }

    /// Whether documents are read as bytes, without normalization.
    pub fn are_bytes(self) -> bool {
        matches!(self, Tokens::Bytes | Tokens::Chunks)
    }
}
