//! Which tokens are stop words?

use super::distinct::Distinct;
use super::feature_hash::FeatureHash;

#[derive(Debug)]
pub(super) struct StopFilter {
    hashes: Distinct,
}

impl StopFilter {
    /// Creates the filter of normalized words, for a token hash and its seed.
    pub(super) fn new(words: &[String], hash: FeatureHash, seed: u64) -> Self {
        let hashes = words.iter().map(|word| hash.of(word.as_bytes(), seed));
        let hashes: Vec<u64> = hashes.collect();
        let mut found = Distinct::default();
        found.collect(&hashes);
        StopFilter { hashes: found }
    }

    /// Removes the tokens that are stop words, unless all are.
    pub(super) fn apply(&self, tokens: &mut Vec<u64>) {
        let is_stop = |token: &u64| self.hashes.place(*token).is_some();
        if !tokens.iter().all(is_stop) {
            tokens.retain(|token| !is_stop(token));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_go_unless_nothing_else_is_there() {
        let filter = StopFilter::new(&["the".into(), "of".into()], FeatureHash::Md5, 5);
        let hash = |word: &str| FeatureHash::Md5.of(word.as_bytes(), 5);
        let mut tokens = vec![hash("the"), hash("cat"), hash("of"), hash("the")];
        filter.apply(&mut tokens);
        assert_eq!(tokens, [hash("cat")]);
        let mut only = vec![hash("of"), hash("the")];
        filter.apply(&mut only);
        assert_eq!(only, [hash("of"), hash("the")]);
    }
}
