//! How certain is it that a match is a copy of the item?

use super::scan::{ItemCounts, Matches};
use super::table::{ItemTable, NGRAM};

/// How much of a text a document contains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Fraction of the weight of its n-grams that is in the window.
    pub share: f64,
    /// Fraction of the weight of its words that is aligned.
    pub similarity: f64,
}

/// Returns the agreement of each match. With f other texts and documents that contain an n-gram, and m the least f in
/// the text, it weighs (m + 1) / (f + 1). A word in d of n texts and sampled documents weighs ln(1 + n / d), or 2 ln(1
/// + n) with a digit, times the least weight of its n-grams: what many texts share counts little.
pub fn judge(table: &ItemTable, counts: &ItemCounts, matches: &Matches) -> Vec<Agreement> {
    let (grams, words, _, num_sampled) = counts.taken();
    let num_all = (table.num_texts() as u64 + num_sampled) as f64;
    let of_word: Vec<f64> = (0..table.num_words())
        .map(|word| match table.numbers[word] != 0 {
            true => 2.0 * libm::log1p(num_all),
            false => {
                let held = u64::from(table.word_texts[word]) + u64::from(words[word]);
                libm::log1p(num_all / held as f64)
            }
        })
        .collect();
    let (mut present_at, mut aligned_at) = (0, 0);
    let mut of_gram = Vec::new();
    let mut weights = Vec::new();
    let is_set = |bits: &[u8], i: usize| bits[i / 8] >> (i % 8) & 1 != 0;
    matches
        .texts
        .iter()
        .map(|&text| {
            let text = text as usize;
            let own = table.own(text);
            let present = &matches.present[present_at..present_at + own.len().div_ceil(8)];
            present_at += present.len();
            weights.clear();
            weights.extend(own.iter().enumerate().map(|(i, &gram)| {
                let others = table.holders(gram).len() as u64 - 1 + u64::from(grams[gram as usize]);
                (others - u64::from(is_set(present, i))) as f64
            }));
            let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
            let (mut all, mut held) = (0.0, 0.0);
            for (i, weight) in weights.iter_mut().enumerate() {
                *weight = (least + 1.0) / (*weight + 1.0);
                all += *weight;
                held += if is_set(present, i) { *weight } else { 0.0 };
            }
            of_gram.clear();
            of_gram.extend(table.places(text).iter().map(|gram| {
                let number = own.partition_point(|other| other < gram);
                weights[number]
            }));
            let share = held / all;
            let words = table.words(text);
            let aligned = &matches.aligned[aligned_at..aligned_at + words.len().div_ceil(8)];
            aligned_at += aligned.len();
            let (mut all, mut held) = (0.0, 0.0);
            for (i, &word) in words.iter().enumerate() {
                let over = &of_gram[(i + 1).saturating_sub(NGRAM)..(i + 1).min(of_gram.len())];
                let rarity = over.iter().copied().fold(f64::INFINITY, f64::min);
                let weight = of_word[word as usize] * rarity;
                all += weight;
                held += if is_set(aligned, i) { weight } else { 0.0 };
            }
            Agreement {
                share,
                similarity: held / all,
            }
        })
        .collect()
}
