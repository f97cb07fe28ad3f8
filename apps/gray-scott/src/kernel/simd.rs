//! The instruction sets that the kernel is built for.

#[cfg(target_arch = "x86_64")]
use super::{finite::AllFinite, x86::Fused};
use super::{finite::all_finite, lanes::Arrays, rows::Rows, sweep::Sweep};
use std::{fmt, str::FromStr};

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Simd {
    /// AVX-512 (F, BW, CD, DQ, VL): 16 cells at once, products and sums fused.
    Avx512,
    /// AVX2 and FMA: 8 cells at once, products and sums fused. Gives the same bits as
    /// [`Avx512`](Simd::Avx512).
    Avx2,
    /// The instructions that every processor of the target has. Products and sums are rounded separately.
    Portable,
}

impl Simd {
    /// All instruction sets, the fastest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// The fastest instruction set of this processor.
    pub fn detect() -> Self {
        Self::available()[0]
    }

    /// The instruction sets of this processor, the fastest first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|simd| simd.is_available()).collect()
    }

    /// Whether this processor has the instruction set.
    pub fn is_available(self) -> bool {
        Token::new(self).is_some()
    }

    /// The name that [`FromStr`] reads.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name of no instruction set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown instruction set '{name}': use avx512, avx2 or portable")]
pub struct ParseSimdError {
    /// The unknown name.
    pub name: String,
}

impl FromStr for Simd {
    type Err = ParseSimdError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|simd| simd.name() == name);
        found.ok_or_else(|| ParseSimdError { name: name.to_owned() })
    }
}

/// An instruction set, with the proof that this processor has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    #[cfg(target_arch = "x86_64")]
    Avx512(pulp::x86::V4),
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
    Portable,
}

impl Token {
    pub fn new(simd: Simd) -> Option<Self> {
        match simd {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512 => pulp::x86::V4::try_new().map(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 => pulp::x86::V3::try_new().map(Self::Avx2),
            Simd::Portable => Some(Self::Portable),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        }
    }

    /// Runs a sweep in functions that have the instruction set enabled.
    pub fn run<R: Rows<IN, OUT>, const IN: usize, const OUT: usize>(self, mut sweep: Sweep<'_, R, IN, OUT>) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.vectorize(Fused::<_, _, 16, IN, OUT> { simd, sweep: &mut sweep }),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.vectorize(Fused::<_, _, 8, IN, OUT> { simd, sweep: &mut sweep }),
            Self::Portable if sweep.width() < 4 => sweep.run::<1>(Arrays::<false>),
            Self::Portable => sweep.run::<4>(Arrays::<false>),
        }
    }

    /// Whether all values are finite, by functions that have the instruction set enabled.
    pub fn all_finite(self, values: &[f32]) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.vectorize(AllFinite(values)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.vectorize(AllFinite(values)),
            Self::Portable => all_finite(values),
        }
    }

    pub fn simd(self) -> Simd {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => Simd::Avx512,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Simd::Avx2,
            Self::Portable => Simd::Portable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detected_set_is_the_first_available_one_and_portable_the_last() {
        let available = Simd::available();
        assert_eq!(available.first(), Some(&Simd::detect()));
        assert_eq!(available.last(), Some(&Simd::Portable));
    }

    #[test]
    fn every_set_reads_its_own_name() {
        for simd in Simd::ALL {
            assert_eq!(simd.to_string().parse(), Ok(simd));
        }
        let error = "mmx".parse::<Simd>().unwrap_err().to_string();
        assert_eq!(error, "unknown instruction set 'mmx': use avx512, avx2 or portable");
    }
}
