//! Runs background work one step at a time, in an order determined by the seed.
//!
//! Each task is a thread, but only one thread runs at any moment: the foreground resumes a task and waits until it
//! pauses. Tasks pause at operations on files that they opened themselves, where they hold no lock that the foreground
//! could need.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use likewise_disk::environment::{Background, Task};

use crate::random::Random;

/// The tasks of one process.
#[derive(Debug)]
pub struct Scheduler {
    state: Mutex<State>,
    foreground: Condvar,
}

#[derive(Debug)]
struct State {
    /// The running task; `None` for the foreground.
    current: Option<usize>,
    tasks: Vec<Entry>,
    random: Random,
    /// Percentage of the operations at which a task pauses.
    pause_percent: u32,
    panic: Option<String>,
}

#[derive(Debug)]
struct Entry {
    turn: Arc<Condvar>,
    is_finished: bool,
}

impl Scheduler {
    /// Creates a scheduler without tasks.
    pub fn new(seed: u64, pause_percent: u32) -> Arc<Self> {
        Arc::new(Scheduler {
            state: Mutex::new(State {
                current: None,
                tasks: Vec::new(),
                random: Random::new(seed, 3),
                pause_percent,
                panic: None,
            }),
            foreground: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The task that is currently running.
    pub fn current(&self) -> Option<usize> {
        self.lock().current
    }

    /// Marks an operation on a file that `owner` opened: that task may pause here.
    pub fn at_operation(&self, owner: Option<usize>) {
        if owner.is_none() {
            return;
        }
        let mut state = self.lock();
        let percent = state.pause_percent;
        if state.current == owner && state.random.percent(percent) {
            self.pause_task(state);
        }
    }

    fn pause_task(&self, mut state: MutexGuard<'_, State>) {
        let Some(task) = state.current else {
            return;
        };
        let turn = state.tasks[task].turn.clone();
        state.current = None;
        self.foreground.notify_all();
        while state.current != Some(task) {
            state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn resume(&self, mut state: MutexGuard<'_, State>, task: usize) {
        assert!(state.current.is_none(), "a task waits for another");
        state.current = Some(task);
        state.tasks[task].turn.notify_all();
        while state.current.is_some() {
            state = self
                .foreground
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(panic) = state.panic.take() {
            drop(state);
            panic!("a background task panicked: {panic}");
        }
    }

    /// Resumes one of the tasks until it pauses or ends; returns whether there was one.
    pub fn step(&self) -> bool {
        let mut state = self.lock();
        let waiting: Vec<usize> = (0..state.tasks.len())
            .filter(|&task| !state.tasks[task].is_finished)
            .collect();
        if waiting.is_empty() {
            return false;
        }
        let task = *state.random.pick(&waiting);
        self.resume(state, task);
        true
    }

    fn finish(&self, task: usize, panic: Option<String>) {
        let mut state = self.lock();
        state.tasks[task].is_finished = true;
        state.panic = panic;
        state.current = None;
        self.foreground.notify_all();
    }
}

/// The [`Background`] of a scheduler.
#[derive(Debug, Clone)]
pub struct Stepped(pub Arc<Scheduler>);

#[derive(Debug)]
struct SteppedTask {
    scheduler: Arc<Scheduler>,
    number: usize,
}

impl Background for Stepped {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        let scheduler = self.0.clone();
        let mut state = scheduler.lock();
        let number = state.tasks.len();
        let turn = Arc::new(Condvar::new());
        state.tasks.push(Entry {
            turn: turn.clone(),
            is_finished: false,
        });
        drop(state);
        let of_thread = scheduler.clone();
        Builder::new().name(name.to_owned()).spawn(move || {
            let mut state = of_thread.lock();
            while state.current != Some(number) {
                state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            let panic = catch_unwind(AssertUnwindSafe(work)).err().map(|panic| {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                text.or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default()
            });
            of_thread.finish(number, panic);
        })?;
        Ok(Box::new(SteppedTask { scheduler, number }))
    }

    fn pause(&self, _: Duration) {
        let state = self.0.lock();
        match state.current {
            Some(_) => self.0.pause_task(state),
            None => {
                drop(state);
                self.0.step();
            }
        }
    }
}

impl Task for SteppedTask {
    fn is_finished(&self) -> bool {
        self.scheduler.lock().tasks[self.number].is_finished
    }

    fn wake(&self) {}

    fn join(self: Box<Self>) {
        while !self.is_finished() {
            let state = self.scheduler.lock();
            self.scheduler.resume(state, self.number);
        }
    }
}
