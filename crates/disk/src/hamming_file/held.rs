//! How is a set in memory built from fingerprints that should not be copied into memory?
//!
//! A mapped array is read by position, once for each table and each batch of entries that memory holds. It is never
//! copied, since the fingerprints would be a third of all memory, and never read through the mapping: truncating the
//! file meanwhile must cause an error, not a crash. A file whose size or time has changed at the end is rejected.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use likewise_core::error::Error as CoreError;
use likewise_hamming::index::{Building, Codes, HammingSet};
use likewise_hamming::plan::SearchPlan;
use zerocopy::IntoBytes;

use super::source::{IndexSource, changed};
use crate::error::{Error, Result};

/// A file that is read by a build that knows only its own errors.
struct Reading<'a> {
    source: &'a IndexSource,
    failed: Mutex<Option<Error>>,
}

impl Codes for Reading<'_> {
    fn len(&self) -> usize {
        self.source.len()
    }

    fn read<'a>(
        &'a self,
        range: Range<usize>,
        buffer: &'a mut Vec<u64>,
    ) -> Result<&'a [u64], CoreError> {
        buffer.resize(range.len() * self.source.num_words(), 0);
        let read = self.source.read(range.start, buffer.as_mut_bytes());
        if let Err(error) = read.and_then(|()| self.source.check_width(buffer)) {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert(error);
            return Err(CoreError::Damaged);
        }
        Ok(buffer)
    }
}

impl IndexSource {
    /// Builds a set in memory from fingerprints none of which is of an empty text: for each table of the plan, one read
    /// to count, and one for each `memory_bytes` of entries.
    pub fn build_set(&self, plan: SearchPlan, building: Building<'_>) -> Result<HammingSet> {
        if self.num_fingerprints() != self.len() || plan.bits() != self.bits() {
            return Err(Error::invalid(
                "fingerprints",
                "must have the width of the plan, and no empty texts",
            ));
        }
        let reading = Reading {
            source: self,
            failed: Mutex::new(None),
        };
        let built = HammingSet::build_of(&reading, plan, building);
        let failed = reading.failed.into_inner();
        if let Some(error) = failed.unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        match built {
            Err(CoreError::Damaged) => Err(changed()),
            Err(error) => Err(error.into()),
            Ok(set) => self.check_unchanged().map(|()| set),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicBool;

    use likewise_core::hash::mix64;
    use likewise_core::isa::Isa;
    use likewise_hamming::Fingerprints;
    use likewise_hamming::plan::Key;

    use super::*;

    #[test]
    fn a_set_of_a_file_is_that_of_the_same_in_memory_unless_the_file_changes() {
        let words: Vec<u64> = (0..300_000).map(|i| mix64(i / 2)).collect();
        let path = std::env::temp_dir().join(format!("likewise-held-{}", std::process::id()));
        fs::write(&path, [&[0; 16], words.as_bytes()].concat()).unwrap();
        let keys = vec![Key::of_bits(0..32, 1), Key::of_bits(32..64, 1)];
        let plan = SearchPlan::new(64, 3, keys).unwrap();
        let cancel = AtomicBool::new(false);
        let building = Building {
            isa: Isa::best(),
            threads: 2,
            memory_bytes: 1 << 20,
            with_rows: true,
            cancel: &cancel,
        };
        let open = || {
            let file = fs::File::open(&path).unwrap();
            let source = IndexSource::new(file, 16, 300_000, 64, Vec::new()).unwrap();
            source.named(path.clone())
        };
        let set = open().build_set(plan.clone(), building).unwrap();
        let fingerprints = Fingerprints {
            words: &words,
            bits: 64,
        };
        let held = HammingSet::build(fingerprints, None, plan.clone(), building).unwrap();
        let found = |set: &HammingSet| {
            let queries = Fingerprints {
                words: &words[..1000],
                bits: 64,
            };
            set.search(queries, 3, Isa::best(), 1, &cancel).unwrap()
        };
        assert!(found(&set) == found(&held) && found(&set).rows.len() >= 2000);
        assert_eq!(set.len(), 300_000);
        let source = open();
        fs::write(&path, &words.as_bytes()[..1_000_000]).unwrap();
        let cut = source.build_set(plan.clone(), building);
        assert!(matches!(cut, Err(Error::Changed { .. })), "{cut:?}");
        fs::write(&path, [&[0; 16], words.as_bytes()].concat()).unwrap();
        let source = open();
        fs::write(&path, [&[1; 16], words.as_bytes(), &[0]].concat()).unwrap();
        let grown = source.build_set(plan, building);
        assert!(matches!(grown, Err(Error::Changed { .. })), "{grown:?}");
        fs::remove_file(&path).unwrap();
    }
}
