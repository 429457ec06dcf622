//! All states that a power cut may leave, within a bound: no acknowledged document is lost, and no state is mistaken
//! for damage.
//!
//! A short history runs on the simulated disk. For each moment of a possible power cut, before each disk operation, all
//! states that the disk may have made of unsynced data are enumerated: each file keeps a prefix of its writes, the last
//! of them whole or in part, or all but one; names keep a prefix of their changes, or all but one. Each state is
//! opened.

use std::sync::{Mutex, MutexGuard, PoisonError};

use likewise_simulation::enumeration;

/// SQLite's random numbers are global to the process, so only one history runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_sync_that_failed_costs_nothing_that_is_acknowledged_later() {
    let _alone = alone();
    let num_syncs = enumeration::fail_each_sync().unwrap_or_else(|reason| panic!("{reason}"));
    assert!(num_syncs > 30, "{num_syncs}");
}

#[test]
fn no_state_after_a_power_cut_loses_what_was_acknowledged() {
    let _alone = alone();
    let counted = enumeration::run().unwrap_or_else(|reason| panic!("{reason}"));
    assert!(counted.num_points > 100, "{counted:?}");
    assert!(counted.num_states > 1000, "{counted:?}");
}
