//! What time is it, and for how long has the machine run?

use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clocks of the machine.
pub trait Clock: Debug + Send + Sync {
    /// Seconds since 1970. This clock can be set, so it may jump in either direction.
    fn unix_s(&self) -> u64;

    /// For how long the machine has run. This clock cannot be set.
    fn uptime(&self) -> Uptime;
}

/// For how long the machine has run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uptime {
    /// Identity of the start of the machine: times with different ones cannot be compared.
    pub boot_id: u128,
    /// Time since then, in which the machine may also have slept.
    pub elapsed: Duration,
}

/// The clocks of the system.
///
/// On Linux the uptime is that of the boot-time clock, which counts suspended time. Elsewhere it is the time since the process first asked, with a
/// boot id of its own.
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

/// An id for a process that cannot know that of the machine's start.
fn random_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};

    // The standard library's hasher has new random keys each time.
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
