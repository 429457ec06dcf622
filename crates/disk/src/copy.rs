//! How are the kept lines of a file written out, byte for byte?

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::{Cancel, Run};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{Doing, Result};
use crate::position::{MAX_WINDOW, Window, read_exact_at, write_all_at};

/// Output bytes that one thread writes at a time.
const GRAIN_BYTES: u64 = 8 << 20;

/// Writes the byte ranges `(offset, length)` of `source` one after another to `target`, unchanged; returns the bytes
/// written. The last range may reach one byte past the end of the source, for a missing newline. After
/// [`Error::Changed`] the target is incomplete.
pub fn copy_ranges(
    source: &File,
    target: &File,
    ranges: impl Iterator<Item = (u64, u64)>,
    run: Run<'_>,
) -> Result<u64> {
    let size = source.metadata().doing("read the size")?.len();
    let merged = merge(ranges, size);
    let tasks = tasks(&merged, GRAIN_BYTES);
    let num_bytes = merged.iter().map(|range| range.end - range.start).sum();
    // Space is allocated first, so that a full disk is noticed before the work if the system can report it.
    target.set_len(num_bytes).doing("write")?;
    let make_state = || (Window::default(), Vec::with_capacity(MAX_WINDOW as usize));
    let results = run.map(tasks.len(), 1, make_state, |(window, out), i| {
        copy_task(source, target, &merged, &tasks[i.start], window, out)
    })?;
    results.into_iter().collect::<Result<()>>()?;
    Ok(num_bytes)
}

pub(crate) struct Task {
    /// Index of its first range, and how many bytes of that range belong to earlier tasks.
    first: usize,
    skipped: u64,
    /// Where it begins in the output, and its length.
    target_offset: u64,
    num_bytes: u64,
}

/// Merges adjacent ranges and cuts the byte past the end of the source.
pub(crate) fn merge(ranges: impl Iterator<Item = (u64, u64)>, size: u64) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::new();
    for (offset, length) in ranges {
        let end = match offset.saturating_add(length) {
            end if end == size + 1 => size,
            end => end,
        };
        match merged.last_mut() {
            _ if end <= offset => {}
            Some(last) if last.end == offset => last.end = end,
            _ => merged.push(offset..end),
        }
    }
    merged
}

/// Divides the output into tasks of `grain_bytes`; the last one may be shorter.
pub(crate) fn tasks(merged: &[Range<u64>], grain_bytes: u64) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut target_offset = 0;
    for (first, range) in merged.iter().enumerate() {
        let length = range.end - range.start;
        let mut skipped = 0;
        while skipped < length {
            // The open task is filled first; the next one begins inside the same range.
            let open = tasks.last_mut().filter(|task| task.num_bytes < grain_bytes);
            let task = match open {
                Some(task) => task,
                None => {
                    tasks.push(Task {
                        first,
                        skipped,
                        target_offset,
                        num_bytes: 0,
                    });
                    let last = tasks.len() - 1;
                    &mut tasks[last]
                }
            };
            let taken = (grain_bytes - task.num_bytes).min(length - skipped);
            task.num_bytes += taken;
            target_offset += taken;
            skipped += taken;
        }
    }
    tasks
}

fn copy_task(
    source: &File,
    target: &File,
    merged: &[Range<u64>],
    task: &Task,
    window: &mut Window,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut target_offset = task.target_offset;
    out.clear();
    each_part(source, merged, task, window, |bytes| {
        if out.is_empty() && bytes.len() as u64 == MAX_WINDOW {
            write_all_at(target, bytes, target_offset).doing("write")?;
            target_offset += MAX_WINDOW;
            return Ok(());
        }
        out.extend_from_slice(bytes);
        match out.len() as u64 >= MAX_WINDOW {
            true => flush(target, out, &mut target_offset),
            false => Ok(()),
        }
    })?;
    flush(target, out, &mut target_offset)
}

/// Passes the bytes of a task to `take`, in order and in blocks.
pub(crate) fn each_part(
    source: &File,
    merged: &[Range<u64>],
    task: &Task,
    window: &mut Window,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut left = task.num_bytes;
    let mut skipped = task.skipped;
    for at in task.first..merged.len() {
        let mut start = merged[at].start + skipped;
        let end = merged[at].end.min(start + left);
        skipped = 0;
        while start < end {
            let length = (end - start).min(MAX_WINDOW);
            let next = merged[at + 1..]
                .iter()
                .map(|range| (range.start, range.end - range.start));
            let bytes = window.fetch(source, start, length, next).reading(start)?;
            take(bytes)?;
            start += length;
            left -= length;
        }
        if left == 0 {
            break;
        }
    }
    Ok(())
}

fn flush(target: &File, out: &mut Vec<u8>, target_offset: &mut u64) -> Result<()> {
    write_all_at(target, out, *target_offset).doing("write")?;
    *target_offset += out.len() as u64;
    out.clear();
    Ok(())
}

/// Bytes read at a time.
const BLOCK_BYTES: u64 = 1 << 20;

/// Returns the XXH3-64 checksum, with seed 0, of `length` bytes of a file from `offset` on.
pub fn range_checksum(file: &File, offset: u64, length: u64, cancel: &AtomicBool) -> Result<u64> {
    let mut hasher = Xxh3Default::new();
    let mut block = vec![0; BLOCK_BYTES.min(length) as usize];
    let mut done = 0;
    while done < length {
        cancel.check()?;
        let part = &mut block[..BLOCK_BYTES.min(length - done) as usize];
        read_exact_at(file, part, offset + done).reading(offset + done)?;
        hasher.update(part);
        done += part.len() as u64;
    }
    Ok(hasher.digest())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::error::Error;

    #[test]
    fn a_range_of_a_file_has_the_checksum_of_its_bytes() {
        let bytes: Vec<u8> = (0..3_000_001u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let mut file = tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let cancel = AtomicBool::new(false);
        for (offset, length) in [(0, 0), (5, 1), (3, 241), (0, 3_000_001), (7, 1 << 20)] {
            let expected = likewise_core::hash::xxh3_64_with_seed(
                &bytes[offset as usize..(offset + length) as usize],
                0,
            );
            assert_eq!(
                range_checksum(&file, offset, length, &cancel).unwrap(),
                expected
            );
        }
        let beyond = range_checksum(&file, 3_000_000, 2, &cancel);
        assert!(matches!(
            beyond,
            Err(Error::Changed { .. } | Error::Io { .. })
        ));
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(
            range_checksum(&file, 0, 9, &cancel),
            Err(Error::Canceled)
        ));
    }

    fn tempfile() -> std::io::Result<File> {
        let path = std::env::temp_dir().join(format!("likewise-checksum-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        std::fs::remove_file(path)?;
        Ok(file)
    }
}
