//! A clock that the history sets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use likewise_disk::environment::{Clock, Uptime};

/// Seconds since 1970 at which each history begins.
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
    /// Lets time pass on every clock.
    pub fn pass(&self, seconds: u64) {
        self.true_s.fetch_add(seconds, Ordering::Relaxed);
        self.unix_s.fetch_add(seconds, Ordering::Relaxed);
        self.uptime_s.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Sets the wall clock alone.
    pub fn jump(&self, seconds: i64) {
        let now = self.unix_s.load(Ordering::Relaxed);
        self.unix_s
            .store(now.saturating_add_signed(seconds), Ordering::Relaxed);
    }

    /// What a clock that is never set says.
    pub fn true_s(&self) -> u64 {
        self.true_s.load(Ordering::Relaxed)
    }

    /// Sets the wall clock to what it should be.
    pub fn set_right(&self) {
        self.unix_s.store(self.true_s(), Ordering::Relaxed);
    }

    /// The machine starts again.
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
