//! What time is it, and how long has the machine been running?

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub trait Clock: Debug + Send + Sync {
    /// Returns seconds since 1970. This clock can be set, so it may jump in either direction.
    fn unix_s(&self) -> u64;

    /// Returns how long the machine has been running. This clock cannot be set.
    fn uptime(&self) -> Uptime;
}

/// How long the machine has been running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uptime {
    /// Identity of the boot: times of different boots cannot be compared.
    pub boot_id: u128,
    /// Time since the boot, which may include time asleep.
    pub elapsed: Duration,
}

/// The clocks of the system: on Linux since the boot, suspended time included, elsewhere since the process first asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_s(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs())
    }

    fn uptime(&self) -> Uptime {
        system::uptime()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::sync::OnceLock;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use super::Uptime;

    pub(super) fn uptime() -> Uptime {
        static BOOT_ID: OnceLock<u128> = OnceLock::new();
        let time = clock_gettime(ClockId::Boottime);
        Uptime {
            boot_id: *BOOT_ID.get_or_init(|| boot_id().unwrap_or_else(super::random_id)),
            elapsed: Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        }
    }

    fn boot_id() -> Option<u128> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::OnceLock;
    use std::time::Instant;

    use super::Uptime;

    pub(super) fn uptime() -> Uptime {
        static START: OnceLock<(u128, Instant)> = OnceLock::new();
        let (boot_id, start) = START.get_or_init(|| (super::random_id(), Instant::now()));
        Uptime {
            boot_id: *boot_id,
            elapsed: start.elapsed(),
        }
    }
}

/// Returns an id for a process that cannot know the id of the boot.
fn random_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};

    // Each hasher of the standard library has new random keys.
    let half = |number: u8| u128::from(RandomState::new().hash_one(number));
    half(0) << 64 | half(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uptime_advances_under_one_boot_id() {
        let (first, second) = (SystemClock.uptime(), SystemClock.uptime());
        assert_eq!(first.boot_id, second.boot_id);
        assert!(first.elapsed <= second.elapsed);
        assert!(SystemClock.unix_s() > 1_700_000_000);
    }
}
