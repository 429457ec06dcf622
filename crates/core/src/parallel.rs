//! How is work distributed over threads?
//!
//! This is the only place that starts threads. They live inside one call (scoped), so the process remains safe to fork.
//! Results are returned in the order of the work, so nothing depends on the number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// The flag by which a caller stops a call.
pub trait Cancel {
    fn check(&self) -> Result<()>;
}

impl Cancel for AtomicBool {
    fn check(&self) -> Result<()> {
        match self.load(Ordering::Relaxed) {
            true => Err(Error::Canceled),
            false => Ok(()),
        }
    }
}

/// Takes a lock, also after a panic of its holder, which ends the call anyway.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a call works with.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// Maximum number of threads.
    pub threads: usize,
    /// The flag by which the caller stops it.
    pub cancel: &'a AtomicBool,
}

impl<'a> Run<'a> {
    /// A call on the thread of its caller.
    pub fn alone(cancel: &'a AtomicBool) -> Self {
        Run { threads: 1, cancel }
    }

    /// Runs `work` on consecutive ranges of `0..len`, `grain` long, each thread with its own state; returns the results in
    /// order, or [`Error::Canceled`] if the call was stopped before the last range began.
    pub fn map<S, T, M, F>(self, len: usize, grain: usize, make_state: M, work: F) -> Result<Vec<T>>
    where
        T: Send,
        M: Fn() -> S + Sync,
        F: Fn(&mut S, Range<usize>) -> T + Sync,
    {
        let grain = grain.max(1);
        let num_ranges = len.div_ceil(grain);
        let range_of = |i: usize| i * grain..((i + 1) * grain).min(len);
        let Run { threads, cancel } = self;
        let threads = threads.clamp(1, num_ranges.max(1));
        if threads == 1 {
            let mut state = make_state();
            let mut results = Vec::with_capacity(num_ranges);
            for i in 0..num_ranges {
                cancel.check()?;
                results.push(work(&mut state, range_of(i)));
            }
            return Ok(results);
        }
        let next = AtomicUsize::new(0);
        let collected: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(num_ranges));
        let run = || {
            let mut state = make_state();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= num_ranges || cancel.load(Ordering::Relaxed) {
                    return;
                }
                let result = work(&mut state, range_of(i));
                match collected.lock() {
                    Ok(mut all) => all.push((i, result)),
                    // Another thread panicked; its panic is propagated when the scope ends.
                    Err(_) => return,
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(run);
            }
            run();
        });
        let mut all = collected.into_inner().unwrap_or_default();
        if all.len() < num_ranges {
            return Err(Error::Canceled);
        }
        all.sort_unstable_by_key(|(i, _)| *i);
        Ok(all.into_iter().map(|(_, result)| result).collect())
    }

    /// The same without a state.
    pub fn ranges<T: Send>(
        self,
        len: usize,
        grain: usize,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> Result<Vec<T>> {
        self.map(len, grain, || (), |(), range| work(range))
    }

    /// The same of each number below `len`.
    pub fn each<T: Send>(self, len: usize, work: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
        self.ranges(len, 1, |range| work(range.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_for_any_number_of_threads() {
        let cancel = AtomicBool::new(false);
        for threads in [1, 2, 7] {
            let cancel = &cancel;
            let parts = Run { threads, cancel }.ranges(1000, 7, |r| r).unwrap();
            let flat: Vec<usize> = parts.into_iter().flatten().collect();
            assert_eq!(flat, (0..1000).collect::<Vec<_>>());
        }
        let none = Run::alone(&cancel).ranges(0, 7, |r| r);
        assert!(none.unwrap().is_empty());
    }

    #[test]
    fn a_set_flag_stops_the_work() {
        let cancel = AtomicBool::new(true);
        for threads in [1, 2] {
            let cancel = &cancel;
            let result = Run { threads, cancel }.ranges(10, 1, |r| r);
            assert_eq!(result, Err(Error::Canceled));
        }
    }
}
