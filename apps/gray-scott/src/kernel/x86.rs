//! Vectors of AVX-512 and AVX2, through the safe wrappers that a token of detected features gives.

use super::{
    lanes::{Arrays, Lanes},
    rows::Rows,
    sweep::Sweep,
};
use pulp::{
    bytemuck::cast,
    x86::{V3, V4},
};
use std::{
    arch::x86_64::{__m256, __m512},
    hint::black_box,
    mem::MaybeUninit,
};

/// A sweep in vectors of `N` cells, or of single cells where the grid is narrower. `vectorize` runs it.
pub(super) struct Fused<'s, 'a, L: Lanes<N>, R, const N: usize, const IN: usize, const OUT: usize> {
    pub simd: L,
    pub sweep: &'s mut Sweep<'a, R, IN, OUT>,
}

impl<L: Lanes<N>, R: Rows<IN, OUT>, const N: usize, const IN: usize, const OUT: usize> pulp::NullaryFnOnce
    for Fused<'_, '_, L, R, N, IN, OUT>
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        align_frame();
        if self.sweep.width() < N {
            self.sweep.run::<1>(Arrays::<true>);
        } else {
            self.sweep.run::<N>(self.simd);
        }
    }
}

/// Aligns the frame of the function that this is inlined into to a cache line.
///
/// Vectors that do not fit into the registers stay in the frame. Without a value that must be aligned the
/// compiler aligns a frame to 16 bytes only. A vector that lies across two pages then makes a sweep up to
/// three times as slow, depending on how deep the stack is.
#[inline(always)]
fn align_frame() {
    #[repr(align(64))]
    struct Line {
        _bytes: [u8; 64],
    }
    black_box(&MaybeUninit::<Line>::uninit());
}

impl Lanes<16> for V4 {
    type V = __m512;

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        self.avx512f._mm512_set1_ps(value)
    }

    #[inline(always)]
    fn load(self, from: &[f32; 16]) -> __m512 {
        cast(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; 16], value: __m512) {
        *to = cast(value);
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        self.avx512f._mm512_add_ps(a, b)
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        self.avx512f._mm512_mul_ps(a, b)
    }

    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        self.avx512f._mm512_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        self.avx512f._mm512_fnmadd_ps(a, b, c)
    }

    #[inline(always)]
    fn neighbours(self, a: __m512, b: __m512) -> (__m512, __m512) {
        let right = self.avx512f._mm512_alignr_epi32::<1>(cast(b), cast(a));
        let left = self.avx512f._mm512_alignr_epi32::<15>(cast(b), cast(a));
        (cast(right), cast(left))
    }
}

impl Lanes<8> for V3 {
    type V = __m256;

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        self.avx._mm256_set1_ps(value)
    }

    #[inline(always)]
    fn load(self, from: &[f32; 8]) -> __m256 {
        cast(*from)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; 8], value: __m256) {
        *to = cast(value);
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        self.avx._mm256_add_ps(a, b)
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        self.avx._mm256_mul_ps(a, b)
    }

    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        self.fma._mm256_fmadd_ps(a, b, c)
    }

    #[inline(always)]
    fn neg_mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        self.fma._mm256_fnmadd_ps(a, b, c)
    }

    #[inline(always)]
    fn neighbours(self, a: __m256, b: __m256) -> (__m256, __m256) {
        // Byte shifts stay within halves of a vector, so both start from the half in the middle.
        let middle = cast(self.avx._mm256_permute2f128_ps::<0x21>(a, b));
        let right = self.avx2._mm256_alignr_epi8::<4>(middle, cast(a));
        let left = self.avx2._mm256_alignr_epi8::<12>(cast(b), middle);
        (cast(right), cast(left))
    }
}
