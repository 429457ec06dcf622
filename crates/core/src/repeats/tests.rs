//! Compared with brute force: every window with every earlier one.

use super::*;
use crate::hash::mix64;
use crate::isa::Isa;
use crate::text::{PartCutter, Parts};
use std::collections::BTreeMap;

const NUM_WORDS: usize = 5;

/// Texts of a few words, with repeated stretches.
fn texts(seed: u64) -> Vec<String> {
    let mut state = seed;
    let mut next = |below: u64| {
        state = mix64(state.wrapping_add(0x9E37_79B9));
        state % below
    };
    let stock: Vec<String> = (0..6)
        .map(|_| {
            (0..12)
                .map(|_| format!("w{} ", next(9)))
                .collect::<String>()
        })
        .collect();
    (0..30)
        .map(|_| {
            (0..next(5))
                .map(|_| match next(2) {
                    0 => stock[next(6) as usize].clone(),
                    _ => format!("x{} y{} ", next(40), next(40)),
                })
                .collect()
        })
        .collect()
}

/// Returns the removed stretches of windows, and where documents begin.
fn plain_stretches(texts: &[String]) -> (Stretches, Vec<i64>) {
    let mut first: BTreeMap<Vec<&str>, (i64, usize)> = BTreeMap::new();
    let (mut found, mut doc_starts) = (Stretches::default(), vec![0]);
    for (row, text) in texts.iter().enumerate() {
        let words: Vec<&str> = text.split_whitespace().collect();
        let start = doc_starts[row];
        for (i, window) in words.windows(NUM_WORDS).enumerate() {
            let place = start + i as i64;
            let &mut (other, other_row) = first.entry(window.to_vec()).or_insert((place, row));
            if other_row < row || other + NUM_WORDS as i64 <= place {
                let goes_on = found.places.len().checked_sub(1).filter(|&last| {
                    let windows = found.num_windows[last];
                    found.places[last] + windows == place && found.firsts[last] + windows == other
                });
                match goes_on {
                    Some(last) => found.num_windows[last] += 1,
                    None => {
                        found.places.push(place);
                        found.firsts.push(other);
                        found.num_windows.push(1);
                    }
                }
            }
        }
        doc_starts.push(start + words.len() as i64);
    }
    (found, doc_starts)
}

/// For each block of a document's words, as long as a window, returns all stretches that begin in it or, if these are
/// more than 2 (half of 5), the first and the last.
fn plain_few(all: &Stretches, doc_starts: &[i64]) -> Stretches {
    let mut blocks: BTreeMap<(usize, i64), Vec<usize>> = BTreeMap::new();
    for (i, &place) in all.places.iter().enumerate() {
        let row = doc_starts.iter().filter(|&&at| at <= place).count() - 1;
        let block = (place - doc_starts[row]) / NUM_WORDS as i64;
        blocks.entry((row, block)).or_default().push(i);
    }
    let mut found = Stretches::default();
    for block in blocks.into_values() {
        let few = match block.len() {
            0..=2 => block,
            _ => vec![block[0], block[block.len() - 1]],
        };
        for i in few {
            found.places.push(all.places[i]);
            found.firsts.push(all.firsts[i]);
            found.num_windows.push(all.num_windows[i]);
        }
    }
    found
}

fn words_of(found: &Stretches) -> Vec<i64> {
    let stretches = found.places.iter().zip(&found.num_windows);
    let words = stretches.flat_map(|(&at, &windows)| at..at + windows + NUM_WORDS as i64 - 1);
    let mut words: Vec<i64> = words.collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[test]
fn stretches_are_those_of_every_window_with_every_other() {
    let (mut num_stretches, mut num_left_out) = (0, 0);
    for seed in 0..20 {
        let mut texts = texts(seed);
        // Texts that repeat themselves, among others and in a short one.
        for (number, count) in [(3, 30), (4, 7), (17, 4), (18, 41)] {
            texts[number] += &"ding ".repeat(count);
            texts[number] += &"ding dong w1 ".repeat(count / 3);
        }
        let (all, doc_starts) = plain_stretches(&texts);
        let expected = plain_few(&all, &doc_starts);
        assert_eq!(words_of(&expected), words_of(&all));
        num_stretches += expected.places.len();
        num_left_out += all.places.len() - expected.places.len();
        let mut reader = WindowReader::new(Isa::best(), NUM_WORDS);
        let seen = SeenTwice::new(10);
        let counts: Vec<u32> = texts.iter().map(|text| reader.count(text, &seen)).collect();
        let mut pairs = Vec::new();
        for (row, text) in texts.iter().enumerate() {
            let first = doc_starts[row] as u64;
            let count = reader.put_aside(text, &seen, first, &mut pairs);
            assert_eq!(
                (count, i64::from(count)),
                (counts[row], doc_starts[row + 1] - doc_starts[row])
            );
        }
        let mut later = Vec::new();
        pairs.reverse();
        // The table grows.
        let mut firsts = FirstPlaces::new(0);
        firsts.clear(seed as usize);
        pairs.chunks(50).for_each(|some| firsts.note(some));
        firsts.for_each_later(&pairs, |place, first| later.push([place, first]));
        for step in [7, 64, 10_000] {
            let mut found = FewStretches::new(NUM_WORDS as u64, &doc_starts);
            let end = doc_starts[texts.len()] as u64;
            for start in (0..end).step_by(step) {
                let range = start..start + step as u64;
                let part: Vec<Pair> = later
                    .iter()
                    .copied()
                    .filter(|p| range.contains(&p[0]))
                    .collect();
                let mut scratch = vec![3; step];
                let words = NUM_WORDS as u64;
                found.append(&repeated_stretches(
                    &part,
                    start,
                    &mut scratch,
                    &doc_starts,
                    words,
                ));
            }
            assert_eq!(found.finish(), expected, "{seed} {step}");
        }
    }
    assert!(num_stretches > 200);
    assert!(num_left_out > 200);
}

#[test]
fn what_is_met_twice_is_known_for_any_hash() {
    let seen = SeenTwice::new(1000);
    let hashes: Vec<u64> = (0..2000).map(mix64).collect();
    for hash in &hashes {
        seen.meet(*hash);
    }
    for hash in &hashes[..1000] {
        seen.meet(*hash);
    }
    assert!(hashes[..1000].iter().all(|&hash| seen.is_twice(hash)));
    let by_chance = hashes[1000..].iter().filter(|&&hash| seen.is_twice(hash));
    assert!(by_chance.count() < 150);
}

#[test]
fn a_word_that_fills_a_text_repeats_itself() {
    // 4 windows of 5 words have the same least hash; 9 windows of "ding" are more than it can be the least of.
    for (num_dings, is_put_aside) in [(7, false), (9, true)] {
        let seen = SeenTwice::new(10);
        let mut reader = WindowReader::new(Isa::best(), NUM_WORDS);
        let text = "ding ".repeat(num_dings);
        reader.count(&text, &seen);
        let mut pairs = Vec::new();
        reader.put_aside(&text, &seen, 0, &mut pairs);
        assert_eq!(!pairs.is_empty(), is_put_aside, "{num_dings}");
    }
}

#[test]
fn equal_hashes_are_told_from_near_ones() {
    // Hashes that fall into one slot, one of them twice.
    let pairs = [[1, 9], [2, 8], [1, 4], [3, 7], [0, 6], [0, 5]];
    for (num_expected, skip_bits) in [(0, 0), (6, 0), (6, 62)] {
        let mut firsts = FirstPlaces::new(skip_bits);
        let mut found = Vec::new();
        // Nothing that was recorded before remains.
        for pairs in [&[[1, 0], [3, 1]], &pairs[..]] {
            firsts.clear(num_expected);
            firsts.note(pairs);
        }
        firsts.for_each_later(&pairs, |place, first| found.push((place, first)));
        assert_eq!(found, [(9, 4), (6, 5)]);
        firsts.clear(0);
        firsts.for_each_later(&[], |_, _| unreachable!());
    }
}

#[test]
fn repeats_are_measured_word_by_word() {
    let text = "(One two), three!  four five.\n\n";
    let other = "so ONE two three four ? six";
    let mut cutter = PartCutter::new(Isa::best());
    let [mut a, mut b] = [Parts::default(), Parts::default()];
    cutter.place_words(text, &mut a);
    cutter.place_words(other, &mut b);
    let placed = |text, parts: &Parts| -> (Vec<u32>, Vec<u32>) {
        let _: &str = text;
        (parts.starts.clone(), parts.ends.clone())
    };
    let ((starts, ends), (other_starts, other_ends)) = (placed(text, &a), placed(other, &b));
    let words = PlacedWords {
        text,
        starts: &starts,
        ends: &ends,
    };
    let others = PlacedWords {
        text: other,
        starts: &other_starts,
        ends: &other_ends,
    };
    let mut of = |begin, other_begin, num_words, is_followed| {
        let stretch = WordStretch {
            begin,
            other_begin,
            num_words,
            is_followed,
            num_going: 0,
        };
        words.repeat(stretch, &others, &mut cutter)
    };
    let cut = |repeat: Option<Repeat>| {
        let r = repeat?;
        Some((
            &text[r.start as usize..r.end as usize],
            &other[r.kept_start as usize..r.kept_end as usize],
        ))
    };
    assert_eq!(cut(of(0, 1, 2, false)), Some(("One two), ", "ONE two")));
    assert_eq!(
        cut(of(0, 1, 3, false)),
        Some(("One two), three!  ", "ONE two three"))
    );
    assert_eq!(cut(of(0, 1, 1, false)), Some(("One ", "ONE")));
    assert_eq!(cut(of(1, 2, 1, true)), Some(("two), ", "two")));
    assert_eq!(cut(of(1, 2, 1, false)), Some(("two), ", "two")));
    assert_eq!(cut(of(3, 4, 1, false)), Some(("four ", "four")));
    // The fifth word is different, and there is no sixth.
    assert_eq!(of(0, 1, 5, false), None);
    assert_eq!(of(3, 4, 3, false), None);
    assert_eq!(of(0, 1, 0, false), None);
    let last = WordStretch {
        begin: 4,
        other_begin: 4,
        num_words: 1,
        is_followed: false,
        num_going: 1,
    };
    let same = words.repeat(last, &words, &mut PartCutter::new(Isa::Plain));
    assert_eq!(
        same.map(|r| &text[r.start as usize..r.end as usize]),
        Some("five.\n\n")
    );
}

/// Returns a text without some of its words.
fn without(text: &str, begin: usize, num_words: usize) -> String {
    let mut cutter = PartCutter::new(Isa::Plain);
    let mut parts = Parts::default();
    cutter.place_words(text, &mut parts);
    let words = PlacedWords {
        text,
        starts: &parts.starts,
        ends: &parts.ends,
    };
    let stretch = WordStretch {
        begin,
        other_begin: begin,
        num_words,
        is_followed: false,
        num_going: num_words,
    };
    let found = words.repeat(stretch, &words, &mut cutter).unwrap();
    [&text[..found.start as usize], &text[found.end as usize..]].concat()
}

#[test]
fn marks_go_with_the_words_that_they_belong_to() {
    for (text, begin, num_words, left) in [
        ("很。「下」", 0, 1, "「下」"),
        ("他：「好。」她", 1, 1, "他：她"),
        ("他：「好。下」她", 1, 1, "他：「下」她"),
        ("((one) two (three) four", 0, 1, "(two (three) four"),
        ("((one) two (three)) four", 0, 3, "four"),
        ("(one (two) three", 0, 3, "("),
        ("„Ja.“ Dann", 0, 1, "Dann"),
        ("Ja.\u{2028}\u{3000}\u{a0}— nein", 0, 1, "— nein"),
    ] {
        assert_eq!(without(text, begin, num_words), left, "{text}");
    }
}

#[test]
fn many_marks_take_linear_time() {
    const NUM_MARKS: usize = 1 << 20;
    let text = |mark: &str| mark.repeat(NUM_MARKS);
    let quotes = format!("one{} two", text("“"));
    assert_eq!(without(&quotes, 0, 1), "two");
    let open = format!(" {}one{}two", text("("), text(" ("));
    assert_eq!(without(&open, 0, 1).len(), open.len() - "one ".len());
    let closed = format!("zero {}one{} two", text("["), text("]"));
    assert_eq!(without(&closed, 1, 1), "zero two");
}
