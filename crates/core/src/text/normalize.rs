//! How is a text normalized?

use super::compose::Run;
use super::kernel::{BLOCK, Kernel, Plain};
use super::tables::{self, STABLE, WHITE_SPACE, WORD_BREAK, properties};
use super::utf8;
use crate::isa::Isa;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spaces {
    /// Runs become one space and both ends are trimmed: the normalized text of the definitions.
    Collapse,
    /// Kept if it does not affect words: a run is collapsed only before a scalar that attaches to it (WB4).
    Words,
}

/// Space beyond the text that a step of the writer may need.
const SLACK: usize = 3 * BLOCK;

/// Writes the normalized text to `out`, which is cleared first. Safety: the processor must have `isa`.
pub(crate) unsafe fn normalize(text: &str, spaces: Spaces, isa: Isa, out: &mut Vec<u8>) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: guaranteed by the caller.
        Isa::Avx512(_) => unsafe { normalize_avx512(text, spaces, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: guaranteed by the caller.
        Isa::Avx2(_) => unsafe { normalize_avx2(text, spaces, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: guaranteed by the caller; every function is compiled for this instruction set.
        Isa::Neon(_) => unsafe { normalize_by::<super::neon::Neon>(text, spaces, out) },
        // SAFETY: portable.
        _ => unsafe { normalize_by::<Plain>(text, spaces, out) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn normalize_avx512(text: &str, spaces: Spaces, out: &mut Vec<u8>) {
    // SAFETY: this function is compiled for the instruction set.
    unsafe { normalize_by::<super::avx512::Avx512>(text, spaces, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn normalize_avx2(text: &str, spaces: Spaces, out: &mut Vec<u8>) {
    // SAFETY: this function is compiled for the instruction set.
    unsafe { normalize_by::<super::avx2::Avx2>(text, spaces, out) }
}

/// Safety: same as for the methods of the kernel.
#[inline(always)]
unsafe fn normalize_by<K: Kernel>(text: &str, spaces: Spaces, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(text.len() + SLACK);
    let mut writer = Writer {
        out,
        spaces,
        last_rank: 0,
        run: Run::default(),
        in_run: false,
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    // Invariant at the head of both loops: no run is open, and `out` has space for the rest of the text and SLACK.
    while at < bytes.len() {
        // SAFETY: guaranteed by the caller and the invariant.
        at += unsafe { writer.ascii::<K>(&bytes[at..]) };
        while at < bytes.len() {
            if bytes[at] >= 0x80 {
                // SAFETY: as above.
                at += unsafe { writer.scalar::<K>(&bytes[at..]) };
            } else if spaces == Spaces::Words && bytes.get(at + 1).is_some_and(|&next| next >= 0x80)
            {
                // A single byte, such as the space between two words of another script.
                writer.out.push(bytes[at].to_ascii_lowercase());
                at += 1;
            } else {
                break;
            }
        }
    }
    writer.finish();
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    spaces: Spaces,
    /// Rank of the last scalar's combining class.
    last_rank: u8,
    run: Run,
    in_run: bool,
}

impl Writer<'_> {
    /// Processes the ASCII bytes at the start of the text; returns their number. Safety: the processor must have the
    /// kernel's instruction set, and `out` must have space for the text and SLACK.
    #[inline(always)]
    unsafe fn ascii<K: Kernel>(&mut self, text: &[u8]) -> usize {
        let mut at = 0;
        while at < text.len() {
            let rest = text.len() - at;
            let length = self.out.len();
            let num_bytes;
            // SAFETY: 64 bytes can be read from the text or the copy of its end, and written since `out` has space.
            unsafe {
                let target = self.out.as_mut_ptr().add(length);
                let others = if rest >= BLOCK {
                    K::lower(text.as_ptr().add(at), target)
                } else {
                    let mut block = [0x80; BLOCK];
                    block[..rest].copy_from_slice(&text[at..]);
                    K::lower(block.as_ptr(), target)
                };
                num_bytes = others.trailing_zeros() as usize;
                self.out.set_len(length + num_bytes);
                if self.spaces == Spaces::Collapse {
                    let (white, spaces) = K::white_space(target);
                    self.collapse_block::<K>(length, white, spaces);
                }
            }
            at += num_bytes;
            if num_bytes < BLOCK {
                break;
            }
        }
        at
    }

    /// Collapses the whitespace of the bytes from `start` on, fewer than 65, given the masks of their block. Safety:
    /// same as for [`Writer::ascii`]; the block must have been written completely at `start`.
    #[inline(always)]
    unsafe fn collapse_block<K: Kernel>(&mut self, start: usize, white: u64, spaces: u64) {
        let num_bytes = self.out.len() - start;
        if num_bytes == 0 {
            return;
        }
        let written = u64::MAX >> (BLOCK - num_bytes);
        let (white, spaces) = (white & written, spaces & written);
        let follows_space = start == 0 || self.out[start - 1] == b' ';
        let repeated = white & (white << 1 | u64::from(follows_space));
        if white == spaces && repeated == 0 {
            return;
        }
        // SAFETY: guaranteed by the caller; no more bytes are kept than were written.
        unsafe {
            let block = self.out.as_mut_ptr().add(start);
            let num_kept = K::keep(block, white & !spaces, written & !repeated);
            self.out.set_len(start + num_kept);
        }
    }

    /// Processes a non-ASCII scalar and what it interacts with; returns the bytes. Safety: as [`Writer::ascii`].
    #[inline(always)]
    unsafe fn scalar<K: Kernel>(&mut self, text: &[u8]) -> usize {
        let length = self.out.len();
        if matches!(text[0], 0xE4..=0xE9) && text.len() >= BLOCK {
            // SAFETY: 64 bytes can be read and, since `out` has space, written.
            unsafe {
                let num_bytes = K::ideographs(text.as_ptr());
                if num_bytes > 0 {
                    K::copy(text.as_ptr(), self.out.as_mut_ptr().add(length));
                    self.out.set_len(length + num_bytes);
                    return num_bytes;
                }
            }
        }
        let first: [u8; 4] = match text.first_chunk() {
            Some(first) => *first,
            None => {
                let mut first = [0; 4];
                first[..text.len()].copy_from_slice(text);
                first
            }
        };
        let (c, num_bytes) = utf8::decode_first(first);
        let property = tables::property(c);
        if property & (STABLE | WHITE_SPACE) == STABLE && !attaches(property) {
            // SAFETY: `out` has space.
            unsafe { self.write_first(first, num_bytes) };
            return num_bytes;
        }
        let number = tables::mapping_number(c);
        if tables::is_simple_mapping(number) {
            match tables::short_mapping(number) {
                // SAFETY: `out` has space.
                Some((mapped, len)) => unsafe { self.write_first(mapped, len) },
                None => self.out.extend_from_slice(tables::mapping(number)),
            }
            if self.out.len() > length + num_bytes {
                self.out.reserve(text.len() + SLACK);
            }
            return num_bytes;
        }
        self.interacting(text)
    }

    /// Appends the first `len` of four bytes. Safety: `out` must have space for four bytes.
    #[inline(always)]
    unsafe fn write_first(&mut self, bytes: [u8; 4], len: usize) {
        let end = self.out.len();
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.out
                .as_mut_ptr()
                .add(end)
                .cast::<[u8; 4]>()
                .write_unaligned(bytes);
            self.out.set_len(end + len);
        }
    }

    /// Processes scalars until one that does not interact with the preceding text has been written.
    #[inline(never)]
    fn interacting(&mut self, text: &[u8]) -> usize {
        let mut at = 0;
        while at < text.len() {
            let (c, num_bytes) = utf8::decode(text, at);
            at += num_bytes;
            match tables::mapping_number(c) {
                0 => self.push(c),
                number => {
                    let mapped = tables::mapping(number);
                    let mut i = 0;
                    while i < mapped.len() {
                        let (c, num_bytes) = utf8::decode(mapped, i);
                        self.push(c);
                        i += num_bytes;
                    }
                }
            }
            if !self.in_run && self.last_rank == 0 {
                break;
            }
        }
        self.out.reserve(text.len() - at + SLACK);
        at
    }

    fn push(&mut self, c: u32) {
        let property = tables::property(c);
        if property & STABLE != 0 {
            self.stable(c, property);
        } else {
            self.unstable(c, property);
        }
    }

    fn stable(&mut self, c: u32, property: u8) {
        if self.in_run {
            self.run.finish(self.out);
            self.in_run = false;
        }
        self.last_rank = 0;
        if property & WHITE_SPACE != 0 && self.spaces == Spaces::Collapse {
            if !self.out.is_empty() && self.out.last() != Some(&b' ') {
                self.out.push(b' ');
            }
            return;
        }
        if attaches(property) {
            self.collapse_end();
        }
        utf8::push(c, self.out);
    }

    fn unstable(&mut self, c: u32, property: u8) {
        if self.in_run {
            self.run.push(c);
            return;
        }
        if attaches(property) {
            self.collapse_end();
        }
        let (rank, composes) = tables::order(c);
        if !composes && rank >= self.last_rank {
            self.last_rank = rank;
            utf8::push(c, self.out);
            return;
        }
        // Back to the last scalar that does not interact with anything before it.
        let mut start = self.out.len();
        while start > 0 {
            start = utf8::last_start(&self.out[..start]);
            if tables::property(utf8::decode(self.out, start).0) & STABLE != 0 {
                break;
            }
        }
        let mut at = start;
        while at < self.out.len() {
            let (c, len) = utf8::decode(self.out, at);
            self.run.push(c);
            at += len;
        }
        self.out.truncate(start);
        self.run.push(c);
        self.in_run = true;
    }

    /// Collapses the whitespace at the end as in the normalized text.
    fn collapse_end(&mut self) {
        if self.spaces == Spaces::Collapse {
            return;
        }
        let mut end = self.out.len();
        while end > 0 {
            let start = utf8::last_start(&self.out[..end]);
            if tables::property(utf8::decode(self.out, start).0) & WHITE_SPACE == 0 {
                break;
            }
            end = start;
        }
        if end < self.out.len() {
            self.out.truncate(end);
            if end > 0 {
                self.out.push(b' ');
            }
        }
    }

    fn finish(&mut self) {
        if self.in_run {
            self.run.finish(self.out);
        }
        if self.spaces == Spaces::Collapse && self.out.last() == Some(&b' ') {
            self.out.pop();
        }
    }
}

/// Whether the word boundary rules attach the scalar to the preceding one (WB4).
#[inline(always)]
fn attaches(property: u8) -> bool {
    matches!(
        property & WORD_BREAK,
        properties::EXTEND | properties::FORMAT | properties::ZWJ
    )
}
