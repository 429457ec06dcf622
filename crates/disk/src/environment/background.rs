//! Where does background work run?

use std::fmt::Debug;
use std::io;
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

pub trait Background: Debug + Send + Sync {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>>;

    /// Waits for this long, or until [`Task::wake`] wakes the calling task. It may return earlier.
    fn pause(&self, time: Duration);
}

pub trait Task: Debug + Send {
    fn is_finished(&self) -> bool;

    /// Ends its [pause](Background::pause).
    fn wake(&self);

    /// Waits until it has ended. A panic of the task is not passed on.
    fn join(self: Box<Self>);
}

/// A thread of the system for each task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl Background for Threads {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        let thread = Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Box::new(thread))
    }

    fn pause(&self, time: Duration) {
        park_timeout(time);
    }
}

impl Task for JoinHandle<()> {
    fn is_finished(&self) -> bool {
        JoinHandle::is_finished(self)
    }

    fn wake(&self) {
        self.thread().unpark();
    }

    fn join(self: Box<Self>) {
        drop(JoinHandle::join(*self));
    }
}
