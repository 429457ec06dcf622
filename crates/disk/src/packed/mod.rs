//! How are gzip and zstd files read and written?
//!
//! A compressed file cannot be read again by offset, so it is decompressed once into a plain file and read from there.

#[cfg(test)]
mod tests;
pub mod unpack;

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::Run;

use crate::copy::{Task, each_part, merge, tasks};
use crate::error::{Doing, Error, Result};
use crate::position::{Window, read_exact_at, write_all_at};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// gzip, with one or more members.
    Gzip,
    /// Zstandard, with one or more frames, possibly with skippable ones in between.
    Zstd,
}

impl Codec {
    /// Returns the codec with this name. Returns [`Error::InvalidParameter`] if there is none.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "gzip" => Ok(Codec::Gzip),
            "zstd" => Ok(Codec::Zstd),
            _ => Err(Error::invalid(
                "codec",
                format!("{name:?} is not one of gzip, zstd"),
            )),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Codec::Gzip => "gzip",
            Codec::Zstd => "zstd",
        }
    }
}

/// Limits of decompression: a file of zeros can expand more than a thousandfold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Maximum number of plain bytes.
    pub max_bytes: u64,
    /// Maximum number of plain bytes per byte read, applied after the first megabytes.
    pub max_ratio: u64,
}

/// Maximum size of a frame that is decompressed as a whole, in plain bytes.
const MAX_FRAME_BYTES: u64 = 8 << 20;

/// Plain bytes decompressed at once, per thread and in total; a wave ends with the first frame that reaches this size.
const WAVE_BYTES_A_THREAD: u64 = 4 << 20;
const MAX_WAVE_BYTES: u64 = 24 << 20;

/// Maximum number of frames in a wave, including skippable ones: a file may consist of frames of a few bytes.
const MAX_WAVE_FRAMES: usize = 4096;

const MAGIC: u32 = 0xFD2F_B528;
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;

pub(super) struct Frames {
    file: File,
    size: u64,
    pub position: u64,
}

/// A frame that is decompressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    offset: u64,
    num_packed: u64,
    num_plain: u64,
}

impl Frames {
    pub fn new(file: File, size: u64) -> Self {
        Frames {
            file,
            size,
            position: 0,
        }
    }

    /// Whether the next frame is skippable, or can be decompressed as a whole and is not the last.
    pub fn is_worthwhile(&self) -> bool {
        self.frame(self.position)
            .is_some_and(|(next, frame)| frame.is_none() || next < self.size)
    }

    /// Returns the plain bytes of the next frames; nothing at the end, or before one for the sequential decoder.
    pub fn next_wave(&mut self, threads: usize) -> Result<Vec<Vec<u8>>> {
        let wave_bytes = (WAVE_BYTES_A_THREAD * threads.max(1) as u64).min(MAX_WAVE_BYTES);
        let mut frames = Vec::new();
        let (mut position, mut num_plain) = (self.position, 0);
        for _ in 0..MAX_WAVE_FRAMES {
            let Some((next, frame)) = self.frame(position).filter(|_| num_plain < wave_bytes)
            else {
                break;
            };
            position = next;
            if let Some(frame) = frame {
                num_plain += frame.num_plain;
                frames.push(frame);
            }
        }
        let parts = Run {
            threads,
            cancel: &AtomicBool::new(false),
        }
        .map(frames.len(), 1, Vec::new, |packed: &mut Vec<u8>, i| {
            self.unpacked(&frames[i.start], packed)
        })?;
        // The sequential decoder reports what cannot be decompressed here, at its position in the file.
        let num_whole = parts.iter().take_while(|part| part.is_some()).count();
        self.position = match num_whole == frames.len() {
            true => position,
            false => frames[num_whole].offset,
        };
        Ok(parts.into_iter().take(num_whole).flatten().collect())
    }

    fn unpacked(&self, frame: &Frame, packed: &mut Vec<u8>) -> Option<Vec<u8>> {
        packed.resize(frame.num_packed as usize, 0);
        read_exact_at(&self.file, packed, frame.offset).ok()?;
        let plain = zstd::bulk::decompress(packed, frame.num_plain as usize).ok()?;
        (plain.len() as u64 == frame.num_plain).then_some(plain)
    }

    /// Returns the frame at `offset`, if not skippable, and its end; `None` if the sequential decoder is required.
    fn frame(&self, offset: u64) -> Option<(u64, Option<Frame>)> {
        let mut head = [0u8; 18];
        let num_bytes = (head.len() as u64).min(self.size.checked_sub(offset)?) as usize;
        read_exact_at(&self.file, &mut head[..num_bytes], offset).ok()?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        if num_bytes >= 8 && word(0) & 0xFFFF_FFF0 == SKIPPABLE_MAGIC {
            let end = offset + 8 + u64::from(word(4));
            return (end <= self.size).then_some((end, None));
        }
        if num_bytes < 9 || word(0) != MAGIC {
            return None;
        }
        // RFC 8878, 3.1.1.1.
        let descriptor = head[4];
        let is_single = descriptor & 0x20 != 0;
        let has_checksum = descriptor & 0x04 != 0;
        let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let size_bytes = match descriptor >> 6 {
            0 => usize::from(is_single),
            kind => 1 << kind,
        };
        let at = 5 + usize::from(!is_single) + dictionary_bytes;
        if dictionary_bytes != 0 || size_bytes == 0 || at + size_bytes > num_bytes {
            return None;
        }
        let mut field = [0u8; 8];
        field[..size_bytes].copy_from_slice(&head[at..at + size_bytes]);
        let num_plain = u64::from_le_bytes(field) + if size_bytes == 2 { 256 } else { 0 };
        if num_plain > MAX_FRAME_BYTES {
            return None;
        }
        // A frame could hold any number of empty blocks.
        let start = offset + (at + size_bytes) as u64;
        let last_end = self.size.min(start + 2 * num_plain + 1024);
        let end = self.blocks_end(start, last_end)? + if has_checksum { 4 } else { 0 };
        let frame = Frame {
            offset,
            num_packed: end - offset,
            num_plain,
        };
        (end <= self.size).then_some((end, Some(frame)))
    }

    /// Returns the end of the blocks that begin at `position`, or `None` if it is beyond `last_end`.
    fn blocks_end(&self, mut position: u64, last_end: u64) -> Option<u64> {
        loop {
            let mut head = [0u8; 4];
            read_exact_at(&self.file, &mut head[..3], position).ok()?;
            let head = u32::from_le_bytes(head);
            // A block of one repeated byte stores only that byte.
            let num_bytes = if head >> 1 & 3 == 1 { 1 } else { head >> 3 };
            position += 3 + u64::from(num_bytes);
            if position > last_end {
                return None;
            }
            if head & 1 == 1 {
                return Some(position);
            }
        }
    }
}

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
    run: Run<'_>,
) -> Result<u64> {
    let size = source.metadata().doing("read the size")?.len();
    let merged = merge(ranges, size);
    let tasks = tasks(&merged, GRAIN_BYTES);
    let mut num_written = 0;
    let mut write = |bytes: &[u8]| -> Result<()> {
        write_all_at(target, bytes, num_written).doing("write")?;
        num_written += bytes.len() as u64;
        Ok(())
    };
    if tasks.is_empty() {
        write(&packed(codec, &[])?)?;
    }
    for wave in tasks.chunks(TASKS_A_THREAD * run.threads.max(1)) {
        let make_state = || (Window::default(), Vec::with_capacity(GRAIN_BYTES as usize));
        let parts = run.map(wave.len(), 1, make_state, |(window, plain), i| {
            pack_task(source, &merged, &wave[i.start], codec, window, plain)
        })?;
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

#[cfg(test)]
mod frames_tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_frame_ends_where_the_next_begins() {
        // Every width of the size; blocks of one repeated byte, stored and compressed ones, several of them.
        let texts: Vec<Vec<u8>> = [0, 1, 255, 256, 257, 65_791, 65_792, 400_000]
            .iter()
            .flat_map(|&length| {
                let mixed = (0..length as u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8);
                let words = b"over and over ".iter().copied().cycle().take(length);
                [vec![b'\n'; length], mixed.collect(), words.collect()]
            })
            .collect();
        let path = std::env::temp_dir().join(format!("likewise-frames-{}", std::process::id()));
        let mut file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut ends = Vec::new();
        let mut size = 0;
        for (i, text) in texts.iter().enumerate() {
            let mut compressor = zstd::bulk::Compressor::new(1).unwrap();
            compressor.include_checksum(i % 2 == 0).unwrap();
            let packed = compressor.compress(text).unwrap();
            file.write_all(&packed).unwrap();
            size += packed.len() as u64;
            ends.push((size, text.len() as u64));
        }
        let mut frames = Frames::new(file, size);
        let mut position = 0;
        for end in ends {
            let (next, frame) = frames.frame(position).unwrap();
            assert_eq!((next, frame.unwrap().num_plain), end);
            position = next;
        }
        assert!(frames.frame(size).is_none());
        assert_eq!(frames.next_wave(2).unwrap(), texts);
        assert_eq!(frames.position, size);
    }
}
