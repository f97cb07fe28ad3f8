//! Vectors of `N` neighbouring cells, as the stencil needs them.

/// The operations of the stencil on vectors of `N` cells. `self` is the instruction set that executes them.
///
/// All methods must be inlined into a function that has the instruction set enabled.
pub(super) trait Lanes<const N: usize>: Copy {
    /// A vector.
    type V: Copy;

    fn splat(self, value: f32) -> Self::V;
    fn load(self, from: &[f32; N]) -> Self::V;
    fn store(self, to: &mut [f32; N], value: Self::V);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a b + c`
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `c - a b`
    fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The right neighbours of the cells of `a`, and the left neighbours of the cells of `b`, where `b`
    /// follows `a` in a row.
    fn neighbours(self, a: Self::V, b: Self::V) -> (Self::V, Self::V);
}

/// Plain arrays. A product and a sum are fused (rounded once) or not.
///
/// `FUSED` is for hardware that fuses: elsewhere each fused operation would be a library call.
#[derive(Clone, Copy)]
pub(super) struct Arrays<const FUSED: bool>;

impl<const FUSED: bool, const N: usize> Lanes<N> for Arrays<FUSED> {
    type V = [f32; N];

    #[inline(always)]
    fn splat(self, value: f32) -> [f32; N] {
        [value; N]
    }

    #[inline(always)]
    fn load(self, from: &[f32; N]) -> [f32; N] {
        *from
    }

    #[inline(always)]
    fn store(self, to: &mut [f32; N], value: [f32; N]) {
        *to = value;
    }

    #[inline(always)]
    fn add(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn mul(self, a: [f32; N], b: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn mul_add(self, a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| if FUSED { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] })
    }

    #[inline(always)]
    fn neg_mul_add(self, a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
        std::array::from_fn(|i| if FUSED { (-a[i]).mul_add(b[i], c[i]) } else { c[i] - a[i] * b[i] })
    }

    #[inline(always)]
    fn neighbours(self, a: [f32; N], b: [f32; N]) -> ([f32; N], [f32; N]) {
        let right = std::array::from_fn(|i| if i + 1 < N { a[i + 1] } else { b[0] });
        let left = std::array::from_fn(|i| if i > 0 { b[i - 1] } else { a[N - 1] });
        (right, left)
    }
}
