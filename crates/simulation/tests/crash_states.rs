//! Every state that a power cut may leave, within a bound: no acknowledged document is lost, and none is taken for damage.
//!
//! A short history is run on the simulated disk. Wherever the power may go, before each operation of the disk, all that the disk may have made of
//! what was not synced is enumerated: each file keeps a beginning of its writes, the last of them whole or in part, or all but one; names keep a beginning of
//! their changes, or all but one. Each state is opened.

use std::sync::{Mutex, MutexGuard, PoisonError};

use likewise_simulation::enumeration;

/// SQLite's random numbers belong to the process, so one history runs at a time.
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
