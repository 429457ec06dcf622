//! Joins with little memory must list the same pairs as brute force, each once.

use likewise_core::parallel::Run;
use std::fs::File;
use std::sync::atomic::AtomicBool;

use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_hamming::join::JoinOptions;

use super::*;

static STOP: AtomicBool = AtomicBool::new(false);

/// Clusters of codes with up to seven bits changed; if skewed, only 16 bits of each word vary before that.
fn codes(len: u64, num_words: u64, skewed: bool) -> Vec<u64> {
    let mut words = Vec::new();
    for row in 0..len {
        let start = words.len();
        for word in 0..num_words {
            let code = mix64((row % 97) * 8 + word);
            words.push(if skewed {
                code & 0xffff_0000 | 0x77
            } else {
                code
            });
        }
        for flip in 0..mix64(row + 500) % 8 {
            let bit = mix64(row * 9 + flip + 1000) % (64 * num_words);
            words[start + (bit / 64) as usize] ^= 1 << (bit % 64);
        }
    }
    words
}

fn flat(folder: &Path, words: &[u64], num_words: usize, empty_rows: &[u32]) -> FlatFingerprints {
    let path = folder.join(format!("{}.flat", mix64(words.len() as u64)));
    let mut bytes = b"head".to_vec();
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    std::fs::write(&path, bytes).unwrap();
    let file = File::open(&path).unwrap();
    let len = (words.len() / num_words) as u64;
    FlatFingerprints::new(file, 4, len, 64 * num_words as u32, empty_rows.to_vec()).unwrap()
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("likewise-join-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

type Pairs = Vec<(u32, u32, u16)>;

fn expected(
    left: &[u64],
    right: Option<&[u64]>,
    num_words: usize,
    empty: [&[u32]; 2],
    within: u32,
) -> Pairs {
    let mut pairs = Vec::new();
    let is_self = right.is_none();
    for (a, code) in left.chunks(num_words).enumerate() {
        for (b, other) in right.unwrap_or(left).chunks(num_words).enumerate() {
            let both = [
                empty[0].contains(&(a as u32)),
                empty[1].contains(&(b as u32)),
            ];
            let distance: u32 = code
                .iter()
                .zip(other)
                .map(|(a, b)| (a ^ b).count_ones())
                .sum();
            let distance = match both {
                [true, true] => 0,
                [false, false] => distance,
                _ => u32::MAX,
            };
            if distance <= within && !(is_self && a >= b) {
                pairs.push((a as u32, b as u32, distance as u16));
            }
        }
    }
    pairs
}

#[test]
fn little_memory_lists_what_brute_force_lists() {
    let place = folder("pairs");
    let spilled = place.join("spilled");
    std::fs::create_dir_all(&spilled).unwrap();
    for (num_words, within, skewed) in [
        (1, 3, false),
        (1, 6, false),
        (1, 3, true),
        (2, 9, false),
        (1, 30, false),
    ] {
        let words = codes(900, num_words as u64, skewed);
        let others = codes(400, num_words as u64, skewed);
        let empty: [&[u32]; 2] = [&[5, 17, 899], &[0, 399]];
        let left = flat(&place, &words, num_words, empty[0]);
        let right = flat(&place, &others, num_words, empty[1]);
        for memory_bytes in [2_000, 12_000, 1 << 20] {
            for right in [None, Some(&right)] {
                let join = LargeJoin {
                    left: &left,
                    right,
                    bits: 64 * num_words as u32,
                    memory_bytes,
                    folder: &spilled,
                };
                assert_eq!(join.fits(), memory_bytes == 1 << 20);
                let options = JoinOptions {
                    within,
                    isa: Isa::best(),
                    run: Run {
                        threads: 2,
                        cancel: &STOP,
                    },
                };
                // So few rows may be compared pair by pair; the plan for many rows partitions them.
                let plan = join.plan(10_000_000, &options).unwrap();
                assert!(right.is_some() || plan.keys().is_empty() == (within == 30));
                let other = right.map(|_| &others[..]);
                let empty = [empty[0], if right.is_some() { empty[1] } else { empty[0] }];
                let expected = expected(&words, other, num_words, empty, within);
                for plan in [None, Some(&plan)] {
                    let mut pairs = Vec::new();
                    let mut take = |batch: PairBatch| {
                        let pair = |i| (batch.left[i], batch.right[i], batch.distance[i]);
                        pairs.extend((0..batch.len()).map(pair));
                        true
                    };
                    match plan {
                        None => join.run(&options, &mut take).unwrap(),
                        Some(plan) => join.run_by(plan, &options, &mut take).unwrap(),
                    }
                    pairs.sort_unstable();
                    assert!(
                        pairs == expected,
                        "{num_words} {within} {memory_bytes} {plan:?}: {} for {}",
                        pairs.len(),
                        expected.len()
                    );
                }
                assert!(std::fs::read_dir(&spilled).unwrap().next().is_none());
            }
        }
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn short_files_and_wrong_rows_are_refused() {
    let place = folder("refused");
    let path = place.join("short");
    std::fs::write(&path, [0; 20]).unwrap();
    let open = |len, empty: &[u32]| {
        FlatFingerprints::new(File::open(&path).unwrap(), 4, len, 64, empty.to_vec())
    };
    assert!(open(2, &[1]).is_ok());
    assert!(matches!(open(3, &[]), Err(Error::Changed { .. })));
    assert!(matches!(open(2, &[2]), Err(Error::InvalidParameter { .. })));
    assert!(matches!(
        open(2, &[1, 0]),
        Err(Error::InvalidParameter { .. })
    ));
    std::fs::remove_dir_all(&place).unwrap();
}
