//! Which of eight fingerprints are within a radius of another?
//!
//! One small step for each instruction set. The loops around it are written once, generic and always inlined into a
//! function that enables the instruction set, so that each gets its own machine code. There must be no closure in
//! between: it would not inherit the instruction set, and every intrinsic in it would become a call.

/// Number of fingerprints that one step compares.
pub(super) const LANES: usize = 8;
/// Number of 32-bit parts that one step compares.
pub(super) const PART_LANES: usize = 16;

/// An implementation of the comparison for one instruction set.
pub(super) trait Kernel {
    /// Returns a mask of the eight codes from `codes` on (word `w` is `w * stride` further) within `within` of `query`.
    /// Safety: those words are readable, and the processor has the instruction set.
    unsafe fn within8<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
        within: u32,
    ) -> u8;

    /// Returns whether any of the eight codes is within `within` of any query. Safety: same as [`Kernel::within8`].
    #[inline(always)]
    unsafe fn any_within8<const W: usize, const Q: usize>(
        codes: *const u64,
        stride: usize,
        queries: &[[u64; W]; Q],
        within: u32,
    ) -> bool {
        let mut any = 0;
        for query in queries {
            // SAFETY: guaranteed by the caller.
            any |= unsafe { Self::within8::<W>(codes, stride, query, within) };
        }
        any != 0
    }

    /// Returns a mask of the sixteen numbers from `parts` on within `within` bits of `query`. Safety: they are
    /// readable, and the processor has the instruction set.
    unsafe fn parts_within16(parts: *const u32, query: u32, within: u32) -> u16;

    /// Returns whether any of sixteen numbers is within `within` of any query. Safety: as [`Kernel::parts_within16`].
    #[inline(always)]
    unsafe fn any_part_within16<const Q: usize>(
        parts: *const u32,
        queries: &[u32; Q],
        within: u32,
    ) -> bool {
        let mut any = 0;
        for &query in queries {
            // SAFETY: guaranteed by the caller.
            any |= unsafe { Self::parts_within16(parts, query, within) };
        }
        any != 0
    }

    /// Returns the bits of `word` under `mask`, packed. Safety: the processor must have the instruction set.
    unsafe fn gather(word: u64, mask: u64) -> u64;
}

pub(super) struct Plain;

impl Kernel for Plain {
    #[inline(always)]
    unsafe fn parts_within16(parts: *const u32, query: u32, within: u32) -> u16 {
        let mut mask = 0;
        for lane in 0..PART_LANES {
            // SAFETY: readable by the contract of the trait.
            let distance = unsafe { (*parts.add(lane) ^ query).count_ones() };
            mask |= u16::from(distance <= within) << lane;
        }
        mask
    }

    #[inline(always)]
    unsafe fn gather(word: u64, mask: u64) -> u64 {
        // Run by run: most masks have one or two runs.
        let (mut left, mut gathered, mut num_bits) = (mask, 0, 0);
        while left != 0 {
            let start = left.trailing_zeros();
            let length = (left >> start).trailing_ones();
            let run = u64::MAX >> (64 - length);
            gathered |= (word >> start & run) << num_bits;
            num_bits += length;
            left &= !(run << start);
        }
        gathered
    }

    #[inline(always)]
    unsafe fn within8<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
        within: u32,
    ) -> u8 {
        let mut mask = 0;
        for lane in 0..LANES {
            let mut distance = 0;
            for (w, word) in query.iter().enumerate() {
                // SAFETY: readable by the contract of the trait.
                distance += unsafe { (*codes.add(w * stride + lane) ^ word).count_ones() };
            }
            mask |= u8::from(distance <= within) << lane;
        }
        mask
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86;

/// Runs a generic body with a kernel and a number of words: `run_kernel!(isa, num_words, body(arguments...))` calls
/// `body::<K, W>(arguments...)`, an `#[inline(always)]` unsafe function, with variables.
macro_rules! run_kernel {
    ($isa:expr, $num_words:expr, $body:ident, ($($argument:ident : $type:ty),*)) => {{
        use crate::kernels;
        use likewise_core::isa::Isa;
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn avx2<const W: usize>($($argument: $type),*) {
            // SAFETY: this function enables what the kernel needs.
            unsafe { $body::<kernels::Avx2, W>($($argument),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vpopcntdq")]
        fn avx512<const W: usize>($($argument: $type),*) {
            // SAFETY: this function enables what the kernel needs.
            unsafe { $body::<kernels::Avx512, W>($($argument),*) }
        }
        fn run<const W: usize>(isa: Isa, $($argument: $type),*) {
            match isa {
                // SAFETY: an `Isa` of this kind is created only if the processor has it.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512(_) => unsafe { avx512::<W>($($argument),*) },
                // SAFETY: an `Isa` of this kind is created only if the processor has it.
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2(_) => unsafe { avx2::<W>($($argument),*) },
                // SAFETY: the plain kernel needs no instruction set.
                _ => unsafe { $body::<kernels::Plain, W>($($argument),*) },
            }
        }
        match $num_words {
            1 => run::<1>($isa, $($argument),*),
            2 => run::<2>($isa, $($argument),*),
            3 => run::<3>($isa, $($argument),*),
            _ => run::<4>($isa, $($argument),*),
        }
    }};
}
pub(super) use run_kernel;

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
