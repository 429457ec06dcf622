//! Deterministic simulation of the online index.
//!
//! The store, its segments and their upkeep run on a simulated [disk], clock and [scheduler], all determined by a seed,
//! and each [history] is compared with a plain [model].

pub mod clock;
pub mod disk;
pub mod enumeration;
pub mod files;
pub mod history;
pub mod model;
pub mod random;
pub mod scheduler;
pub mod shared_memory;
pub mod vfs;
