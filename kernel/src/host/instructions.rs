//! The vector instructions of the processor.

/// A set of vector instructions. All give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instructions {
    /// AVX-512 (F, BW, CD, DQ, VL).
    Avx512,
    /// AVX2.
    Avx2,
    /// Those that every processor of the target has.
    Portable,
}

impl Instructions {
    /// All sets, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// The fastest set that this processor has.
    pub fn detect() -> Self {
        let found = Self::ALL.into_iter().find(|set| set.is_available());
        found.unwrap_or(Self::Portable)
    }

    /// Whether this processor has the set.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => pulp::x86::V4::is_available(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => pulp::x86::V3::is_available(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }

    /// Calls a function that is inlined into one with these instructions, or with portable ones where the processor lacks them.
    #[inline]
    pub(super) fn run<F: pulp::NullaryFnOnce>(self, function: F) -> F::Output {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Avx512 => {
                if let Some(simd) = pulp::x86::V4::try_new() {
                    return simd.vectorize(function);
                }
            }
            Self::Avx2 => {
                if let Some(simd) = pulp::x86::V3::try_new() {
                    return simd.vectorize(function);
                }
            }
            Self::Portable => {}
        }
        function.call()
    }
}
