//! Which operations process text in blocks of 64 bytes?
//!
//! One trait, with an implementation for each instruction set; [`Plain`] is the oracle of the others. A method reads
//! (and, if it has a target, writes) whole blocks: callers must ensure that 64 bytes are available.

/// Number of bytes per block.
pub(crate) const BLOCK: usize = 64;

/// Bit i of a mask states whether byte i of a block is in the class. Non-ASCII bytes are in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    pub(crate) letters: u64,
    pub(crate) digits: u64,
    /// `_`: joins words and is not a word itself.
    pub(crate) connectors: u64,
    /// Join two letters between which they occur.
    pub(crate) mid_letters: u64,
    /// Join two digits between which they occur.
    pub(crate) mid_numbers: u64,
}

impl Masks {
    /// Returns the classes of only the first `num_bytes` bytes, fewer than 64.
    #[inline(always)]
    pub(crate) fn first(self, num_bytes: usize) -> Masks {
        let kept = (1u64 << num_bytes) - 1;
        Masks {
            letters: self.letters & kept,
            digits: self.digits & kept,
            connectors: self.connectors & kept,
            mid_letters: self.mid_letters & kept,
            mid_numbers: self.mid_numbers & kept,
        }
    }
}

/// Block operations of one instruction set. Safety: called only where, and from code compiled for where, it exists.
pub(crate) trait Kernel {
    /// Copies a block in lower case; returns the mask of non-ASCII bytes. Safety: 64 bytes at both pointers.
    unsafe fn lower(source: *const u8, target: *mut u8) -> u64;

    /// Returns the mask of the non-ASCII bytes. Safety: 64 bytes must be readable at `source`.
    unsafe fn non_ascii(source: *const u8) -> u64;

    /// Returns the masks of the ASCII whitespace, and of the spaces in it. Safety: 64 readable bytes.
    unsafe fn white_space(source: *const u8) -> (u64, u64);

    /// Returns the word classes of the ASCII bytes. Safety: 64 bytes must be readable at `source`.
    unsafe fn classify(source: *const u8) -> Masks;

    /// Returns the bytes, at most 63, of ideographs U+4E00..=U+9FFF that begin here. Safety: 64 readable bytes of
    /// UTF-8, from the start of a scalar.
    unsafe fn ideographs(source: *const u8) -> usize;

    /// Copies a block. Safety: 64 bytes must be readable at `source` and writable at `target`.
    #[inline(always)]
    unsafe fn copy(source: *const u8, target: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(source, target, BLOCK) };
    }

    /// Blanks the bytes of a block in `blanked`, and moves those in `kept` to its front; returns how many. Safety: 64
    /// writable bytes.
    #[inline(always)]
    unsafe fn keep(block: *mut u8, blanked: u64, kept: u64) -> usize {
        let mut rest = blanked;
        while rest != 0 {
            // SAFETY: the index is below 64.
            unsafe { block.add(rest.trailing_zeros() as usize).write(b' ') };
            rest &= rest - 1;
        }
        let mut end = kept.trailing_ones() as usize;
        let mut rest = kept & kept.wrapping_add(1);
        while rest != 0 {
            // The run does not start at bit 0, so it is shorter than 64.
            let start = rest.trailing_zeros();
            let length = (rest >> start).trailing_ones();
            // SAFETY: a run of bits below 64, moved to a place that is not after it.
            unsafe { std::ptr::copy(block.add(start as usize), block.add(end), length as usize) };
            end += length as usize;
            rest &= !(((1 << length) - 1) << start);
        }
        end
    }

    /// Writes `base` plus the position of every bit of the mask, in order. Returns the number of bits. Safety: 64
    /// entries must be writable at `target`, for any mask.
    #[inline(always)]
    unsafe fn positions(mask: u64, base: u32, target: *mut u32) -> usize {
        let num_bits = mask.count_ones() as usize;
        let (mut rest, mut at) = (mask, 0);
        while at < num_bits {
            // Four at a time: this makes the length of the loop easier to predict.
            for i in 0..4 {
                // SAFETY: at + 3 < 64 since at is a multiple of 4 below 64.
                unsafe {
                    target
                        .add(at + i)
                        .write(base.wrapping_add(rest.trailing_zeros()))
                };
                rest &= rest.wrapping_sub(1);
            }
            at += 4;
        }
        num_bits
    }
}

pub(crate) struct Plain;

pub(super) const LETTER: u8 = 1;
pub(super) const DIGIT: u8 = 2;
pub(super) const CONNECTOR: u8 = 4;
pub(super) const MID_LETTER: u8 = 8;
pub(super) const MID_NUMBER: u8 = 16;

/// Word classes of ASCII; a test compares them with the Unicode tables.
pub(crate) const ASCII_CLASSES: [u8; 128] = {
    let mut classes = [0; 128];
    let mut c = 0;
    while c < 128 {
        classes[c] = match c as u8 {
            b'A'..=b'Z' | b'a'..=b'z' => LETTER,
            b'0'..=b'9' => DIGIT,
            b'_' => CONNECTOR,
            b'.' | b'\'' => MID_LETTER | MID_NUMBER,
            b':' => MID_LETTER,
            b',' | b';' => MID_NUMBER,
            _ => 0,
        };
        c += 1;
    }
    classes
};

/// Returns the top bits of eight bytes: bit i of the result is the top bit of byte i.
#[inline(always)]
fn top_bits(word: u64) -> u64 {
    ((word & 0x8080_8080_8080_8080) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl Kernel for Plain {
    #[inline(always)]
    unsafe fn lower(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        let block = unsafe { source.cast::<[u8; BLOCK]>().read_unaligned() };
        // SAFETY: guaranteed by the caller.
        unsafe {
            target
                .cast::<[u8; BLOCK]>()
                .write_unaligned(block.map(|b| b | (u8::from(b.is_ascii_uppercase()) << 5)))
        };
        // SAFETY: guaranteed by the caller.
        unsafe { Self::non_ascii(source) }
    }

    #[inline(always)]
    unsafe fn non_ascii(source: *const u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        let words = unsafe { source.cast::<[u64; 8]>().read_unaligned() };
        (0..8).fold(0, |mask, i| mask | top_bits(words[i]) << (8 * i))
    }

    #[inline(always)]
    unsafe fn white_space(source: *const u8) -> (u64, u64) {
        // SAFETY: guaranteed by the caller.
        let block = unsafe { source.cast::<[u8; BLOCK]>().read_unaligned() };
        let (mut white, mut spaces) = (0, 0);
        for (i, b) in block.into_iter().enumerate() {
            white |= u64::from(b == b' ' || b.wrapping_sub(9) < 5) << i;
            spaces |= u64::from(b == b' ') << i;
        }
        (white, spaces)
    }

    #[inline(always)]
    unsafe fn classify(source: *const u8) -> Masks {
        // SAFETY: guaranteed by the caller.
        let block = unsafe { source.cast::<[u8; BLOCK]>().read_unaligned() };
        let mut masks = Masks::default();
        for (i, bytes) in block.chunks_exact(8).enumerate() {
            let mut classes = [0u8; 8];
            for (class, &b) in classes.iter_mut().zip(bytes) {
                *class = if b < 128 {
                    ASCII_CLASSES[b as usize & 127]
                } else {
                    0
                };
            }
            let word = u64::from_le_bytes(classes);
            let bits = |class: u8| top_bits(word << (7 - class.trailing_zeros())) << (8 * i);
            masks.letters |= bits(LETTER);
            masks.digits |= bits(DIGIT);
            masks.connectors |= bits(CONNECTOR);
            masks.mid_letters |= bits(MID_LETTER);
            masks.mid_numbers |= bits(MID_NUMBER);
        }
        masks
    }

    #[inline(always)]
    unsafe fn ideographs(source: *const u8) -> usize {
        // SAFETY: guaranteed by the caller.
        let block = unsafe { source.cast::<[u8; BLOCK]>().read_unaligned() };
        let mut at = 0;
        while at < 63
            && (matches!(block[at], 0xE5..=0xE9) || (block[at] == 0xE4 && block[at + 1] >= 0xB8))
        {
            at += 3;
        }
        at
    }
}

/// Returns the length of the run of ideographs in bytes, from the masks of their lead bytes.
#[inline(always)]
pub(crate) fn run_of_ideographs(leads: u64) -> usize {
    /// Every third bit from bit 0 to bit 60.
    const LEADS: u64 = 0x1249_2492_4924_9249;
    let missing = !leads & LEADS;
    if missing == 0 {
        63
    } else {
        missing.trailing_zeros() as usize
    }
}
