//! Which feature sets were used recently?

use std::sync::{Arc, Mutex, PoisonError};

use likewise_core::verify::FeatureSet;

use crate::state::rows_by_hash::Quick;

/// Bytes of feature sets held.
const BUDGET_BYTES: usize = 32 << 20;

/// Feature sets of rows, shared by threads. If they take too much memory, the least recently used ones are dropped.
#[derive(Debug, Default)]
pub struct RecentSets {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Asked for since the last time that room was made.
    new: Quick<u32, Arc<FeatureSet>>,
    new_bytes: usize,
    /// Asked for before.
    old: Quick<u32, Arc<FeatureSet>>,
}

impl RecentSets {
    /// The set of a row, if it is held.
    pub fn get(&self, row: u32) -> Option<Arc<FeatureSet>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = inner.new.get(&row) {
            return Some(set.clone());
        }
        let set = inner.old.remove(&row)?;
        inner.insert(row, set.clone());
        Some(set)
    }

    pub fn insert(&self, row: u32, set: Arc<FeatureSet>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.insert(row, set);
    }
}

impl Inner {
    fn insert(&mut self, row: u32, set: Arc<FeatureSet>) {
        self.new_bytes += set.num_bytes();
        self.new.insert(row, set);
        if self.new_bytes > BUDGET_BYTES / 2 {
            self.old = std::mem::take(&mut self.new);
            self.new_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_lately_goes() {
        let recent = RecentSets::default();
        let set = |row: u32| {
            let features: Vec<u64> = (0..50_000).map(|i| i * 7 + u64::from(row)).collect();
            Arc::new(FeatureSet::new(&features, &[]))
        };
        for row in 0..200 {
            recent.insert(row, set(row));
            assert!(recent.get(0).is_some(), "{row}");
        }
        assert!(recent.get(1).is_none());
        assert!(recent.get(199).is_some());
    }
}
