//! The scratch space of a join, which threads borrow.

use crate::parallel::lock;
use std::sync::Mutex;

#[derive(Debug)]
pub(super) struct Scratch {
    /// By position: what it shares with the document at hand, 0 where nothing, [`APART`] where it cannot be enough.
    pub(super) shared: Vec<f64>,
    pub(super) touched: Vec<u32>,
}

/// Shared by two documents that cannot reach the threshold any more.
pub(super) const APART: f64 = -1.0;

/// Scratch space that goes back when a thread ends: it is as long as there are positions, and clean after each.
pub(super) struct Borrowed<'a>(pub(super) Scratch, &'a Mutex<Vec<Scratch>>);

impl<'a> Borrowed<'a> {
    /// Takes an idle one, or makes it for so many positions.
    pub(super) fn take(idle: &'a Mutex<Vec<Scratch>>, num_positions: usize) -> Self {
        let found = lock(idle).pop();
        let scratch = found.unwrap_or_else(|| Scratch {
            shared: vec![0.0; num_positions],
            touched: Vec::new(),
        });
        Borrowed(scratch, idle)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let scratch = Scratch {
            shared: std::mem::take(&mut self.0.shared),
            touched: std::mem::take(&mut self.0.touched),
        };
        lock(self.1).push(scratch);
    }
}
