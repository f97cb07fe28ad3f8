//! Places for arrays, and numbers for their elements.
#![allow(dead_code, reason = "each test program uses some of the helpers")]

use anabranch::{
    Runtime,
    device::{Device, Simulated},
};
use anabranch_array::{Arrays, Numeric};
use proptest::prelude::*;
use std::{
    io::Write as _,
    sync::{Arc, LazyLock},
};

pub const THREADS: [usize; 5] = [1, 2, 3, 4, 8];

pub fn host(threads: usize) -> Arrays {
    Arrays::new(&Runtime::builder().threads(threads).build().unwrap()).on_host()
}

/// Arrays on the host, with each number of threads.
pub fn hosts() -> &'static [Arrays] {
    static HOSTS: LazyLock<Vec<Arrays>> = LazyLock::new(|| THREADS.map(host).to_vec());
    &HOSTS
}

/// A device that computes on the processor.
pub fn simulated() -> Arc<dyn Device> {
    Arc::new(Simulated::new())
}

/// A GPU; or a driver that computes on the processor, where there is no GPU. Where there is neither, its part
/// of the tests is skipped.
pub fn gpu() -> Option<Arc<dyn Device>> {
    static GPU: LazyLock<Option<Arc<dyn Device>>> = LazyLock::new(|| {
        let any = || anabranch_gpu::adapters().first().map(|adapter| adapter.info.name.clone());
        let opened = anabranch_gpu::open(None);
        match opened.or_else(|error| anabranch_gpu::open(Some(&any().ok_or(error)?))) {
            Ok(gpu) => Some(gpu),
            Err(error) => {
                // Not `println!`, which the test harness captures.
                let mut out = std::io::stderr();
                let _ = writeln!(out, "skipped: tests on a GPU (need the package mesa-vulkan-drivers)");
                let _ = writeln!(out, "{error}");
                None
            }
        }
    });
    GPU.clone()
}

/// Arrays on a simulated device, and on a GPU if there is one.
pub fn devices() -> &'static [Arrays] {
    static DEVICES: LazyLock<Vec<Arrays>> = LazyLock::new(|| {
        let devices = [Some(simulated()), gpu()];
        devices.into_iter().flatten().map(|device| hosts()[1].on(&device)).collect()
    });
    &DEVICES
}

/// All places.
pub fn places() -> impl Iterator<Item = &'static Arrays> {
    hosts().iter().chain(devices())
}

/// A number that tests draw: also infinities, zeros with both signs and NaN.
pub trait Drawn: Numeric {
    fn drawn(number: u64) -> Self;
    /// The bits, to be compared. Those of NaN do not count.
    fn bits(self) -> u64;
}

macro_rules! floats {
    ($($number:ident)*) => {$(
        impl Drawn for $number {
            fn drawn(number: u64) -> Self {
                match number % 16 {
                    0 => 0.0,
                    1 => -0.0,
                    2 => $number::INFINITY,
                    3 => $number::NEG_INFINITY,
                    4 => $number::NAN,
                    _ => (mixed(number) % 4001) as $number / 16.0 - 125.0,
                }
            }

            fn bits(self) -> u64 {
                if self.is_nan() { u64::MAX } else { u64::from(self.to_bits()) }
            }
        }
    )*};
}

floats!(f32 f64);

macro_rules! integers {
    ($($number:ident)*) => {$(
        impl Drawn for $number {
            fn drawn(number: u64) -> Self {
                match number % 8 {
                    0 => $number::MIN,
                    1 => $number::MAX,
                    2 => 0,
                    3 => (mixed(number) % 5) as $number,
                    _ => mixed(number) as $number,
                }
            }

            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}

integers!(i32 u32 i64 u64);

fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number ^ number >> 29
}

/// Elements that follow from a seed.
pub fn elements<T: Drawn>(seed: u64, len: usize) -> Vec<T> {
    (0..len as u64).map(|at| T::drawn(mixed(seed ^ at << 20))).collect()
}

/// Small whole numbers, whose sums are exact in any order, and up to three special ones among them:
/// infinities, zeros and NaN.
pub fn exact<T: Drawn + From<i8>>(seed: u64, len: usize) -> Vec<T> {
    with_specials(seed, (0..len as u64).map(|at| T::from((mixed(seed ^ at) % 33) as i8 - 16)).collect())
}

/// Ones with both signs, whose products are exact in any order, and special numbers as in [`exact`].
pub fn signs<T: Drawn + From<i8>>(seed: u64, len: usize) -> Vec<T> {
    with_specials(seed, (0..len as u64).map(|at| T::from(2 * (mixed(seed ^ at) % 2) as i8 - 1)).collect())
}

fn with_specials<T: Drawn>(seed: u64, mut numbers: Vec<T>) -> Vec<T> {
    for special in 0..seed % 4 {
        let (at, which) = (mixed(seed + 17 * special), mixed(seed + 31 * special) % 5);
        if let Some(place) = at.checked_rem(numbers.len() as u64) {
            // See `drawn`: the zeros come first, which are special for products.
            numbers[place as usize] = T::drawn(which);
        }
    }
    numbers
}

pub fn bits<T: Drawn>(elements: &[T]) -> Vec<u64> {
    elements.iter().map(|element| element.bits()).collect()
}

/// Shapes of few elements, also without any.
pub fn shape<const D: usize>() -> impl Strategy<Value = [usize; D]> {
    let most: usize = [1, 300, 40, 11, 7][D];
    prop_oneof![
        8 => proptest::array::uniform(1..=most),
        1 => proptest::array::uniform(0..=2_usize),
    ]
}

/// The coordinates of all elements, in row-major order.
pub fn points<const D: usize>(shape: [usize; D]) -> Vec<[usize; D]> {
    (0..shape.iter().product()).map(|number| coordinates(shape, number)).collect()
}

pub fn coordinates<const D: usize>(shape: [usize; D], mut number: usize) -> [usize; D] {
    let mut point = [0; D];
    for axis in (0..D).rev() {
        point[axis] = number % shape[axis];
        number /= shape[axis];
    }
    point
}

pub fn number<const D: usize>(shape: [usize; D], point: [usize; D]) -> usize {
    (0..D).fold(0, |number, axis| number * shape[axis] + point[axis])
}
