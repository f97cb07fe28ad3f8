//! The search for values that are not finite.

/// Values in a step of the search: several vectors of every instruction set.
const STEP: usize = 64;

/// Whether all values are finite. `vectorize` runs it.
#[cfg(target_arch = "x86_64")]
pub(super) struct AllFinite<'a>(pub &'a [f32]);

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for AllFinite<'_> {
    type Output = bool;

    #[inline(always)]
    fn call(self) -> bool {
        all_finite(self.0)
    }
}

/// Whether all values are finite. Has no branch inside, so that it becomes vector instructions.
#[inline(always)]
pub(super) fn all_finite(values: &[f32]) -> bool {
    // A value that is not finite has an exponent of ones alone: one more in its place carries into the sign.
    let carry = |value: f32| (value.to_bits() & 0x7fff_ffff).wrapping_add(0x0080_0000);
    let (steps, rest) = values.as_chunks::<STEP>();
    let mut carries = [0; STEP];
    for step in steps {
        for (all, &value) in carries.iter_mut().zip(step) {
            *all |= carry(value);
        }
    }
    let all =
        carries.into_iter().chain(rest.iter().map(|&value| carry(value))).fold(0, |all, bits| all | bits);
    all >> 31 == 0
}

#[cfg(test)]
mod tests {
    use crate::{
        kernel::{Simd, Stepper},
        model::{Edges, Params},
    };

    #[test]
    fn every_instruction_set_finds_the_first_value_that_is_not_finite() {
        for simd in Simd::available() {
            let stepper = Stepper::new(simd, Params::default(), Edges::Absorbing, [1, 1]);
            for len in [0, 1, 63, 64, 65, 200] {
                let mut values = vec![f32::MAX; len];
                values.iter_mut().step_by(2).for_each(|value| *value = -1e-42);
                assert_eq!(stepper.first_non_finite(&values), None, "{simd} {len}");
                for at in 0..len {
                    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                        let mut values = values.clone();
                        values[at..].fill(bad);
                        assert_eq!(stepper.first_non_finite(&values), Some(at), "{simd} {len} {bad}");
                        values[at + 1..].fill(0.0);
                        assert_eq!(stepper.first_non_finite(&values), Some(at), "{simd} {len} {bad}");
                    }
                }
            }
        }
    }
}
