//! The vector instructions of the processor, and whether chains are machine code.

/// A set of vector instructions, and how chains of sums, differences and products of floats use it. All give
/// the same bits, except those of NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instructions {
    /// AVX-512, and chains as machine code that is made for the program. If the system does not allow a
    /// process to make code, this is [`Avx512`](Self::Avx512).
    CompiledAvx512,
    /// AVX2, and chains as machine code. If the system does not allow that, this is [`Avx2`](Self::Avx2).
    CompiledAvx2,
    /// AVX-512 (F, BW, CD, DQ, VL), and a loop over the links of chains.
    Avx512,
    /// AVX2, and a loop over the links of chains.
    Avx2,
    /// What every processor of the target has, and a loop over the links of chains.
    Portable,
}

/// Whether chains can be machine code on this target. Sanitizers do not see what machine code does, so their
/// tests are compiled with `anabranch_without_machine_code`.
#[cfg(target_arch = "x86_64")]
const COMPILES: bool = cfg!(all(unix, target_pointer_width = "64", not(anabranch_without_machine_code)));

impl Instructions {
    /// All sets, the fastest first.
    pub const ALL: [Self; 5] =
        [Self::CompiledAvx512, Self::Avx512, Self::CompiledAvx2, Self::Avx2, Self::Portable];

    /// The fastest set that this processor has.
    pub fn detect() -> Self {
        let found = Self::ALL.into_iter().find(|set| set.is_available());
        found.unwrap_or(Self::Portable)
    }

    /// Whether this processor has the set.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::CompiledAvx512 => COMPILES && Self::Avx512.is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => pulp::x86::V4::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::CompiledAvx2 => COMPILES && Self::Avx2.is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => pulp::x86::V3::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::CompiledAvx512 | Self::Avx512 | Self::CompiledAvx2 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }
}

/// A set of instructions, with the proof that this processor has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    #[cfg(target_arch = "x86_64")]
    Avx512(pulp::x86::V4),
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
    Portable,
}

impl Token {
    /// The token of a set, or of the portable one where the processor lacks it.
    pub(super) fn new(set: Instructions) -> Self {
        let token = match set {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512 | Instructions::CompiledAvx512 => pulp::x86::V4::try_new().map(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 | Instructions::CompiledAvx2 => pulp::x86::V3::try_new().map(Self::Avx2),
            _ => None,
        };
        token.unwrap_or(Self::Portable)
    }

    /// Calls a function, which is inlined into one with these instructions.
    #[inline(always)]
    pub(super) fn run<F: pulp::NullaryFnOnce>(self, function: F) -> F::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.vectorize(function),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.vectorize(function),
            Self::Portable => function.call(),
        }
    }

    /// The same, for a function that has a version for each set.
    #[inline(always)]
    pub(super) fn run_simd<F: pulp::WithSimd>(self, function: F) -> F::Output {
        use pulp::Simd;
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => Simd::vectorize(simd, function),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => Simd::vectorize(simd, function),
            Self::Portable => pulp::Scalar128b.vectorize(function),
        }
    }
}
