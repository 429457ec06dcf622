//! Which instruction set do the kernels use?
//!
//! The choice is made at run time and never changes a result: every kernel has a plain path that serves as the oracle
//! of the vector ones.
//!
//! Callers pass it as the argument `isa`; tests force each one.

/// An instruction set that has kernels; made only here, after checking the processor, so that its holder may run them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    Plain,
    /// AVX2, BMI1, BMI2, POPCNT.
    Avx2(Detected),
    /// AVX-512 F, BW, VL, DQ, CD, VBMI, VBMI2, VPOPCNTDQ, BITALG (Ice Lake, Zen 4 and later), and all of AVX2.
    Avx512(Detected),
    /// NEON, which every 64-bit ARM processor has: texts and Bloom filters have kernels for it.
    Neon(Detected),
}

/// Proof that the processor has the instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Detected(());

impl Isa {
    /// Returns the instruction sets of this processor, the plainest first.
    pub fn available() -> Vec<Isa> {
        [Some(Isa::Plain), Isa::avx2(), Isa::avx512(), Isa::neon()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns the widest instruction set of this processor.
    pub fn best() -> Isa {
        let widest = Isa::avx512().or_else(Isa::avx2).or_else(Isa::neon);
        widest.unwrap_or(Isa::Plain)
    }

    pub fn avx2() -> Option<Isa> {
        #[cfg(target_arch = "x86_64")]
        let has_all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        #[cfg(not(target_arch = "x86_64"))]
        let has_all = false;
        has_all.then_some(Isa::Avx2(Detected(())))
    }

    pub fn avx512() -> Option<Isa> {
        #[cfg(target_arch = "x86_64")]
        let has_all = Isa::avx2().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("avx512bitalg");
        #[cfg(not(target_arch = "x86_64"))]
        let has_all = false;
        has_all.then_some(Isa::Avx512(Detected(())))
    }

    pub fn neon() -> Option<Isa> {
        #[cfg(target_arch = "aarch64")]
        let has_all = std::arch::is_aarch64_feature_detected!("neon");
        #[cfg(not(target_arch = "aarch64"))]
        let has_all = false;
        has_all.then_some(Isa::Neon(Detected(())))
    }

    pub fn name(self) -> &'static str {
        match self {
            Isa::Plain => "plain",
            Isa::Avx2(_) => "avx2",
            Isa::Avx512(_) => "avx512",
            Isa::Neon(_) => "neon",
        }
    }

    /// Returns the available instruction set with this name, or `None`.
    pub fn from_name(name: &str) -> Option<Isa> {
        Isa::available().into_iter().find(|isa| isa.name() == name)
    }
}

/// Compiles an `#[inline(always)]` body for each instruction set of x86-64, and calls that of `isa`.
macro_rules! compiled {
    ($isa:expr, $body:path, ($($argument:ident: $type:ty),*) $(-> $out:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn avx2($($argument: $type),*) $(-> $out)? {
            $body($($argument),*)
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,bmi1,bmi2,popcnt")]
        fn avx512($($argument: $type),*) $(-> $out)? {
            $body($($argument),*)
        }
        match $isa {
            // SAFETY: an `Isa` of this kind is created only if the processor has it.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Isa::Avx2(_) => unsafe { avx2($($argument),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Isa::Avx512(_) => unsafe { avx512($($argument),*) },
            _ => $body($($argument),*),
        }
    }};
}
pub(crate) use compiled;

/// ```compile_fail
/// use likewise_core::isa::{Detected, Isa};
/// let unasked = Isa::Avx512(Detected(()));
/// ```
#[cfg(doctest)]
struct NobodyElseMakesOne;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_goes_by_its_name_and_the_widest_is_best() {
        let available = Isa::available();
        assert_eq!(available.first(), Some(&Isa::Plain));
        assert!(available.is_sorted());
        assert_eq!(available.last(), Some(&Isa::best()));
        for isa in &available {
            assert_eq!(Isa::from_name(isa.name()), Some(*isa));
        }
        for name in ["avx2", "avx512", "neon"] {
            let is_listed = available.iter().any(|isa| isa.name() == name);
            assert_eq!(Isa::from_name(name).is_some(), is_listed, "{name}");
        }
        assert_eq!(Isa::from_name("AVX2"), None);
    }
}
