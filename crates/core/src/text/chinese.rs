//! What are the words of a Chinese text?
//!
//! They are determined as in jieba (MIT license): the most probable path through its dictionary, and unknown words by
//! its hidden Markov model, both from the jieba-rs crate. Its dictionary of 350,000 words takes 2 MB in the package
//! and, once loaded, about 50 MB of memory.

use std::sync::{Arc, OnceLock};

use jieba_rs::Jieba;

use super::tables::{self, ALPHANUMERIC};

/// The library with the dictionary and the model, and its version.
pub const CHINESE_LIBRARY: &str = "jieba-rs 0.11.0";

/// Words of the library's dictionary with capital letters, except those that it also has in lower case.
const CAPITALIZED: &str = "AA制 AB型 AT&T A型 A座 A股 A轮 BB机 BP机 B型 B座 B股 B超 B轮 CALL机 CD机 CD盒 C座 C盘 C语言 \
    D座 D版 D盘 E化 E座 E盘 E通 F座 F盘 G盘 H盘 H股 IC卡 IP卡 IP地址 IP电话 I盘 K党 K歌之王 N年 O型 PC机 PH值 QQ号 Q版 \
    RSS订阅 SIM卡 T台 T型台 T恤 T恤衫 T盘 U盘 VISA卡 X光 X光线 X射线 Z盘 大S 小S 阿Q";
/// Their count in the dictionary, and that of one of them.
const COUNT: usize = 3;
const OTHER_COUNT: (&str, usize) = ("T恤", 4);

/// The words into which Chinese text is cut.
#[derive(Debug)]
pub struct Dictionary {
    jieba: Jieba,
}

impl Dictionary {
    /// Returns the dictionary of the library, with normalized words; made once per process, in about 0.2 s.
    pub fn standard() -> Arc<Dictionary> {
        static STANDARD: OnceLock<Arc<Dictionary>> = OnceLock::new();
        STANDARD
            .get_or_init(|| {
                let mut jieba = Jieba::new();
                for word in CAPITALIZED.split(' ') {
                    // The sum of the counts, which every probability depends on, does not change.
                    let is_other = word == OTHER_COUNT.0;
                    let count = if is_other { OTHER_COUNT.1 } else { COUNT };
                    jieba.add_word(word, Some(0), None);
                    jieba.add_word(&word.to_ascii_lowercase(), Some(count), None);
                }
                Arc::new(Dictionary { jieba })
            })
            .clone()
    }

    /// Adds normalized words with their frequencies among about 60 million; `None` is just enough for the word to be
    /// found where its parts are adjacent.
    pub fn with_words<'a>(words: impl IntoIterator<Item = (&'a str, Option<u32>)>) -> Dictionary {
        let mut jieba = Dictionary::standard().jieba.clone();
        for (word, count) in words {
            jieba.add_word(word, count.map(|count| count as usize), None);
        }
        Dictionary { jieba }
    }

    /// Calls `word` with the ranges of words where there is Chinese (and ASCII and `+#&._%-`, as in the dictionary),
    /// `other` with the ranges between, in order; [`MAX_STRETCH`] bounds the memory.
    pub(crate) fn cut<T>(
        &self,
        text: &str,
        state: &mut T,
        word: impl Fn(&mut T, usize, usize),
        other: impl Fn(&mut T, usize, usize),
    ) {
        let mut others_start = 0;
        let mut scalars = text.char_indices().peekable();
        while let Some((start, first)) = scalars.next() {
            let (mut has_chinese, mut num_scalars) = (is_chinese(first), 1);
            if !has_chinese && !is_of_word(first) {
                continue;
            }
            while let Some(&(_, c)) = scalars.peek() {
                let chinese = is_chinese(c);
                if !chinese && !is_of_word(c) || num_scalars == MAX_STRETCH {
                    break;
                }
                has_chinese |= chinese;
                num_scalars += 1;
                scalars.next();
            }
            if !has_chinese {
                continue;
            }
            let end = scalars.peek().map_or(text.len(), |&(end, _)| end);
            if others_start < start {
                other(state, others_start, start);
            }
            others_start = end;
            for token in self.jieba.cut(&text[start..end], true) {
                if token.word.chars().any(is_alphanumeric) {
                    word(state, start + token.byte_start, start + token.byte_end);
                }
            }
        }
        if others_start < text.len() {
            other(state, others_start, text.len());
        }
    }
}

/// Maximum number of scalars that are cut together. Sentences are a thousand times shorter.
const MAX_STRETCH: usize = 1 << 16;

fn is_alphanumeric(c: char) -> bool {
    tables::property(u32::from(c)) & ALPHANUMERIC != 0
}

/// Whether a character is a CJK unified ideograph, including those of the compatibility blocks.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{2A6DF}'
        | '\u{2A700}'..='\u{2EBEF}' | '\u{2F800}'..='\u{2FA1F}')
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '&' | '.' | '_' | '%' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Dictionary::standard().cut(
            text,
            &mut found,
            |found, start, end| found.push(text[start..end].to_owned()),
            |found, start, end| found.push(format!("<{}>", &text[start..end])),
        );
        found
    }

    #[test]
    fn stretches_with_chinese_characters_are_cut() {
        assert_eq!(
            parts("don't \u{6211}\u{7231}\u{5317}\u{4eac}. c++ -\u{5929}\u{5b89}\u{95e8}5%! 3.5"),
            [
                "<don't >",
                "\u{6211}",
                "\u{7231}",
                "\u{5317}\u{4eac}",
                "< c++ >",
                "\u{5929}\u{5b89}\u{95e8}",
                "5%",
                "<! 3.5>"
            ]
        );
        assert_eq!(parts(""), [""; 0]);
        assert_eq!(parts("\u{30ab}\u{30bf} -"), ["<\u{30ab}\u{30bf} ->"]);
    }

    #[test]
    fn long_stretches_are_cut_in_parts() {
        let text = "\u{6211}".repeat(2 * MAX_STRETCH + 5);
        let found = parts(&text);
        assert_eq!(found.concat(), text);
        let alone = parts(&text[..3 * MAX_STRETCH]);
        assert_eq!(found[..alone.len()], alone);
    }

    #[test]
    fn words_with_capitals_are_found_in_normalized_texts() {
        let standard = Jieba::new();
        for word in CAPITALIZED.split(' ') {
            let normalized = word.to_ascii_lowercase();
            assert!(
                standard.has_word(word) && !standard.has_word(&normalized),
                "{word}"
            );
            assert!(Dictionary::standard().jieba.has_word(&normalized), "{word}");
        }
        assert_eq!(CAPITALIZED.split(' ').count(), 61);
        assert_eq!(parts("买了u盘"), ["买", "了", "u盘"]);
    }

    #[test]
    fn words_of_the_user_are_found() {
        let text = "\u{4e91}\u{8ba1}\u{7b97}";
        let dictionary = Dictionary::with_words([(text, None)]);
        let mut found = Vec::new();
        let push = |found: &mut Vec<String>, start: usize, end: usize| {
            found.push(text[start..end].to_owned())
        };
        dictionary.cut(text, &mut found, push, push);
        assert_eq!(found, [text]);
    }
}
