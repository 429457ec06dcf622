//! What is the simplified form of a Chinese character?
//!
//! The form of OpenCC (configuration t2s) from the ferrous-opencc crate, applied character by character until nothing
//! changes. Characters whose form depends on their neighbors keep the form that they have alone.

use std::sync::OnceLock;

use ferrous_opencc::OpenCC;
use ferrous_opencc::config::BuiltinConfig;

/// The library with the tables, and its version.
pub const SIMPLIFIED_LIBRARY: &str = "ferrous-opencc 0.4.0";

/// Scalars below this one have no other simplified form.
pub(super) const FIRST: u32 = 0x2E80;
const END: u32 = 0x3_3480;

/// Returns the simplified form of a scalar, or the scalar itself; the first call builds the table in about 20 ms.
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
        // Chains have length two; a cycle would end here too.
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
