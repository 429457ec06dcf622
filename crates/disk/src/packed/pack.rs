//! How are kept lines written to a compressed file?

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::map_ranges;

use super::Codec;
use crate::copy::{Task, each_part, merge, tasks};
use crate::error::{Error, Result};
use crate::position::{Window, write_all_at};

/// Compression level of gzip, 1 to 9: the default of the gzip tool.
pub const GZIP_LEVEL: u32 = 6;

/// Compression level of Zstandard: twice as fast as level 3, the default of its tool, for a seventh more bytes.
pub const ZSTD_LEVEL: i32 = 1;

/// Plain bytes per gzip member or Zstandard frame, each compressed by one thread.
const GRAIN_BYTES: u64 = 2 << 20;

/// Members or frames that a thread compresses before they are written.
const TASKS_A_THREAD: usize = 8;

/// Does what [`copy_ranges`](crate::copy_ranges) does, compressed: each two megabytes are one gzip member with its CRC,
/// or one Zstandard frame with a checksum; at least an empty one. Takes 30 MB per thread.
pub fn pack_ranges(
    source: &File,
    target: &File,
    ranges: impl Iterator<Item = (u64, u64)>,
    codec: Codec,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<u64> {
    let size = source
        .metadata()
        .map_err(|e| Error::io("read the size", e))?
        .len();
    let merged = merge(ranges, size);
    let tasks = tasks(&merged, GRAIN_BYTES);
    let mut num_written = 0;
    let mut write = |bytes: &[u8]| -> Result<()> {
        write_all_at(target, bytes, num_written).map_err(|e| Error::io("write", e))?;
        num_written += bytes.len() as u64;
        Ok(())
    };
    if tasks.is_empty() {
        write(&packed(codec, &[])?)?;
    }
    for wave in tasks.chunks(TASKS_A_THREAD * threads.max(1)) {
        let make_state = || (Window::new(), Vec::with_capacity(GRAIN_BYTES as usize));
        let parts = map_ranges(
            wave.len(),
            1,
            threads,
            cancel,
            make_state,
            |(window, plain), i| pack_task(source, &merged, &wave[i.start], codec, window, plain),
        )?;
        for part in parts {
            write(&part?)?;
        }
    }
    Ok(num_written)
}

fn pack_task(
    source: &File,
    merged: &[Range<u64>],
    task: &Task,
    codec: Codec,
    window: &mut Window,
    plain: &mut Vec<u8>,
) -> Result<Vec<u8>> {
    plain.clear();
    each_part(source, merged, task, window, |bytes| {
        plain.extend_from_slice(bytes);
        Ok(())
    })?;
    packed(codec, plain)
}

fn packed(codec: Codec, plain: &[u8]) -> Result<Vec<u8>> {
    let failure = |error| Error::io("pack", error);
    match codec {
        Codec::Gzip => {
            let level = flate2::Compression::new(GZIP_LEVEL);
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::with_capacity(plain.len() / 2), level);
            encoder.write_all(plain).map_err(failure)?;
            encoder.finish().map_err(failure)
        }
        Codec::Zstd => {
            let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(failure)?;
            compressor.include_checksum(true).map_err(failure)?;
            compressor.compress(plain).map_err(failure)
        }
    }
}
