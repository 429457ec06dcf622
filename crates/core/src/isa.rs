//! Which instruction set do the kernels use?
//!
//! The choice is made at run time and never changes a result: every kernel has a plain path that is
//! the oracle of the vector ones.

/// An instruction set that kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// Portable Rust.
    Plain,
    /// AVX2, BMI1, BMI2, POPCNT.
    Avx2,
    /// AVX-512 F, BW, VL, DQ, CD, VBMI, VBMI2, VPOPCNTDQ, BITALG (Ice Lake, Zen 4 and later), and all of AVX2.
    Avx512,
}

impl Isa {
    /// Every instruction set this processor has, the plainest first.
    pub fn available() -> Vec<Isa> {
        [Isa::Plain, Isa::Avx2, Isa::Avx512]
            .into_iter()
            .filter(|isa| isa.is_available())
            .collect()
    }

    /// The widest instruction set this processor has.
    pub fn best() -> Isa {
        if Isa::Avx512.is_available() {
            Isa::Avx512
        } else if Isa::Avx2.is_available() {
            Isa::Avx2
        } else {
            Isa::Plain
        }
    }

    /// Whether this processor has the instruction set.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        match self {
            Isa::Plain => true,
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
            }
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512cd")
                    && is_x86_feature_detected!("avx512vbmi")
                    && is_x86_feature_detected!("avx512vbmi2")
                    && is_x86_feature_detected!("avx512vpopcntdq")
                    && is_x86_feature_detected!("avx512bitalg")
            }
        }
    }

    /// Whether this processor has the instruction set.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_available(self) -> bool {
        self == Isa::Plain
    }

    /// Name as tests and benchmarks write it.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Plain => "plain",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// The available instruction set of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Isa> {
        [Isa::Plain, Isa::Avx2, Isa::Avx512]
            .into_iter()
            .find(|isa| isa.name() == name && isa.is_available())
    }
}
