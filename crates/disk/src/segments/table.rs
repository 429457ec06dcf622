//! Which rows have a key with this hash?
//!
//! An entry is a 64-bit hash, without its low `row_bits`, and a row. Entries are sorted. With m entries, the 128-bit
//! product of hash and m gives the position of an entry: its upper half is the *prefix*, 0 to m - 1, with one entry per
//! prefix on average; the first `remainder_bits` of its lower half are stored with the row to distinguish entries with
//! the same prefix. A unary directory (a 0 for each entry and a 1 after each prefix), with the first entry of every 64
//! prefixes, takes 2.5 bits per entry. A lookup takes three cache misses, which overlap in batches.
//!
//! So an id costs 4.6 bytes at 1e7 documents and a band 4; the store confirms each result. The product gives one entry
//! per prefix for any m, whereas prefixes of whole bits would leave up to half of a directory empty. Groups are stored
//! with all their bits, since a row number has only 32.

use likewise_core::prefetch::prefetch_read;
use likewise_hamming::index::Words;

use super::layout::TableShape;

/// Prefixes per stored first entry.
const GROUP: u64 = 64;
/// Keys that are looked up together.
const LANES: usize = 32;

/// A packed table, as it is written.
#[derive(Debug, Default)]
pub(super) struct PackedTable {
    pub(super) shape: TableShape,
    pub(super) starts: Vec<u64>,
    pub(super) unary: Vec<u64>,
    pub(super) entries: Vec<u64>,
}

/// Returns the number of bits for a row below `num_rows`.
pub(super) fn row_bits(num_rows: u32) -> u32 {
    (u64::from(num_rows).max(2) - 1).ilog2() + 1
}

pub(super) fn entry(hash: u64, row: u32, row_bits: u32) -> u64 {
    hash >> row_bits << row_bits | u64::from(row)
}

/// Returns a hash of a row number whose upper 32 bits are unique to that row.
pub(super) fn row_hash(row: u32) -> u64 {
    // Odd factors and XORs with shifted copies: each step is invertible.
    let mut x = row;
    x = (x ^ x >> 16).wrapping_mul(0x7FEB_352D);
    x = (x ^ x >> 15).wrapping_mul(0x846C_A68B);
    u64::from(x ^ x >> 16) << 32
}

/// Returns the remainder bits that distinguish all of `num_entries` hashes of 32 bits.
pub(super) fn exact_remainder_bits(num_entries: usize) -> u32 {
    32 - (num_entries.max(1) as u64).ilog2()
}

#[inline(always)]
fn place(hash: u64, shape: &TableShape) -> (u64, u64) {
    let kept = hash >> shape.row_bits << shape.row_bits;
    let product = u128::from(kept) * u128::from(shape.num_entries);
    let remainder = product as u64 >> 1 >> (63 - shape.remainder_bits);
    ((product >> 64) as u64, remainder)
}

pub(super) fn pack(entries: &mut [u64], row_bits: u32, remainder_bits: u32) -> PackedTable {
    entries.sort_unstable();
    let num = entries.len() as u64;
    let shape = TableShape {
        num_entries: num,
        row_bits,
        remainder_bits,
    };
    let width = shape.entry_bits() as usize;
    let mut table = PackedTable {
        shape,
        starts: vec![0; shape.start_words()],
        unary: vec![0; shape.unary_words()],
        entries: vec![0; shape.entry_words()],
    };
    let row_mask = (1 << row_bits) - 1;
    let mut prefix = 0;
    let mut close = |upto: u64, index: u64, table: &mut PackedTable| {
        // A 1 after each prefix; the first entry of each group.
        while prefix < upto {
            let bit = index + prefix;
            table.unary[(bit / 64) as usize] |= 1 << (bit % 64);
            prefix += 1;
            if prefix.is_multiple_of(GROUP) && prefix < num {
                let group = prefix / GROUP;
                table.starts[(group / 2) as usize] |= index << (32 * (group % 2));
            }
        }
    };
    for (index, &entry) in entries.iter().enumerate() {
        let (of, remainder) = place(entry, &shape);
        close(of, index as u64, &mut table);
        let bits = remainder << row_bits | entry & row_mask;
        let (word, shift) = (index * width / 64, index * width % 64);
        table.entries[word] |= bits << shift;
        if shift + width > 64 {
            table.entries[word + 1] |= bits >> (64 - shift);
        }
    }
    close(num, num, &mut table);
    table
}

/// A required block has been altered.
#[derive(Debug)]
pub(super) struct BadBlock;

#[derive(Debug)]
pub(super) struct Table {
    shape: TableShape,
    starts: Words,
    unary: Words,
    entries: Words,
}

/// A key that is being looked up.
#[derive(Clone, Copy, Default)]
struct Lane {
    prefix: u64,
    remainder: u64,
    bit: u64,
    first: u64,
    end: u64,
}

impl Table {
    /// Returns `None` if lengths and shape contradict each other.
    pub(super) fn new(
        shape: TableShape,
        starts: Words,
        unary: Words,
        entries: Words,
    ) -> Option<Self> {
        let is_sound = shape.is_sound()
            && starts.as_slice().len() == shape.start_words()
            && unary.as_slice().len() == shape.unary_words()
            && entries.as_slice().len() == shape.entry_words();
        is_sound.then_some(Table {
            shape,
            starts,
            unary,
            entries,
        })
    }

    /// Calls `found(place of the hash, row)` for each entry that may have one of the hashes.
    pub(super) fn find(
        &self,
        hashes: &[u64],
        mut found: impl FnMut(u32, u32),
    ) -> Result<(), BadBlock> {
        if self.shape.num_entries == 0 {
            return Ok(());
        }
        let mut lanes = [Lane::default(); LANES];
        for (number, hashes) in hashes.chunks(LANES).enumerate() {
            let lanes = &mut lanes[..hashes.len()];
            for (lane, &hash) in lanes.iter_mut().zip(hashes) {
                (lane.prefix, lane.remainder) = place(hash, &self.shape);
                prefetch_read(self.starts.as_slice(), (lane.prefix / GROUP / 2) as usize);
            }
            for lane in &mut *lanes {
                lane.bit = self.group_bit(lane.prefix / GROUP)?;
                prefetch_read(self.unary.as_slice(), (lane.bit / 64) as usize);
            }
            for lane in &mut *lanes {
                (lane.first, lane.end) = self.range(lane.prefix, lane.bit)?;
                if lane.first < lane.end {
                    prefetch_read(self.entries.as_slice(), self.word_of(lane.first));
                }
            }
            for (i, lane) in lanes.iter().enumerate() {
                for index in lane.first..lane.end {
                    let bits = self.entry(index)?;
                    if bits >> self.shape.row_bits == lane.remainder {
                        let row = bits & ((1 << self.shape.row_bits) - 1);
                        found((number * LANES + i) as u32, row as u32);
                    }
                }
            }
        }
        Ok(())
    }

    fn word_of(&self, index: u64) -> usize {
        (index * u64::from(self.shape.entry_bits()) / 64) as usize
    }

    /// Returns the bit of the directory at which the prefixes of a group begin.
    #[inline(always)]
    fn group_bit(&self, group: u64) -> Result<u64, BadBlock> {
        let word = read(&self.starts, group / 2)?;
        let first = word >> (32 * (group % 2)) & u64::from(u32::MAX);
        Ok(first + GROUP * group)
    }

    /// Returns the first entry of a prefix and the end of its entries.
    #[inline(always)]
    fn range(&self, prefix: u64, group_bit: u64) -> Result<(u64, u64), BadBlock> {
        let mut left = prefix % GROUP;
        let mut at = group_bit / 64;
        let mut word = read(&self.unary, at)? >> (group_bit % 64) << (group_bit % 64);
        // The bit after the one that closes the previous prefix.
        let mut begin = group_bit;
        if left > 0 {
            while u64::from(word.count_ones()) < left {
                left -= u64::from(word.count_ones());
                at += 1;
                word = read(&self.unary, at)?;
            }
            let bit = nth_one(word, left as u32 - 1);
            begin = at * 64 + u64::from(bit) + 1;
            word &= u64::MAX << bit << 1;
        }
        while word == 0 {
            at += 1;
            word = read(&self.unary, at)?;
        }
        let end = at * 64 + u64::from(word.trailing_zeros());
        match begin.checked_sub(prefix) {
            Some(first) if end - prefix <= self.shape.num_entries => Ok((first, end - prefix)),
            _ => Err(BadBlock),
        }
    }

    #[inline(always)]
    fn entry(&self, index: u64) -> Result<u64, BadBlock> {
        let width = self.shape.entry_bits();
        let bit = index * u64::from(width);
        let (word, shift) = (bit / 64, (bit % 64) as u32);
        let mut bits = read(&self.entries, word)? >> shift;
        if shift + width > 64 {
            bits |= read(&self.entries, word + 1)? << (64 - shift);
        }
        Ok(bits & (u64::MAX >> (64 - width)))
    }
}

/// Returns a word after checking that its block is intact.
#[inline(always)]
pub(super) fn read(words: &Words, index: u64) -> Result<u64, BadBlock> {
    let index = index as usize;
    match words.as_slice().get(index) {
        Some(&word) if words.are_good(index..index + 1) => Ok(word),
        _ => Err(BadBlock),
    }
}

/// Returns the position of the 1 that has `n` ones below it; there must be more than `n`.
#[inline(always)]
fn nth_one(word: u64, mut n: u32) -> u32 {
    let mut place = 0;
    let mut rest = word;
    for width in [32_u32, 16, 8, 4, 2, 1] {
        let below = (rest & ((1 << width) - 1)).count_ones();
        let is_above = u32::from(n >= below);
        n -= below * is_above;
        place += width * is_above;
        rest >>= width * is_above;
    }
    place
}

#[cfg(test)]
mod tests {
    use likewise_core::hash::mix64;

    use super::*;

    fn open(packed: &PackedTable) -> Table {
        let words = |words: &[u64]| Words::try_from(words).unwrap();
        Table::new(
            packed.shape,
            words(&packed.starts),
            words(&packed.unary),
            words(&packed.entries),
        )
        .unwrap()
    }

    fn rows_of(table: &Table, hash: u64) -> Vec<u32> {
        let mut rows = Vec::new();
        table.find(&[hash], |_, row| rows.push(row)).unwrap();
        rows
    }

    #[test]
    fn the_place_of_a_one_is_found_at_every_rank() {
        for word in [1, u64::MAX, 1 << 63, 0x8000_0001_0000_0001, mix64(7)] {
            let places: Vec<u32> = (0..64).filter(|i| word >> i & 1 == 1).collect();
            for (n, &place) in places.iter().enumerate() {
                assert_eq!(nth_one(word, n as u32), place, "{word:x} {n}");
            }
        }
    }

    #[test]
    fn hashes_of_rows_differ_in_their_upper_half() {
        let mut hashes: Vec<u64> = (0..100_000).map(row_hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 100_000);
        assert!(hashes.iter().all(|hash| hash << 32 == 0));
    }

    #[test]
    fn every_row_of_a_hash_is_found_and_few_others() {
        // Many rows with few hashes, sparse and dense ends, sizes around a group and a word.
        for (num, num_hashes, remainder_bits) in [
            (0, 1, 6),
            (1, 1, 0),
            (2, 2, 1),
            (63, 63, 6),
            (64, 64, 6),
            (65, 40, 6),
            (5000, 5000, 10),
            (5000, 7, 6),
            (5000, 2500, 20),
        ] {
            let bits = row_bits(num);
            let hash_of = |row: u32| mix64(u64::from(row % num_hashes) + 17);
            let mut entries: Vec<u64> = (0..num)
                .rev()
                .map(|row| entry(hash_of(row), row, bits))
                .collect();
            let packed = pack(&mut entries, bits, remainder_bits);
            let table = open(&packed);
            let mut num_found = 0;
            for hash in (0..num_hashes.min(num)).map(hash_of) {
                let found = rows_of(&table, hash);
                let expected: Vec<u32> = (0..num).filter(|&row| hash_of(row) == hash).collect();
                let among: Vec<u32> = found
                    .iter()
                    .copied()
                    .filter(|&row| hash_of(row) == hash)
                    .collect();
                assert_eq!(among, expected);
                num_found += found.len();
            }
            let most = num as usize + (num as usize >> remainder_bits.min(6)) * 4;
            assert!(num_found <= most, "{num} {num_hashes}: {num_found}");
            let num_strange: usize = (0..1000)
                .map(|i| rows_of(&table, mix64(i << 32)).len())
                .sum();
            assert!(
                num_strange <= (3000 >> remainder_bits).max(30),
                "{num_strange}"
            );
        }
    }

    #[test]
    fn hashes_of_rows_are_told_apart_wholly() {
        for num in [1_u32, 3, 64, 1000] {
            let bits = row_bits(1000);
            let mut entries: Vec<u64> = (0..num)
                .map(|row| entry(row_hash(row * 77), row, bits))
                .collect();
            let packed = pack(&mut entries, bits, exact_remainder_bits(num as usize));
            let table = open(&packed);
            for other in 0..80_000 {
                let expected: Vec<u32> = match other % 77 == 0 && other / 77 < num {
                    true => vec![other / 77],
                    false => Vec::new(),
                };
                assert_eq!(rows_of(&table, row_hash(other)), expected, "{num} {other}");
            }
        }
    }

    #[test]
    fn many_at_once_are_found_as_one_by_one() {
        let bits = row_bits(3000);
        let mut entries: Vec<u64> = (0..3000)
            .map(|row| entry(mix64(u64::from(row) / 3), row, bits))
            .collect();
        let table = open(&pack(&mut entries, bits, 6));
        let hashes: Vec<u64> = (0..1500).map(mix64).collect();
        let mut all = Vec::new();
        table
            .find(&hashes, |place, row| all.push((place, row)))
            .unwrap();
        let expected: Vec<(u32, u32)> = (0..hashes.len())
            .flat_map(|i| {
                rows_of(&table, hashes[i])
                    .into_iter()
                    .map(move |row| (i as u32, row))
            })
            .collect();
        assert_eq!(all, expected);
    }
}
