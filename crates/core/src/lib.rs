//! The algorithms of Likewise, from text to groups.
//!
//! Data flows one way: text `normalize` -> features `shingle` -> sketch -> candidates (`bands`, `bloom`, `sets`;
//! `likewise-hamming`) -> verify -> groups. A module uses only modules that precede it in this list. Nothing here
//! depends on Python, files, environment variables, clocks or printing: slices go in, arrays come out.
//! `docs/developers/definitions.md` contains every definition that decides a result.
//!
//! Integers decide: weights are integers, sums are exact, and a match is one comparison of one IEEE division.
//! Logarithms, arc cosines and powers, which only choose bands and radii, come from the pure-Rust `libm`.
//!
//! Functions that return a `Result` fail with `Error::InvalidParameter` if shapes, ranges or positions do not fit, and
//! with `Error::Canceled` once `cancel` is set. Their documentation names only other causes.

// Items used only by vector kernels are unused on other architectures.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_variables))]

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("Likewise supports 64-bit little-endian targets only.");

/// `named!(Unit { Line: "line" })` gives an enumeration the list of its variants, their names, and the way back.
macro_rules! named {
    ($kind:ident { $($variant:ident: $name:literal),+ $(,)? }) => {
        impl $kind {
            pub const ALL: [$kind; [$($name),+].len()] = [$($kind::$variant),+];

            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name),+
                }
            }

            pub fn from_name(name: &str) -> Option<$kind> {
                $kind::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

pub mod error;
pub mod hash;
pub mod isa;
pub mod parallel;
pub mod prefetch;
pub mod search;
mod sort;
mod token_hash;

pub mod bands;
pub mod bloom;
pub mod features;
pub mod groups;
pub mod items;
pub mod repeats;
pub mod sets;
pub mod sketch;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod verify;
