//! A clock that tests control.

use likewise_core::parallel::lock;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use likewise_disk::environment::{Clock, Uptime};
use pyo3::prelude::*;

#[derive(Debug)]
struct Hands {
    unix_s: u64,
    uptime: Uptime,
}

#[derive(Debug)]
struct Manual(Mutex<Hands>);

impl Manual {
    fn with<T>(&self, look: impl FnOnce(&mut Hands) -> T) -> T {
        look(&mut lock(&self.0))
    }
}

impl Clock for Manual {
    fn unix_s(&self) -> u64 {
        self.with(|hands| hands.unix_s)
    }

    fn uptime(&self) -> Uptime {
        self.with(|hands| hands.uptime)
    }
}

/// The clocks of a machine, which advance only when moved.
#[pyclass(frozen, module = "likewise._native")]
pub struct ManualClock(Arc<Manual>);

#[pymethods]
impl ManualClock {
    #[new]
    fn new(unix_s: u64) -> Self {
        let uptime = Uptime {
            boot_id: 1,
            elapsed: Duration::from_secs(1000),
        };
        ManualClock(Arc::new(Manual(Mutex::new(Hands { unix_s, uptime }))))
    }

    /// Seconds since 1970.
    #[getter]
    fn unix_s(&self) -> u64 {
        self.0.unix_s()
    }

    fn pass_time(&self, seconds: u64) {
        self.0.with(|hands| {
            hands.unix_s += seconds;
            hands.uptime.elapsed += Duration::from_secs(seconds);
        });
    }

    fn set(&self, unix_s: u64) {
        self.0.with(|hands| hands.unix_s = unix_s);
    }

    /// Restarts the machine after some seconds without power.
    fn restart(&self, seconds: u64) {
        self.0.with(|hands| {
            hands.unix_s += seconds;
            hands.uptime.boot_id += 1;
            hands.uptime.elapsed = Duration::ZERO;
        });
    }
}

impl ManualClock {
    /// The clock, for an environment.
    pub fn shared(&self) -> Arc<dyn Clock> {
        self.0.clone()
    }
}
