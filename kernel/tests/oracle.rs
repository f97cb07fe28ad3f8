//! Random kernels, against a plain evaluation point by point. All bits must agree, on all instruction sets.

mod array;
mod grids;
mod plain;

use grids::{case, check};
use proptest::prelude::*;
use testing::deadline;

macro_rules! oracles {
    ($($name:ident $number:ident),*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(case in case::<$number>()) {
                    let _deadline = deadline();
                    check(&case)?;
                }
            )*
        }
    };
}

oracles!(
    kernels_of_f32_agree f32,
    kernels_of_f64_agree f64,
    kernels_of_i32_agree i32,
    kernels_of_u32_agree u32,
    kernels_of_i64_agree i64,
    kernels_of_u64_agree u64
);
