//! How does NEON multiply 64-bit numbers?
//!
//! It multiplies 32-bit numbers. So four numbers are held as their low and high halves: a product takes five
//! multiplications for four numbers, and a shift by 32 or more involves only one half.

use std::arch::aarch64::*;

/// The halves of four 64-bit numbers.
#[derive(Clone, Copy)]
pub(crate) struct Four {
    pub(crate) low: uint32x4_t,
    pub(crate) high: uint32x4_t,
}

impl Four {
    #[target_feature(enable = "neon")]
    #[inline]
    pub(crate) fn zero() -> Four {
        Four {
            low: vdupq_n_u32(0),
            high: vdupq_n_u32(0),
        }
    }

    #[target_feature(enable = "neon")]
    #[inline]
    pub(crate) fn load(numbers: &[u64; 4]) -> Four {
        // SAFETY: four numbers are read, as eight halves.
        let halves = unsafe { vld2q_u32(numbers.as_ptr().cast()) };
        Four {
            low: halves.0,
            high: halves.1,
        }
    }

    #[target_feature(enable = "neon")]
    #[inline]
    pub(crate) fn store(self, numbers: &mut [u64; 4]) {
        let halves = uint32x4x2_t(self.low, self.high);
        // SAFETY: four numbers are written, as eight halves.
        unsafe { vst2q_u32(numbers.as_mut_ptr().cast(), halves) };
    }

    /// Returns the numbers `^ key`.
    #[target_feature(enable = "neon")]
    #[inline]
    pub(crate) fn exclusive_or(self, key: u64) -> Four {
        Four {
            low: veorq_u32(self.low, vdupq_n_u32(key as u32)),
            high: veorq_u32(self.high, vdupq_n_u32((key >> 32) as u32)),
        }
    }

    /// Returns `x ^ (x >> 33)` for each number `x`.
    #[target_feature(enable = "neon")]
    #[inline]
    pub(crate) fn fold(self) -> Four {
        Four {
            low: veorq_u32(self.low, vshrq_n_u32::<1>(self.high)),
            high: self.high,
        }
    }

    /// Returns the low 64 bits of the products with a constant.
    #[target_feature(enable = "neon")]
    #[inline]
    pub(crate) fn multiply(self, constant: u64) -> Four {
        let (low, high) = (constant as u32, (constant >> 32) as u32);
        let cross = vmlaq_n_u32(vmulq_n_u32(self.high, low), self.low, high);
        let first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(self.low), low));
        let second = vreinterpretq_u32_u64(vmull_high_n_u32(self.low, low));
        Four {
            low: vuzp1q_u32(first, second),
            high: vaddq_u32(vuzp2q_u32(first, second), cross),
        }
    }
}
