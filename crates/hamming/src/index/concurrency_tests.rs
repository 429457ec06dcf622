//! Threads search a set while others insert and remove: rows present throughout are never missed, and removed rows
//! never return.

use likewise_core::parallel::Run;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::plan::{Key, SearchPlan};
use crate::{Fingerprints, distance};
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;

static STOP: AtomicBool = AtomicBool::new(false);
static LINGERS: AtomicBool = AtomicBool::new(false);
/// Long enough for a search between two changes that should have been one.
const PAUSE: Duration = Duration::from_micros(500);
/// Enough that the tail becomes a segment, and segments are merged, several times.
const NUM_ROWS: usize = 30_000;
const NUM_AT_ONCE: usize = 700;

/// Called at the end of every change of a set while the test below runs.
pub(super) fn linger() {
    if LINGERS.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
    }
}

/// Few free bits, so that queries also find rows other than their own.
fn code_of(row: usize) -> u64 {
    mix64(row as u64) & 0xffff_0000_0000_fffe
}

fn building() -> Building<'static> {
    Building {
        isa: Isa::best(),
        run: Run::alone(&STOP),
        memory_bytes: 1 << 20,
        with_rows: true,
    }
}

#[test]
fn searches_run_while_rows_come_and_go() {
    LINGERS.store(true, Ordering::Relaxed);
    let keys = (0..4).map(|i| Key::of_bits(16 * i..16 * i + 16, 0));
    let set = HammingSet::new(SearchPlan::new(64, 3, keys.collect()).unwrap()).unwrap();
    // Rows below are inserted. Every fifth is removed again; those in the list certainly are.
    let num_inserted = AtomicUsize::new(0);
    let removed = Mutex::new(Vec::new());
    let num_searches = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for start in (0..NUM_ROWS).step_by(NUM_AT_ONCE) {
                let end = NUM_ROWS.min(start + NUM_AT_ONCE);
                let words: Vec<u64> = (start..end).map(code_of).collect();
                let fingerprints = Fingerprints::new(&words, 64);
                set.insert(fingerprints, None, building()).unwrap();
                num_inserted.store(end, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            let mut next = 0;
            while next < NUM_ROWS {
                let upto = num_inserted.load(Ordering::SeqCst);
                let rows: Vec<u32> = (next..upto).step_by(5).map(|row| row as u32).collect();
                assert_eq!(set.remove(&rows).unwrap(), rows.len());
                next += 5 * rows.len();
                removed.lock().unwrap().extend(rows);
            }
        });
        for thread in 0..2 {
            let (set, num_inserted) = (&set, &num_inserted);
            let (removed, num_searches) = (&removed, &num_searches);
            scope.spawn(move || {
                let mut round = thread;
                loop {
                    let inserted = num_inserted.load(Ordering::SeqCst);
                    let gone = removed.lock().unwrap().clone();
                    if inserted > 0 {
                        // One query, or enough for a sorted batch.
                        let num = if round % 4 == 3 { 5000 } else { 1 };
                        check(set, round, num, inserted, &gone);
                        num_searches.fetch_add(1, Ordering::SeqCst);
                    }
                    // On a busy machine, the changes may end before there were many searches.
                    if gone.len() == NUM_ROWS / 5 && num_searches.load(Ordering::SeqCst) > 10 {
                        break;
                    }
                    round += 2;
                }
            });
        }
    });
    LINGERS.store(false, Ordering::Relaxed);
    assert!(num_searches.into_inner() > 10);
    assert_eq!(set.len(), NUM_ROWS - NUM_ROWS / 5);
}

/// Queries near rows among the first `inserted`.
fn check(set: &HammingSet, round: u64, num: u64, inserted: usize, gone: &[u32]) {
    let asked: Vec<(usize, u64)> = (0..num)
        .map(|i| {
            let random = mix64(round << 20 | i);
            let row = random as usize % inserted;
            (row, code_of(row) ^ 1 << (random >> 58))
        })
        .collect();
    let words: Vec<u64> = asked.iter().map(|&(_, query)| query).collect();
    let queries = Fingerprints::new(&words, 64);
    let found = set
        .search(queries, Reach::new(3, Isa::best(), Run::alone(&STOP)))
        .unwrap();
    for (&(row, query), bounds) in asked.iter().zip(found.offsets.windows(2)) {
        let bounds = bounds[0] as usize..bounds[1] as usize;
        let rows = &found.rows[bounds.clone()];
        if row % 5 != 0 {
            assert!(rows.contains(&(row as u32)), "row {row} is missed");
        }
        for (&row, &between) in rows.iter().zip(&found.distances[bounds]) {
            assert_eq!(
                distance(&[code_of(row as usize)], &[query]),
                u32::from(between)
            );
            assert!(gone.binary_search(&row).is_err(), "row {row} was removed");
        }
    }
}
