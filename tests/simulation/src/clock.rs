//! A clock that the history controls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use likewise_disk::environment::{Clock, Uptime};

/// Start of each history, in seconds since 1970.
const START_S: u64 = 1_800_000_000;

/// The clocks of the simulated machine.
#[derive(Debug)]
pub struct SimulatedClock {
    unix_s: AtomicU64,
    uptime_s: AtomicU64,
    boots: AtomicU64,
    true_s: AtomicU64,
}

impl Default for SimulatedClock {
    fn default() -> Self {
        SimulatedClock {
            unix_s: AtomicU64::new(START_S),
            true_s: AtomicU64::new(START_S),
            uptime_s: AtomicU64::new(1000),
            boots: AtomicU64::new(1),
        }
    }
}

impl SimulatedClock {
    /// Advances every clock.
    pub fn pass(&self, seconds: u64) {
        self.true_s.fetch_add(seconds, Ordering::Relaxed);
        self.unix_s.fetch_add(seconds, Ordering::Relaxed);
        self.uptime_s.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Changes only the wall clock.
    pub fn jump(&self, seconds: i64) {
        let now = self.unix_s.load(Ordering::Relaxed);
        self.unix_s
            .store(now.saturating_add_signed(seconds), Ordering::Relaxed);
    }

    /// Returns the time of a clock that is never set.
    pub fn true_s(&self) -> u64 {
        self.true_s.load(Ordering::Relaxed)
    }

    /// Corrects the wall clock.
    pub fn set_right(&self) {
        self.unix_s.store(self.true_s(), Ordering::Relaxed);
    }

    /// Simulates a reboot of the machine.
    pub fn reboot(&self) {
        self.boots.fetch_add(1, Ordering::Relaxed);
        self.uptime_s.store(10, Ordering::Relaxed);
    }
}

impl Clock for SimulatedClock {
    fn unix_s(&self) -> u64 {
        self.unix_s.load(Ordering::Relaxed)
    }

    fn uptime(&self) -> Uptime {
        Uptime {
            boot_id: u128::from(self.boots.load(Ordering::Relaxed)),
            elapsed: Duration::from_secs(self.uptime_s.load(Ordering::Relaxed)),
        }
    }
}
