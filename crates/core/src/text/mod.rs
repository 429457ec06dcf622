//! What are the tokens of a text?
//!
//! A text is normalised (NFKC case folding, white space), then cut. All tables are of one Unicode version. Everything is
//! linear in the text, whatever it holds.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod compose;
mod kernel;
mod normalize;
mod simhash_package;
mod spans;
mod tables;
#[cfg(test)]
mod tests;
mod utf8;
mod words;

use crate::isa::Isa;
pub(crate) use kernel::BLOCK;
pub(crate) use normalize::Spaces;
pub(crate) use simhash_package::simhash_package_tokens;
pub(crate) use spans::Spans;

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
    // SAFETY: the processor has what `best` names.
    unsafe { normalize::normalize(text, Spaces::Collapse, Isa::best(), out) };
}

/// The tokens of a text as strings, in order: for showing and comparing, where speed does not matter.
pub fn tokens(text: &str, tokens: Tokens) -> Vec<String> {
    let mut bytes = Vec::new();
    normalize(text, &mut bytes);
    let mut found = Vec::new();
    if tokens == Tokens::Char {
        let text = String::from_utf8_lossy(&bytes);
        return text.chars().map(String::from).collect();
    }
    let len = pad(&mut bytes);
    let mut take = |starts: &[u32], ends: &[u32]| {
        let words = starts
            .iter()
            .zip(ends)
            .map(|(&start, &end)| &bytes[start as usize..end as usize]);
        found.extend(words.map(|word| String::from_utf8_lossy(word).into_owned()));
    };
    // SAFETY: portable.
    unsafe {
        words::cut(
            &bytes,
            len,
            tokens == Tokens::Auto,
            Isa::Plain,
            &mut Spans::new(),
            &mut take,
        )
    };
    found
}

/// What takes batches of words: the text that the starts and the ends are places in, with a block of zeros behind it.
pub(crate) type TakeWords<'a> = &'a mut dyn FnMut(&[u8], &[u32], &[u32]);

/// Cuts a text into scratch space: normalises it into `scratch` as far as words can tell, and hands the byte ranges of its
/// words to `take`, in order.
///
/// # Safety
/// The processor has `isa`.
pub(crate) unsafe fn cut_words(
    text: &str,
    part_katakana: bool,
    isa: Isa,
    scratch: &mut Vec<u8>,
    spans: &mut Spans,
    take: TakeWords<'_>,
) {
    // SAFETY: the caller's duty.
    unsafe { normalize::normalize(text, Spaces::Words, isa, scratch) };
    let len = pad(scratch);
    // SAFETY: the caller's duty.
    unsafe {
        words::cut(
            scratch,
            len,
            part_katakana,
            isa,
            spans,
            &mut |starts, ends| take(scratch, starts, ends),
        );
    }
}

/// Puts a block of zeros behind a text, for kernels that read whole blocks; returns the length of the text.
pub(crate) fn pad(text: &mut Vec<u8>) -> usize {
    let len = text.len();
    text.resize(len + BLOCK, 0);
    len
}

/// [`normalize`] by a given instruction set.
///
/// # Safety
/// The processor has `isa`.
pub(crate) unsafe fn normalize_into(text: &str, isa: Isa, out: &mut Vec<u8>) {
    // SAFETY: the caller's duty.
    unsafe { normalize::normalize(text, Spaces::Collapse, isa, out) };
}
