//! Which documents share a band with any of a sample?

use super::BandKey;
use crate::features::FeatureFilter;
use crate::isa::Isa;
use crate::prefetch::prefetch_read;
use crate::sketch::Signatures;
use crate::sketch::signatures::num_equal;

/// The bands of sampled signatures.
#[derive(Debug)]
pub struct SampledBands {
    bytes: Vec<u8>,
    bands: Vec<BandKey>,
    /// The key of each band, and the number of its signature; ascending.
    entries: Vec<(u64, u32)>,
    /// Answers for most keys, from a nearer cache than the entries.
    filter: FeatureFilter,
    /// Where the entries of each value of a key's first bits begin.
    starts: Vec<u32>,
    shift: u32,
}

impl SampledBands {
    /// Lists the bands of `rows` slots each.
    pub fn new(signatures: Signatures<'_>, rows: u32) -> Self {
        let num_bands = signatures.num_slots as u32 / rows;
        let mut bands: Vec<BandKey> = (0..num_bands)
            .map(|band| BandKey::new(&signatures, band, rows, 0))
            .collect();
        let mut entries = Vec::with_capacity(signatures.len() * bands.len());
        for i in 0..signatures.len() {
            let row = signatures.row(i);
            entries.extend(bands.iter_mut().map(|band| (band.of(row), i as u32)));
        }
        entries.sort_unstable();
        SampledBands::of(signatures.bytes.to_vec(), bands, entries)
    }

    /// Returns the bands of the other signatures, under their numbers.
    #[must_use]
    pub fn without(&self, gone: &[u32]) -> Self {
        let mut entries = self.entries.clone();
        entries.retain(|(_, which)| gone.binary_search(which).is_err());
        SampledBands::of(self.bytes.clone(), self.bands.clone(), entries)
    }

    fn of(bytes: Vec<u8>, bands: Vec<BandKey>, entries: Vec<(u64, u32)>) -> Self {
        let bits = usize::BITS - entries.len().leading_zeros();
        let shift = u64::BITS - bits.max(1);
        let mut starts = vec![0; (1 << bits.max(1)) + 1];
        for &(key, _) in &entries {
            starts[(key >> shift) as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        SampledBands {
            bytes,
            bands,
            filter: FeatureFilter::new(entries.iter().map(|&(key, _)| key), entries.len()),
            entries,
            starts,
            shift,
        }
    }

    /// Calls `take` with the number of a sampled signature, that of one of these, of as many slots, and the number of
    /// their equal slots, once for each pair that shares a band. Cost: about 15 ns per band.
    pub fn pairs(&self, others: Signatures<'_>, isa: Isa, mut take: impl FnMut(u32, u32, u32)) {
        let sampled = Signatures {
            bytes: &self.bytes,
            ..others
        };
        let mut bands = self.bands.clone();
        // For each sampled signature, the last of the others that it was compared with, plus one.
        let mut last = vec![0; sampled.len()];
        let mut keys = Vec::new();
        for (i, row) in (0..).zip(others.bytes.chunks_exact(others.row_bytes())) {
            // All keys first, which request the memory that the next loop waits for.
            keys.clear();
            for key in bands.iter_mut().map(|band| band.of(row)) {
                if self.filter.may_hold(key) {
                    prefetch_read(&self.starts, (key >> self.shift) as usize);
                    keys.push(key);
                }
            }
            for &key in &keys {
                let place = (key >> self.shift) as usize;
                let range = self.starts[place] as usize..self.starts[place + 1] as usize;
                for &(of_sampled, which) in &self.entries[range] {
                    if of_sampled == key && last[which as usize] != i + 1 {
                        last[which as usize] = i + 1;
                        let own = sampled.row(which as usize);
                        take(which, i, num_equal(own, row, others.slot_bytes, isa));
                    }
                }
            }
        }
    }
}
