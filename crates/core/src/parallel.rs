//! How is work distributed over threads?
//!
//! This is the only place that starts threads. They live inside one call (scoped), so the process remains safe to fork.
//! Results are returned in the order of the work, so nothing depends on the number of threads.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::error::Error;

/// Runs `work` on consecutive ranges of `0..len`, `grain` long (the last may be shorter), on up to `threads` threads.
///
/// Returns the results in the order of the ranges. `make_state` is called once per thread, for scratch space that the
/// ranges of that thread share. With `threads <= 1` or a single range, no thread is started.
///
/// Returns [`Error::Canceled`] if `cancel` was set before the last range began.
pub fn map_ranges<S, T, M, F>(
    len: usize,
    grain: usize,
    threads: usize,
    cancel: &AtomicBool,
    make_state: M,
    work: F,
) -> Result<Vec<T>, Error>
where
    T: Send,
    M: Fn() -> S + Sync,
    F: Fn(&mut S, Range<usize>) -> T + Sync,
{
    let grain = grain.max(1);
    let num_ranges = len.div_ceil(grain);
    let range_of = |i: usize| i * grain..((i + 1) * grain).min(len);
    let threads = threads.clamp(1, num_ranges.max(1));
    if threads == 1 {
        let mut state = make_state();
        let mut results = Vec::with_capacity(num_ranges);
        for i in 0..num_ranges {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Canceled);
            }
            results.push(work(&mut state, range_of(i)));
        }
        return Ok(results);
    }
    let next = AtomicUsize::new(0);
    let collected: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(num_ranges));
    let run = || {
        let mut state = make_state();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= num_ranges || cancel.load(Ordering::Relaxed) {
                return;
            }
            let result = work(&mut state, range_of(i));
            match collected.lock() {
                Ok(mut all) => all.push((i, result)),
                // Another thread panicked; its panic is propagated when the scope ends.
                Err(_) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    let mut all = collected.into_inner().unwrap_or_default();
    if all.len() < num_ranges {
        return Err(Error::Canceled);
    }
    all.sort_unstable_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

/// Fills buffers one after another on a separate thread while up to `threads` threads process filled ones.
///
/// `fill(i, buffer)` is called for `i = 0, 1, ...`, in order, until it returns `Ok(false)` (there is no such buffer) or
/// an error; then all filled buffers are processed. Returns the results in the order of the buffers. At most
/// `threads + 2` buffers are allocated.
///
/// Returns the first error of `fill`, or [`Error::Canceled`] (as `E`) if `cancel` was set before the last buffer was
/// processed.
pub fn map_filled<B, T, E, M, R, F>(
    threads: usize,
    cancel: &AtomicBool,
    make_buffer: M,
    mut fill: R,
    work: F,
) -> Result<Vec<T>, E>
where
    B: Send,
    T: Send,
    E: Send + From<Error>,
    M: Fn() -> B,
    R: FnMut(usize, &mut B) -> Result<bool, E> + Send,
    F: Fn(usize, &B) -> T + Sync,
{
    let threads = threads.max(1);
    let (give_back, empty) = mpsc::channel();
    let (hand_on, filled) = mpsc::sync_channel(threads + 2);
    let filled = Mutex::new(filled);
    for _ in 0..threads + 2 {
        // The receiver lives until the scope ends.
        let _ = give_back.send(make_buffer());
    }
    let collected: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::new());
    let run = |give_back: mpsc::Sender<B>| {
        loop {
            let next = match filled.lock() {
                Ok(filled) => filled.recv(),
                Err(_) => return,
            };
            let Ok((i, buffer)) = next else { return };
            if cancel.load(Ordering::Relaxed) {
                return;
            }
            let result = work(i, &buffer);
            match collected.lock() {
                Ok(mut all) => all.push((i, result)),
                Err(_) => return,
            }
            // The filler may have finished.
            let _ = give_back.send(buffer);
        }
    };
    let read = std::thread::scope(|scope| {
        let filler = scope.spawn(move || {
            for i in 0.. {
                let Ok(mut buffer) = empty.recv() else {
                    break;
                };
                match fill(i, &mut buffer) {
                    Ok(true) if hand_on.send((i, buffer)).is_ok() => {}
                    Ok(_) => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        for _ in 1..threads {
            let give_back = give_back.clone();
            scope.spawn(|| run(give_back));
        }
        run(give_back);
        filler.join()
    });
    match read {
        Ok(read) => read?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
    if cancel.load(Ordering::Relaxed) {
        return Err(E::from(Error::Canceled));
    }
    let mut all = collected.into_inner().unwrap_or_default();
    all.sort_unstable_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_for_any_number_of_threads() {
        let cancel = AtomicBool::new(false);
        for threads in [1, 2, 7] {
            let parts = map_ranges(1000, 7, threads, &cancel, || (), |(), r| r).unwrap();
            let flat: Vec<usize> = parts.into_iter().flatten().collect();
            assert_eq!(flat, (0..1000).collect::<Vec<_>>());
        }
        assert!(
            map_ranges(0, 7, 2, &cancel, || (), |(), r| r)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_set_flag_stops_the_work() {
        let cancel = AtomicBool::new(true);
        for threads in [1, 2] {
            let result = map_ranges(10, 1, threads, &cancel, || (), |(), r| r);
            assert_eq!(result, Err(Error::Canceled));
        }
    }

    #[test]
    fn filled_buffers_are_worked_on_in_any_order_and_come_back_in_theirs() {
        let cancel = AtomicBool::new(false);
        for threads in [1, 2, 5] {
            let fill = |i, buffer: &mut Vec<usize>| {
                buffer.clear();
                buffer.push(i * i);
                Ok::<bool, Error>(i < 100)
            };
            let found = map_filled(threads, &cancel, Vec::new, fill, |i, buffer| (i, buffer[0]));
            let expected: Vec<_> = (0..100).map(|i| (i, i * i)).collect();
            assert_eq!(found, Ok(expected));
            let broken = |i, _: &mut ()| match i {
                7 => Err(Error::invalid("file", "broken")),
                _ => Ok(true),
            };
            let found = map_filled(threads, &cancel, || (), broken, |i, ()| i);
            assert_eq!(found, Err(Error::invalid("file", "broken")));
            let stopped = AtomicBool::new(true);
            let found = map_filled(
                threads,
                &stopped,
                || (),
                |i, ()| Ok::<_, Error>(i < 9),
                |i, ()| i,
            );
            assert_eq!(found, Err(Error::Canceled));
        }
    }
}
