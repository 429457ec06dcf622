//! How are the hits of several threads converted to rows, in one order and in bounded memory?

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use likewise_core::error::Result;
use likewise_core::parallel::{Run, lock};

use super::collapse::Laid;
use super::compare::Hit;

pub(super) const BATCH_LEN: usize = 1 << 16;
const MAX_WAITING: usize = 256;
/// How often a waiting thread checks whether it should stop.
const WAIT: Duration = Duration::from_millis(50);

/// Pairs of rows at distance `within` or less.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairBatch {
    /// The smaller row of each pair; in a join of two sets, the row of the left one.
    pub left: Vec<u32>,
    /// The greater row; in a join of two sets, the row of the right one.
    pub right: Vec<u32>,
    pub distance: Vec<u16>,
}

impl PairBatch {
    pub fn len(&self) -> usize {
        self.left.len()
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    #[inline(always)]
    fn push(&mut self, left: u32, right: u32, distance: u16) {
        self.left.push(left);
        self.right.push(right);
        self.distance.push(distance);
    }
}

/// The caller ended the join, or a thread failed.
#[derive(Debug)]
pub(super) struct Stopped;

/// Receives batches; `false` ends the join.
pub(super) type Consumer<'a> = &'a mut (dyn FnMut(PairBatch) -> bool + Send);

/// The destination of the pairs of all threads, ordered by task, so that it does not depend on the threads.
pub(super) struct Output<'a> {
    queue: Mutex<Queue<'a>>,
    turn: Condvar,
    cancel: &'a AtomicBool,
    /// Set if the consumer ended the join or a task has failed.
    stopped: AtomicBool,
    left: &'a Laid<'a>,
    right: Option<&'a Laid<'a>>,
}

struct Queue<'a> {
    consumer: Consumer<'a>,
    /// The task whose turn it is.
    next: usize,
    waiting: BTreeMap<usize, Waiting>,
    num_waiting: usize,
}

/// The output of a task before its turn.
#[derive(Default)]
struct Waiting {
    batches: Vec<PairBatch>,
    is_done: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(
        consumer: Consumer<'a>,
        left: &'a Laid<'a>,
        right: Option<&'a Laid<'a>>,
        cancel: &'a AtomicBool,
    ) -> Self {
        Output {
            queue: Mutex::new(Queue {
                consumer,
                next: 0,
                waiting: BTreeMap::new(),
                num_waiting: 0,
            }),
            turn: Condvar::new(),
            cancel,
            stopped: AtomicBool::new(false),
            left,
            right,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<'a>> {
        // A panic of the consumer stops every thread below, so a state that it left behind is not used.
        lock(&self.queue)
    }

    /// Adds the pairs of empty texts and of codes that were collapsed.
    pub(super) fn add_equal(&self) -> Result<(), Stopped> {
        self.begin_phase();
        let mut writer = self.writer(0);
        match self.right {
            Some(right) => writer.add_across(&self.left.empty_rows, &right.empty_rows, 0)?,
            None => {
                writer.add_inside(&self.left.empty_rows)?;
                for rows in self.left.shared() {
                    writer.add_inside(rows)?;
                }
            }
        }
        writer.finish()
    }

    /// Begins a phase, whose tasks are numbered from 0. The tasks of the previous phase must be done.
    pub(super) fn begin_phase(&self) {
        let mut queue = self.lock();
        queue.next = 0;
        queue.waiting.clear();
        queue.num_waiting = 0;
    }

    /// Returns the writer of task `number` of this phase.
    pub(super) fn writer(&self, number: usize) -> Writer<'_, 'a> {
        Writer {
            output: self,
            number,
            batch: PairBatch::default(),
            is_done: false,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.stopped.load(Ordering::Relaxed)
    }

    fn take(&self, queue: &mut Queue<'a>, batch: PairBatch) {
        if !self.is_stopped() && !(queue.consumer)(batch) {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    fn send(&self, number: usize, batch: PairBatch) -> Result<(), Stopped> {
        let mut queue = self.lock();
        loop {
            if self.is_stopped() {
                return Err(Stopped);
            }
            if queue.next == number {
                self.take(&mut queue, batch);
                return Ok(());
            }
            if queue.num_waiting < MAX_WAITING {
                queue.num_waiting += 1;
                queue.waiting.entry(number).or_default().batches.push(batch);
                return Ok(());
            }
            // The task whose turn it is never waits, so every turn comes.
            queue = match self.turn.wait_timeout(queue, WAIT) {
                Ok((queue, _)) => queue,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    fn finish(&self, number: usize) {
        let mut queue = self.lock();
        queue.waiting.entry(number).or_default().is_done = true;
        // Passes on the output of the task whose turn it is, and continues with the next ones while tasks are done.
        loop {
            let turn = queue.next;
            let Some(waiting) = queue.waiting.remove(&turn) else {
                break;
            };
            queue.num_waiting -= waiting.batches.len();
            for batch in waiting.batches {
                self.take(&mut queue, batch);
            }
            if !waiting.is_done {
                break;
            }
            queue.next += 1;
        }
        self.turn.notify_all();
    }
}

pub(super) struct Writer<'o, 'a> {
    output: &'o Output<'a>,
    number: usize,
    batch: PairBatch,
    is_done: bool,
}

impl Writer<'_, '_> {
    pub(super) fn is_stopped(&self) -> bool {
        self.output.is_stopped()
    }

    /// Adds the rows of all hits and clears the hits.
    pub(super) fn drain(&mut self, hits: &mut Vec<Hit>) -> Result<(), Stopped> {
        let output = self.output;
        for hit in hits.drain(..) {
            let left = output.left.rows_of(&hit.a);
            match output.right {
                Some(right) => self.add_across(left, right.rows_of(&hit.b), hit.distance)?,
                None => {
                    for &a in left {
                        for &b in output.left.rows_of(&hit.b) {
                            self.add(a.min(b), a.max(b), hit.distance)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds each pair of a row of `left` and a row of `right`.
    pub(super) fn add_across(
        &mut self,
        left: &[u32],
        right: &[u32],
        distance: u16,
    ) -> Result<(), Stopped> {
        for &a in left {
            for &b in right {
                self.add(a, b, distance)?;
            }
        }
        Ok(())
    }

    /// Adds every pair of `rows`, which must ascend, at distance 0.
    pub(super) fn add_inside(&mut self, rows: &[u32]) -> Result<(), Stopped> {
        for (index, &a) in rows.iter().enumerate() {
            for &b in &rows[index + 1..] {
                self.add(a, b, 0)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn add(&mut self, left: u32, right: u32, distance: u16) -> Result<(), Stopped> {
        self.batch.push(left, right, distance);
        if self.batch.len() >= BATCH_LEN {
            self.flush()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn flush(&mut self) -> Result<(), Stopped> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.output.send(self.number, batch)
    }

    /// Passes on the remaining pairs and ends the turn of the task.
    pub(super) fn finish(mut self) -> Result<(), Stopped> {
        self.flush()?;
        self.output.finish(self.number);
        self.is_done = true;
        Ok(())
    }
}

impl Drop for Writer<'_, '_> {
    /// A task that ends early, by a panic or on request, must not keep others waiting.
    fn drop(&mut self) {
        if !self.is_done {
            self.output.stopped.store(true, Ordering::Relaxed);
            self.output.turn.notify_all();
        }
    }
}

/// Approximate number of pairs per stretch of left rows: they fit in the L2 cache.
const STRETCH_LEN: usize = 1 << 15;
const MAX_STRETCHES: usize = 1 << 12;

/// Pairs by left row, then right row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SortedPairs {
    /// Left and right row of each pair, consecutively.
    pub rows: Vec<i64>,
    /// Number of differing bits of each pair.
    pub distance: Vec<u16>,
}

/// Returns the pairs of all batches, sorted by left row, then right row, with 12 bytes per pair.
pub fn sort_pairs(batches: Vec<PairBatch>, run: Run<'_>) -> Result<SortedPairs> {
    let len: usize = batches.iter().map(PairBatch::len).sum();
    let lefts = batches.iter().flat_map(|batch| &batch.left);
    let num_rows = lefts.max().map_or(1, |&row| row as usize + 1);
    let num_stretches = len.div_ceil(STRETCH_LEN).clamp(1, MAX_STRETCHES);
    let stretch_of = |left: u32| left as usize * num_stretches / num_rows;
    let mut ends = vec![0; num_stretches + 2];
    for batch in &batches {
        for &left in &batch.left {
            ends[stretch_of(left) + 2] += 1;
        }
    }
    let mut total = 0;
    for end in &mut ends {
        total += *end;
        *end = total;
    }
    let mut pairs = vec![(0_u32, 0_u32, 0_u16); len];
    for batch in batches {
        for index in 0..batch.len() {
            let end = &mut ends[stretch_of(batch.left[index]) + 1];
            pairs[*end] = (batch.left[index], batch.right[index], batch.distance[index]);
            *end += 1;
        }
    }
    let parts = run.ranges(num_stretches, 1, |range| {
        let mut keys: Vec<(u64, u16)> = pairs[ends[range.start]..ends[range.end]]
            .iter()
            .map(|&(left, right, distance)| (u64::from(left) << 32 | u64::from(right), distance))
            .collect();
        keys.sort_unstable();
        keys
    })?;
    let mut sorted = SortedPairs {
        rows: Vec::with_capacity(2 * len),
        distance: Vec::with_capacity(len),
    };
    for part in parts {
        for (key, distance) in part {
            sorted
                .rows
                .extend([(key >> 32) as i64, (key & 0xffff_ffff) as i64]);
            sorted.distance.push(distance);
        }
    }
    Ok(sorted)
}
