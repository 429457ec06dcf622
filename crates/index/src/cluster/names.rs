//! Under which keys do the servers of a cluster keep an index, and which of them does a document need?
//!
//! A key has a *name* without the prefix of its partition. All documents whose hash or block begins with the same bits share a string of entries.
//! How many bits these are follows the expected number of documents: a string costs some 75 bytes in addition to its entries, and all of them are read at
//! once. The keys of fingerprints are a [`SearchPlan`] whose keys are no wider than that.

use std::ops::Range;

use likewise_core::error::Error as CoreError;
use likewise_core::hash::mix64;
use likewise_hamming::plan::{Key, SearchPlan};

use crate::cluster::bytes::{Pack, Unpack};
use crate::error::{Error, Result};
use crate::keys::words_of;
use crate::rules::{Method, Rules};

/// Bytes of a reference: a row, and the tag of the operation that added it.
pub const REFERENCE_BYTES: usize = 6;
/// Bytes of an entry of ids.
pub const ID_ENTRY: usize = 2 + REFERENCE_BYTES;
/// Bytes of an entry of classes and of bands.
pub const HASH_ENTRY: usize = 4 + REFERENCE_BYTES;
/// Bytes of an entry of members.
pub const MEMBER_ENTRY: usize = 1 + REFERENCE_BYTES;
/// Documents of one chunk of records, as bits.
const CHUNK_BITS: u32 = 6;
/// Documents that share a string, on average, at the expected size.
const SHARING: u64 = 8;
/// Names that a document may read.
const MAX_PROBES: usize = 4096;
/// Entries that a document may read: more is nearly a scan.
const MAX_CANDIDATES: f64 = 100_000.0;
/// Most tables of fingerprints.
const MAX_TABLES: u32 = 64;
const MAX_BLOCKS: u32 = 16;
const VERSION: u8 = 1;

/// What a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Entries of fingerprints: the fingerprint, a reference.
    Table = 1,
    /// Entries of ids: 2 bytes of the hash, a reference.
    Id,
    /// Entries of classes: 4 bytes of the hash, a reference.
    Class,
    /// Entries of a band at a level: 4 bytes of the key, a reference.
    Band,
    /// Entries of duplicates: the kept document's place in its chunk, a reference.
    Members,
    /// Records by reference.
    Records,
    /// Feature sets by reference.
    Sets,
}

/// A name, packed: kind, table or band, level, and 32 bits of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(u64);

impl Name {
    fn new(kind: Kind, table: u32, level: u32, value: u32) -> Self {
        Name(
            (kind as u64) << 56
                | u64::from(level) << 48
                | u64::from(table) << 32
                | u64::from(value),
        )
    }

    /// The duplicates of the kept documents of a chunk.
    pub fn members(leader: u32) -> Self {
        Name::new(Kind::Members, 0, 0, leader >> CHUNK_BITS)
    }

    pub fn records(row: u32) -> Self {
        Name::new(Kind::Records, 0, 0, row >> CHUNK_BITS)
    }

    pub fn sets(row: u32) -> Self {
        Name::new(Kind::Sets, 0, 0, row >> CHUNK_BITS)
    }

    pub fn partition(self, partitions: u32) -> u32 {
        (mix64(self.0) % u64::from(partitions)) as u32
    }

    pub fn append_to(self, out: &mut Vec<u8>) {
        let kind = (self.0 >> 56) as u8;
        let value = (self.0 as u32).to_le_bytes();
        let table = (self.0 >> 32) as u16;
        match kind {
            1 => {
                out.push(b't');
                out.push(table as u8);
            }
            2 => out.push(b'i'),
            3 => out.push(b'c'),
            4 => {
                out.push(b'0' + (self.0 >> 48) as u8);
                out.extend_from_slice(&table.to_le_bytes());
            }
            5 => out.push(b'g'),
            6 => out.push(b'r'),
            _ => out.push(b's'),
        }
        let num = 4 - (self.0 as u32).leading_zeros() as usize / 8;
        out.extend_from_slice(&value[..num]);
    }

    pub fn is_band(self) -> bool {
        self.0 >> 56 == Kind::Band as u64
    }

    /// The same behind 16 bits of its length.
    pub fn pack(self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0, 0]);
        self.append_to(out);
        let num = (out.len() - at - 2) as u16;
        out[at..at + 2].copy_from_slice(&num.to_le_bytes());
    }
}

/// The first rows of the chunks of some rows.
pub fn chunks_of(rows: &Range<u32>) -> impl Iterator<Item = u32> {
    let chunks = rows.start >> CHUNK_BITS..rows.end.div_ceil(1 << CHUNK_BITS);
    chunks.map(|chunk| chunk << CHUNK_BITS)
}

pub fn place_in_chunk(row: u32) -> u8 {
    (row & ((1 << CHUNK_BITS) - 1)) as u8
}

#[derive(Debug, Clone)]
struct Table {
    /// Runs of bits: the first, how many.
    runs: Vec<(u32, u32)>,
    /// Differences that are looked up.
    probes: Vec<u32>,
}

impl Table {
    fn new(key: &Key) -> Self {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for bit in (0..256).filter(|&bit| key.contains(bit)) {
            match runs.last_mut() {
                // A run stays inside a word.
                Some((first, num)) if *first + *num == bit && bit % 64 != 0 => *num += 1,
                _ => runs.push((bit, 1)),
            }
        }
        let width = key.width();
        let mut probes = vec![0_u32];
        let mut last = 0..1;
        for _ in 0..key.radius {
            for at in last.clone() {
                let above = 32 - u32::leading_zeros(probes[at]);
                let base = probes[at];
                probes.extend((above..width).map(|bit| base | 1 << bit));
            }
            last = last.end..probes.len();
        }
        Table { runs, probes }
    }

    fn value(&self, words: &[u64]) -> u32 {
        let (mut value, mut at) = (0, 0);
        for &(first, num) in &self.runs {
            let word = words[first as usize / 64] >> (first % 64);
            value |= (word & ((1 << num) - 1)) << at;
            at += num;
        }
        value as u32
    }
}

#[derive(Debug, Clone)]
pub struct Names {
    /// Bits of a hash that select a string of ids, classes or bands.
    hash_bits: u32,
    plan: Option<SearchPlan>,
    tables: Vec<Table>,
    /// Documents it was chosen for.
    expected: u64,
}

/// What reading by a plan costs, by its model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NamesCost {
    /// Tables of fingerprints, or bands.
    pub num_tables: u32,
    /// Names that a document reads in them.
    pub num_probes: u32,
    /// Entries that a document reads in them.
    pub candidates: f64,
    /// Bytes of all these tables for a document.
    pub bytes: f64,
}

impl Names {
    /// Names for an expected number of documents, if a plan reads few enough.
    pub fn for_expected(rules: &Rules, expected: u64) -> Result<Self> {
        let hash_bits = widest(expected, SHARING);
        let plan = match rules.method {
            Method::Simhash { bits, within } => Some(choose(bits, within, expected)?),
            Method::Minhash { .. } => None,
        };
        if plan.as_ref().is_some_and(|plan| !plan.is_complete()) {
            return Err(Error::Unreadable);
        }
        Ok(Names::new(hash_bits, plan, expected))
    }

    fn new(hash_bits: u32, plan: Option<SearchPlan>, expected: u64) -> Self {
        let keys = plan.iter().flat_map(|plan| plan.keys());
        Names {
            hash_bits,
            tables: keys.map(Table::new).collect(),
            plan,
            expected,
        }
    }

    pub fn pack(&self) -> Vec<u8> {
        let mut packed = vec![VERSION, self.hash_bits as u8];
        packed.raw(&self.expected.to_le_bytes());
        let keys = self.plan.iter().flat_map(|plan| plan.keys());
        for key in keys {
            key.mask
                .iter()
                .for_each(|word| packed.raw(&word.to_le_bytes()));
            packed.push(key.radius as u8);
        }
        packed
    }

    pub fn unpack(rules: &Rules, packed: &[u8]) -> Result<Self> {
        let mut unpack = Unpack(packed);
        if unpack.byte()? != VERSION {
            return Err(Error::Unreadable);
        }
        let hash_bits = u32::from(unpack.byte()?);
        let expected = unpack.u64()?;
        let mut keys = Vec::new();
        while !unpack.0.is_empty() {
            let mut mask = [0; 4];
            for word in &mut mask {
                *word = unpack.u64()?;
            }
            let radius = u32::from(unpack.byte()?);
            keys.push(Key { mask, radius });
        }
        let is_wide = keys.iter().any(|key| {
            let width = key.width();
            width > 32 || (key.radius >= width && key.radius > 0)
        });
        let num_probes: f64 = keys.iter().map(Key::num_probes).sum();
        let is_long = keys.len() > MAX_TABLES as usize || num_probes > MAX_PROBES as f64;
        if !(1..=32).contains(&hash_bits) || is_wide || is_long {
            return Err(Error::Unreadable);
        }
        let plan = match rules.method {
            Method::Simhash { bits, within } if !keys.is_empty() => {
                Some(SearchPlan::new(bits, within, keys)?)
            }
            Method::Minhash { .. } if keys.is_empty() => None,
            _ => return Err(Error::Unreadable),
        };
        Ok(Names::new(hash_bits, plan, expected))
    }

    /// What reading costs, by the model of uniform fingerprints.
    pub fn cost(&self, rules: &Rules) -> NamesCost {
        match (&self.plan, rules.method) {
            (Some(plan), _) => cost_of(plan.bits, plan.keys(), self.expected),
            (None, Method::Minhash { bands, .. }) => {
                let shared = self.expected as f64 / (1_u64 << self.hash_bits) as f64;
                NamesCost {
                    num_tables: bands,
                    num_probes: bands,
                    candidates: f64::from(bands) * shared,
                    bytes: f64::from(bands) * (HASH_ENTRY as f64 + STRING_BYTES / shared.max(1.0)),
                }
            }
            (None, Method::Simhash { .. }) => unreachable!("has a plan"),
        }
    }

    fn of_hash(&self, kind: Kind, table: u32, level: u32, hash: u64) -> Name {
        Name::new(kind, table, level, (hash >> (64 - self.hash_bits)) as u32)
    }

    /// The string of an id, and the bytes of its entry before the reference.
    pub fn id(&self, hash: u64) -> (Name, [u8; 2]) {
        (
            self.of_hash(Kind::Id, 0, 0, hash),
            (hash as u16).to_le_bytes(),
        )
    }

    /// The string of a class, and the bytes of its entry before the reference.
    pub fn class(&self, hash: u64) -> (Name, [u8; 4]) {
        // A hash of a class need not be even in its upper bits.
        let hash = mix64(hash);
        (
            self.of_hash(Kind::Class, 0, 0, hash),
            (hash as u32).to_le_bytes(),
        )
    }

    /// The string of a band at a level, and the bytes of its entry before the reference.
    pub fn band(&self, band: u32, level: u32, key: u64) -> (Name, [u8; 4]) {
        (
            self.of_hash(Kind::Band, band, level, key),
            (key as u32 & !1).to_le_bytes(),
        )
    }

    /// The bytes of the entry that marks a bucket: documents are at the next level too.
    pub fn mark(mut head: [u8; 4]) -> [u8; 4] {
        head[0] |= 1;
        head
    }

    /// The strings that contain a fingerprint.
    pub fn stored(&self, sketch: &[u8]) -> impl Iterator<Item = Name> {
        let words = words(sketch);
        (0..)
            .zip(&self.tables)
            .map(move |(table, of)| Name::new(Kind::Table, table, 0, of.value(&words)))
    }

    /// The strings that contain all fingerprints within the radius of one.
    pub fn asked(&self, sketch: &[u8], mut ask: impl FnMut(Name)) {
        let words = words(sketch);
        for (table, of) in (0..).zip(&self.tables) {
            let value = of.value(&words);
            for probe in &of.probes {
                ask(Name::new(Kind::Table, table, 0, value ^ probe));
            }
        }
    }
}

fn words(sketch: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, of) in words.iter_mut().zip(words_of(sketch)) {
        *word = of;
    }
    words
}

/// Bytes that a short string and its key take on a server in addition to its entries.
const STRING_BYTES: f64 = 75.0;
/// Nanoseconds for a name, a byte of entries, a table to write, measured at 20,000,000 documents; then memory.
const NAME_NS: f64 = 3000.0;
const BYTE_NS: f64 = 1.0;
const TABLE_NS: f64 = 5000.0;
const MEMORY_NS: f64 = 100.0;

/// Maximum bits of a name whose strings have at least this many entries.
fn widest(expected: u64, entries: u64) -> u32 {
    (expected / entries).max(1).ilog2().clamp(8, 32)
}

fn cost_of(bits: u32, keys: &[Key], expected: u64) -> NamesCost {
    let entry = f64::from(8 * bits.div_ceil(64)) + REFERENCE_BYTES as f64;
    let mut cost = NamesCost {
        num_tables: keys.len() as u32,
        num_probes: 0,
        candidates: 0.0,
        bytes: 0.0,
    };
    for key in keys {
        let shared = expected as f64 / (1_u64 << key.width()) as f64;
        let probes = key.num_probes();
        cost.num_probes += probes as u32;
        cost.candidates += probes * shared;
        cost.bytes += entry + STRING_BYTES / shared.max(1.0);
    }
    cost
}

fn price(bits: u32, keys: &[Key], expected: u64) -> f64 {
    let cost = cost_of(bits, keys, expected);
    let entry = f64::from(8 * bits.div_ceil(64)) + REFERENCE_BYTES as f64;
    f64::from(cost.num_probes) * NAME_NS
        + cost.candidates * entry * BYTE_NS
        + f64::from(cost.num_tables) * TABLE_NS
        + cost.bytes * MEMORY_NS
}

/// The cheapest plan of [`keys_of`].
fn choose(bits: u32, within: u32, expected: u64) -> Result<SearchPlan> {
    let width = widest(expected, SHARING / 2);
    let mut best: Option<(f64, SearchPlan)> = None;
    for num_groups in 1..=(within + 1).min(bits / 4).min(MAX_TABLES) {
        for chosen in 1..MAX_BLOCKS {
            let Some(keys) = keys_of(bits, num_groups, chosen, within, width) else {
                continue;
            };
            let probes: f64 = keys.iter().map(Key::num_probes).sum();
            let is_empty = keys.iter().any(|key| key.radius >= key.width());
            let candidates = cost_of(bits, &keys, expected).candidates;
            if is_empty || probes > MAX_PROBES as f64 || candidates > MAX_CANDIDATES {
                continue;
            }
            let price = price(bits, &keys, expected);
            if best.as_ref().is_none_or(|(least, _)| price < *least)
                && let Ok(plan) = SearchPlan::new(bits, within, keys)
            {
                best = Some((price, plan));
            }
        }
    }
    match best {
        Some((_, plan)) => Ok(plan),
        None => Err(Error::from(CoreError::invalid(
            "within",
            format!(
                "no plan of keys for {within} of {bits} bits reads few enough entries a document among {expected}; use a smaller distance, expect fewer documents, or use MinHash"
            ),
        ))),
    }
}

/// The keys of groups of blocks, each cut to a width. A pair has at most as many errors in one of the groups as its
/// radius, since the radii and 1 each sum to more than the distance; a group of more blocks has `chosen` without an
/// error among `chosen` + radius. Generalized pigeonhole principle, with choices as of Manku, Jain, Das Sarma (WWW
/// 2007), section 3.
fn keys_of(bits: u32, num_groups: u32, chosen: u32, within: u32, width: u32) -> Option<Vec<Key>> {
    let sum = (within + 1).checked_sub(num_groups)?;
    let radii: Vec<u32> = (0..num_groups)
        .map(|group| sum / num_groups + u32::from(group < sum % num_groups))
        .collect();
    let of_bits = |bits: &mut dyn Iterator<Item = u32>, radius| {
        Key::of_bits(bits.take(width as usize), radius)
    };
    if chosen == 1 {
        let starts = |group| group * bits / num_groups;
        let keys = (0..)
            .zip(radii)
            .map(|(group, radius)| of_bits(&mut (starts(group)..starts(group + 1)), radius));
        return Some(keys.collect());
    }
    let num_blocks = num_groups * chosen + sum;
    if num_blocks > bits || radii[0] + chosen > MAX_BLOCKS {
        return None;
    }
    let (mut keys, mut first) = (Vec::new(), 0);
    for radius in radii {
        let choices =
            (0..1_u32 << (radius + chosen)).filter(|choice| choice.count_ones() == chosen);
        for choice in choices {
            let blocks = (0..radius + chosen).filter(|block| choice >> block & 1 == 1);
            let starts = |block| (first + block) * bits / num_blocks;
            keys.push(of_bits(
                &mut blocks.flat_map(|block| starts(block)..starts(block + 1)),
                0,
            ));
            if keys.len() > MAX_TABLES as usize {
                return None;
            }
        }
        first += radius + chosen;
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use likewise_core::verify::{Measure, NameRules, Required};
    use likewise_disk::store::Keeps;

    use super::*;
    use crate::rules::Matching;

    fn rules(bits: u32, within: u32) -> Rules {
        Rules {
            method: Method::Simhash { bits, within },
            matching: Matching::Verified {
                measure: Measure::Jaccard,
                required: Required {
                    threshold: 0.8,
                    short_margin: 0.0,
                    names: NameRules::default(),
                    identifiers: false,
                },
            },
            seed: 0,
            keeps: Keeps::Sketch,
        }
    }

    fn sketch(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn every_fingerprint_within_the_radius_is_read() {
        for (bits, within) in [
            (64, 0),
            (64, 1),
            (64, 3),
            (64, 7),
            (64, 10),
            (32, 7),
            (96, 5),
            (128, 6),
            (256, 12),
        ] {
            for expected in [1, 10_000, 20_000_000, 1_000_000_000, 10_000_000_000] {
                let Ok(names) = Names::for_expected(&rules(bits, within), expected) else {
                    let is_dense = bits == 32 || expected > 20_000_000;
                    assert!(within > 5 && is_dense, "{bits} {within} {expected}");
                    continue;
                };
                let again = Names::unpack(&rules(bits, within), &names.pack()).unwrap();
                let num_words = bits.div_ceil(64) as usize;
                for seed in 0..20_u64 {
                    let last = u64::MAX >> (64 * num_words as u32 - bits);
                    let mut words: Vec<u64> =
                        (0..num_words as u64).map(|i| mix64(seed * 8 + i)).collect();
                    words[num_words - 1] &= last;
                    let here = sketch(&words);
                    let mut flipped = HashSet::new();
                    for place in 0.. {
                        let bit = mix64(seed * 1000 + place) as u32 % bits;
                        if flipped.len() as u32 == within {
                            break;
                        }
                        if flipped.insert(bit) {
                            words[bit as usize / 64] ^= 1 << (bit % 64);
                        }
                    }
                    let there: HashSet<Name> = names.stored(&sketch(&words)).collect();
                    let mut asked = HashSet::new();
                    again.asked(&here, |name| {
                        asked.insert(name);
                    });
                    assert!(!asked.is_disjoint(&there), "{bits} {within} {expected}");
                    assert!(asked.len() <= MAX_PROBES);
                }
            }
        }
    }

    #[test]
    fn plans_follow_the_expected_number() {
        let cost = |expected| {
            let rules = rules(64, 3);
            Names::for_expected(&rules, expected).unwrap().cost(&rules)
        };
        let (few, many, most) = (cost(1_000_000), cost(20_000_000), cost(1_000_000_000));
        // Four blocks of 16 bits read 61,000 entries a document at 1e9.
        assert_eq!((few.num_tables, few.num_probes), (4, 4));
        // Seven blocks of 9 bits in groups of 3, 2 and 2, with one error allowed in the first.
        assert_eq!((many.num_tables, many.num_probes), (5, 5));
        assert!((few.candidates - 61.0).abs() < 1.0, "{few:?}");
        assert!(many.candidates < 400.0 && many.bytes < 80.0, "{many:?}");
        assert!(most.candidates < 1000.0, "{most:?}");
    }

    #[test]
    fn all_groups_of_blocks_find_every_pair() {
        let mut num_plans = 0;
        for (bits, within) in [(32, 2), (64, 3), (64, 4), (96, 5)] {
            for num_groups in 1..=within + 1 {
                for chosen in 1..5 {
                    let Some(keys) = keys_of(bits, num_groups, chosen, within, 20) else {
                        continue;
                    };
                    // Proves that no pattern of that many errors escapes.
                    let plan = SearchPlan::new(bits, within, keys).unwrap();
                    assert!(plan.is_complete(), "{bits} {within} {num_groups} {chosen}");
                    num_plans += 1;
                }
            }
        }
        assert!(num_plans > 40, "{num_plans}");
    }

    #[test]
    fn a_radius_that_no_plan_serves_is_rejected_by_name() {
        let error = Names::for_expected(&rules(64, 40), 1_000_000).unwrap_err();
        assert!(error.to_string().contains("smaller distance"), "{error}");
    }

    #[test]
    fn names_of_one_kind_or_of_two_never_meet() {
        let names = Names::for_expected(&rules(64, 3), 1_000_000).unwrap();
        let mut seen = HashSet::new();
        let mut all = HashSet::new();
        for hash in (0..2_000).map(mix64) {
            all.insert(names.id(hash).0);
            all.insert(names.class(hash).0);
            all.extend([0, 1, 2].map(|level| names.band(hash as u32 % 300, level, hash).0));
            all.extend([Name::members, Name::records, Name::sets].map(|name| name(hash as u32)));
            all.extend(names.stored(&hash.to_le_bytes()));
        }
        for name in &all {
            let mut bytes = Vec::new();
            name.append_to(&mut bytes);
            assert!(seen.insert(bytes));
        }
    }
}
