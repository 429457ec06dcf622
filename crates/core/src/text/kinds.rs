//! What may a token be?

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// As [`Tokens::Word`], and Katakana is parted after every character, as other scripts without spaces are anyway.
    Auto,
    /// As [`Tokens::Auto`], but neighboring characters of a script without spaces come in overlapping pairs.
    Script,
    /// Words of UAX #29 that hold a letter or a digit.
    Word,
    /// Every scalar of the normalized text.
    Char,
    /// Words of a dictionary and a model of unknown ones in Chinese; elsewhere as [`Tokens::Auto`].
    Chinese,
    /// Sentences of UAX #29, each normalized by itself.
    Sentence,
    /// Lines, each normalized by itself.
    Line,
    /// Lines between blank ones, together normalized.
    Paragraph,
    /// Every byte.
    Bytes,
    /// Stretches of bytes, cut where the content says or at a fixed size.
    Chunks,
    /// What the user cut: [`Document::Tokens`](super::Document::Tokens).
    User,
}

impl Tokens {
    /// Every kind, in the order in which they are told.
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

    /// The kind of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Tokens> {
        Tokens::ALL.into_iter().find(|tokens| tokens.name() == name)
    }

    /// Name as users write it.
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

    /// Whether documents are taken as bytes: nothing is normalized.
    pub fn are_bytes(self) -> bool {
        matches!(self, Tokens::Bytes | Tokens::Chunks)
    }
}
