//! How is the directory of a table shaped?

pub(crate) const LINE_WORDS: usize = 8;
/// Number of buckets and entries that fit in a line: 512 bits without the number, the first 1 and the escape bit.
pub(crate) const LINE_CAPACITY: usize = 478;
/// Maximum number of bits of a prefix.
pub(super) const MAX_PREFIX_BITS: u32 = 36;
/// Maximum number of prefix bits for which plain starts stay in the caches.
const FEW_PREFIX_BITS: u32 = 16;
/// Number of starts per cache line, as a power of two.
const STARTS_SHIFT: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub prefix_bits: u32,
    /// A line holds `2^line_shift` buckets.
    pub line_shift: u32,
    /// Whether lines are unary; otherwise the directory holds plain starts.
    pub is_unary: bool,
}

impl Shape {
    /// Chooses the shape with the fewest bytes for `num_entries` entries whose prefix stays within the key, so that a
    /// bucket holds every value of its rest; a nonempty bucket costs a fraction of a byte, for its cache miss.
    pub(crate) fn choose(num_entries: usize, key_width: u32, top_bits: u32) -> Self {
        let most = key_width.min(top_bits - 1).min(MAX_PREFIX_BITS);
        let n = num_entries.max(1) as f64;
        let full = (num_entries.max(1).ilog2() + 2).min(most);
        if full <= FEW_PREFIX_BITS || n / (1_u64 << full) as f64 > 3.0 {
            // Starts take less than a number per entry.
            let prefix_bits = full.min(num_entries.max(2).ilog2());
            return Shape {
                prefix_bits,
                line_shift: STARTS_SHIFT.min(prefix_bits),
                is_unary: false,
            };
        }
        let mut best = (f64::INFINITY, 0, 0);
        for prefix_bits in full.saturating_sub(4)..=full {
            let load = n / (1_u64 << prefix_bits) as f64;
            for line_shift in (0..=8).rev() {
                let buckets = f64::from(1 << line_shift);
                // Lines should rarely overflow: the number of entries of a line has a Poisson distribution.
                let likely = buckets * (1.0 + load) + 2.3 * (buckets * load).sqrt();
                if likely > LINE_CAPACITY as f64 {
                    continue;
                }
                let bytes = f64::from(top_bits - prefix_bits) / 8.0 + 64.0 / (buckets * load);
                let occupied = 1.0 - libm::exp(-load);
                let cost = bytes + 0.3 * occupied;
                if cost < best.0 {
                    best = (cost, prefix_bits, line_shift);
                }
                break;
            }
        }
        Shape {
            prefix_bits: best.1,
            line_shift: best.2,
            is_unary: true,
        }
    }

    /// Whether a table with these numbers of key bits and first-word bits may have this shape.
    pub(crate) fn is_sound(&self, key_width: u32, top_bits: u32) -> bool {
        let most = key_width.min(top_bits - 1).min(MAX_PREFIX_BITS);
        (1..=most).contains(&self.prefix_bits) && self.line_shift <= self.prefix_bits.min(8)
    }

    /// Number of lines; plain starts count as one line for as many as fit in one.
    pub(crate) fn num_lines(&self) -> usize {
        1 << (self.prefix_bits - self.line_shift)
    }

    /// Size of the directory in bytes, without the ends of escaped lines.
    pub(super) fn num_bytes(&self) -> f64 {
        match self.is_unary {
            true => 64.0 * self.num_lines() as f64,
            false => 4.0 * ((1_usize << self.prefix_bits) + 1) as f64,
        }
    }

    /// Number of words of the directory without the ends of escaped lines.
    pub(crate) fn num_words(&self) -> usize {
        match self.is_unary {
            true => self.num_lines() * LINE_WORDS,
            // Includes an additional start: the end of the last bucket.
            false => ((1_usize << self.prefix_bits) + 1).div_ceil(2),
        }
    }
}

/// Number of stored bits of a first word of `top_bits` bits after a prefix of `prefix_bits` bits.
pub(crate) fn residual_bits(top_bits: u32, prefix_bits: u32) -> u32 {
    match top_bits - prefix_bits {
        // Together with the preceding bits of its first byte, a wider number would not fit in eight bytes.
        58.. => 64,
        bits => bits,
    }
}
