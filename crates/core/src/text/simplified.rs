//! What is the simplified form of a Chinese character?
//!
//! That of OpenCC (configuration t2s), taken character by character, from the ferrous-opencc crate, until nothing changes
//! more. What depends on its neighbors keeps the form it has alone.

use std::sync::OnceLock;

use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;

/// The library whose tables decide, and its version.
pub const SIMPLIFIED_LIBRARY: &str = "ferrous-opencc 0.4.0";

/// No scalar below has another simplified form.
pub(super) const FIRST: u32 = 0x2E80;
const END: u32 = 0x3_3480;

/// The simplified form of a scalar, itself where it has none. The table is made by the first call, in some 20 ms.
pub(super) fn simplified(c: u32) -> u32 {
    static TABLE: OnceLock<Vec<u32>> = OnceLock::new();
    let table = TABLE.get_or_init(table);
    let place = c.wrapping_sub(FIRST) as usize;
    table.get(place).copied().unwrap_or(c)
}

fn table() -> Vec<u32> {
    let Ok(converter) = OpenCC::from_config(BuiltinConfig::T2s) else {
        unreachable!("the tables are part of the library");
    };
    let once = |c: char| {
        let mut converted = converter
            .convert(c.encode_utf8(&mut [0; 4]))
            .chars()
            .collect::<Vec<_>>();
        match (converted.pop(), converted.is_empty()) {
            (Some(simple), true) => simple,
            _ => c,
        }
    };
    let lasting = |c: char| {
        // Chains are two long; a ring would end here too.
        let mut now = c;
        for _ in 0..4 {
            now = once(now);
        }
        now
    };
    (FIRST..END)
        .map(|point| char::from_u32(point).map_or(point, |c| u32::from(lasting(c))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let of = |c: char| char::from_u32(simplified(u32::from(c)));
        for (traditional, simple) in [
            ('\u{5ABD}', '\u{5988}'),
            ('\u{7F85}', '\u{7F57}'),
            ('\u{98EF}', '\u{996D}'),
            ('\u{4F60}', '\u{4F60}'),
            ('a', 'a'),
        ] {
            assert_eq!(of(traditional), Some(simple));
        }
        let num_changed = (FIRST..END).filter(|&c| simplified(c) != c).count();
        assert!((3_500..5_000).contains(&num_changed), "{num_changed}");
        assert!((FIRST..END).all(|c| simplified(simplified(c)) == simplified(c)));
    }
}
