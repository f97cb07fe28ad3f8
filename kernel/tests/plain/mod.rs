//! A plain evaluation of the operations, one number at a time, and the steps of random kernels.

use anabranch_kernel::{Mask, Number, Value};
use proptest::prelude::*;

/// What an element is outside the grid.
#[derive(Clone, Copy, Debug)]
pub enum Edge<T> {
    Clamped,
    Periodic,
    Or(T),
}

/// An operation on two numbers, or on the first of them: its place in the list of a type.
pub type Operation = usize;

/// A step of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Step<T> {
    Load { input: usize, offset: [isize; 3], edge: Edge<T> },
    Here { input: usize },
    Literal(T),
    Index(usize),
    Operation(Operation),
    Select(usize),
}

/// A step and the earlier values that it uses.
#[derive(Clone, Copy, Debug)]
pub struct Node<T> {
    pub step: Step<T>,
    pub a: usize,
    pub b: usize,
    pub c: usize,
}

/// A number of the test.
pub trait Plain: Number {
    /// The number of operations.
    const OPERATIONS: usize;

    /// An element of an array: all kinds of numbers, also the largest, zeros and NaN.
    fn draw(seed: u64, at: u64) -> Self;
    fn from_index(at: usize) -> Self;
    fn same_bits(self, other: Self) -> bool;
    fn record<'t>(operation: Operation, a: Value<'t, Self>, b: Value<'t, Self>) -> Value<'t, Self>;
    fn compute(operation: Operation, a: Self, b: Self) -> Self;
}

/// Kernels of up to 40 steps. In half of them most operations are sums, differences and products of the step
/// before and another one, which are chains for floats.
pub fn nodes<T: Plain>() -> impl Strategy<Value = Vec<Node<T>>> {
    let literal = || any::<u64>().prop_map(|seed| T::draw(seed, 0));
    let edge = prop_oneof![Just(Edge::Clamped), Just(Edge::Periodic), literal().prop_map(Edge::Or)];
    let offset = [-2_isize..3, -3_isize..4, -5_isize..6];
    let step = prop_oneof![
        2 => (0..2_usize, offset, edge).prop_map(|(input, offset, edge)| Step::Load { input, offset, edge }),
        1 => (0..2_usize).prop_map(|input| Step::Here { input }),
        1 => literal().prop_map(Step::Literal),
        1 => (0..3_usize).prop_map(Step::Index),
        8 => (0..T::OPERATIONS).prop_map(Step::Operation),
        2 => (0..COMPARISONS).prop_map(Step::Select),
    ];
    let node = (step, any::<[u16; 3]>()).prop_map(|(step, [a, b, c])| Node {
        step,
        a: a.into(),
        b: b.into(),
        c: c.into(),
    });
    let link = (0..3_usize, any::<[u16; 2]>(), any::<bool>());
    let link = link.prop_map(|(operation, [a, b], is_swapped)| Link { operation, a, b, is_swapped });
    let linked = prop::collection::vec(prop::option::weighted(0.8, link), 40);
    let linked = prop_oneof![Just(vec![None; 40]), linked];
    (prop::collection::vec(node, 1..40), linked).prop_map(|(mut nodes, links)| {
        for (at, (node, link)) in nodes.iter_mut().zip(links).enumerate() {
            if let Some(link) = link
                && at > 0
            {
                link.replace(at, node);
            }
        }
        nodes
    })
}

/// A sum, difference or product, mostly of the step before and an earlier one.
#[derive(Clone, Copy, Debug)]
struct Link {
    operation: Operation,
    a: u16,
    b: u16,
    is_swapped: bool,
}

impl Link {
    /// Replaces step `at`, unless it is a load or a literal that links may use.
    fn replace<T>(self, at: usize, node: &mut Node<T>) {
        if !matches!(node.step, Step::Operation(_) | Step::Select(_)) {
            return;
        }
        // The first value is what an operand has. One in eight links begins a chain, and so does a link after
        // a load.
        let before = if self.a.is_multiple_of(8) { self.a.into() } else { at };
        let (a, b) = if self.is_swapped { (self.b.into(), before) } else { (before, self.b.into()) };
        *node = Node { step: Step::Operation(self.operation), a, b, c: 0 };
    }
}

/// The number of comparisons.
pub const COMPARISONS: usize = 9;

pub fn mask<'t, T: Number>(compare: usize, a: Value<'t, T>, b: Value<'t, T>, c: Value<'t, T>) -> Mask<'t> {
    match compare {
        0 => a.lt(b),
        1 => a.le(b),
        2 => a.gt(b),
        3 => a.ge(b),
        4 => a.equals(b),
        5 => a.differs(b),
        6 => a.lt(b) & !a.lt(c),
        7 => a.lt(b) | b.lt(c),
        _ => a.le(b) ^ b.le(c),
    }
}

// Not `a >= c`: if a value is NaN, neither is true.
#[allow(clippy::neg_cmp_op_on_partial_ord)]
pub fn holds<T: PartialOrd>(compare: usize, a: T, b: T, c: T) -> bool {
    match compare {
        0 => a < b,
        1 => a <= b,
        2 => a > b,
        3 => a >= b,
        4 => a == b,
        5 => a != b,
        6 => a < b && !(a < c),
        7 => a < b || b < c,
        _ => (a <= b) != (b <= c),
    }
}

/// A number from a seed and a place.
fn mix(seed: u64, at: u64) -> u64 {
    let mut mixed = (seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x2545_f491_4f6c_dd1d);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A list of operations: how a kernel records each one, and what it is.
macro_rules! operations {
    ($number:ty; |$a:ident, $b:ident| $($record:expr => $compute:expr,)*) => {
        const OPERATIONS: usize = [$(stringify!($record)),*].len();

        fn record<'t>(operation: Operation, $a: Value<'t, Self>, $b: Value<'t, Self>) -> Value<'t, Self> {
            let mut at = 0;
            $(
                if operation == at {
                    return $record;
                }
                at += 1;
            )*
            unreachable!("there are {at} operations")
        }

        fn compute(operation: Operation, $a: $number, $b: $number) -> $number {
            let mut at = 0;
            $(
                if operation == at {
                    return $compute;
                }
                at += 1;
            )*
            unreachable!("there are {at} operations")
        }
    };
}

macro_rules! floats {
    ($($float:ident $other:ident $bits:ident)*) => {
        $(
            impl Plain for $float {
                fn draw(seed: u64, at: u64) -> Self {
                    let drawn = mix(seed, at);
                    match drawn % 16 {
                        0 => 0.0,
                        1 => -0.0,
                        2 => Self::INFINITY,
                        3 => Self::NEG_INFINITY,
                        4 => Self::NAN,
                        5 => Self::MAX,
                        6 => Self::MIN_POSITIVE / 8.0,
                        7 => ((drawn >> 8) % 9) as Self - 4.0,
                        8 => Self::from_bits(drawn as $bits),
                        _ => ((drawn >> 11) as Self / (1_u64 << 50) as Self) - 4.0,
                    }
                }

                fn from_index(at: usize) -> Self {
                    at as Self
                }

                fn same_bits(self, other: Self) -> bool {
                    self.to_bits() == other.to_bits() || (self.is_nan() && other.is_nan())
                }

                operations! {$float; |a, b|
                    a + b => a + b,
                    a - b => a - b,
                    a * b => a * b,
                    a / b => a / b,
                    a % b => a % b,
                    a.min(b) => if a.is_nan() || b < a { b } else { a },
                    a.max(b) => if a.is_nan() || b > a { b } else { a },
                    a.powf(b) => a.powf(b),
                    a.atan2(b) => a.atan2(b),
                    2.5 * a + 1.0 => 2.5 * a + 1.0,
                    1.0 - a / 3.0 => 1.0 - a / 3.0,
                    a * b + a => a * b + a,
                    a - b * a => a - b * a,
                    -a => -a,
                    a.abs() => a.abs(),
                    a.sqrt() => a.sqrt(),
                    a.floor() => a.floor(),
                    a.ceil() => a.ceil(),
                    a.round_ties_even() => a.round_ties_even(),
                    a.trunc() => a.trunc(),
                    a.exp() => a.exp(),
                    a.ln() => a.ln(),
                    a.sin() => a.sin(),
                    a.cos() => a.cos(),
                    a.tan() => a.tan(),
                    a.tanh() => a.tanh(),
                    a.powi(0) => 1.0,
                    a.powi(5) => a * ((a * a) * (a * a)),
                    a.convert::<$other>().convert() => a as $other as $float,
                    a.convert::<i32>().convert() => a as i32 as $float,
                    a.convert::<u32>().convert() => a as u32 as $float,
                    a.convert::<i64>().convert() => a as i64 as $float,
                    a.convert::<u64>().convert() => a as u64 as $float,
                }
            }
        )*
    };
}

floats!(f32 f64 u32 f64 f32 u64);

macro_rules! integers {
    ($($integer:ident: |$x:ident| $abs:expr, $neg:expr, $plain_abs:expr, $plain_neg:expr;)*) => {
        $(
            impl Plain for $integer {
                fn draw(seed: u64, at: u64) -> Self {
                    let drawn = mix(seed, at);
                    match drawn % 8 {
                        0 => 0,
                        1 => Self::MIN,
                        2 => Self::MAX,
                        3 => Self::MAX.wrapping_mul(2).wrapping_add(1),
                        4 | 5 => ((drawn >> 8) % 9) as Self,
                        _ => (drawn >> 3) as Self,
                    }
                }

                fn from_index(at: usize) -> Self {
                    at as Self
                }

                fn same_bits(self, other: Self) -> bool {
                    self == other
                }

                operations! {$integer; |a, b|
                    a + b => a.wrapping_add(b),
                    a - b => a.wrapping_sub(b),
                    a * b => a.wrapping_mul(b),
                    a / b => if b == 0 { a } else { a.wrapping_div(b) },
                    a % b => if b == 0 { 0 } else { a.wrapping_rem(b) },
                    a.min(b) => if b < a { b } else { a },
                    a.max(b) => if b > a { b } else { a },
                    a & b => a & b,
                    a | b => a | b,
                    a ^ b => a ^ b,
                    !a => !a,
                    a << b => a << (b as u64 % u64::from(Self::BITS)),
                    a >> b => a >> (b as u64 % u64::from(Self::BITS)),
                    3 * a + 7 => a.wrapping_mul(3).wrapping_add(7),
                    a * b + a => a.wrapping_mul(b).wrapping_add(a),
                    { let $x = a; $abs } => { let $x = a; $plain_abs },
                    { let $x = a; $neg } => { let $x = a; $plain_neg },
                    a.convert::<f32>().convert() => a as f32 as $integer,
                    a.convert::<f64>().convert() => a as f64 as $integer,
                    a.convert::<i32>().convert() => a as i32 as $integer,
                    a.convert::<u32>().convert() => a as u32 as $integer,
                    a.convert::<i64>().convert() => a as i64 as $integer,
                    a.convert::<u64>().convert() => a as u64 as $integer,
                }
            }
        )*
    };
}

integers! {
    i32: |x| x.abs(), -x, x.wrapping_abs(), x.wrapping_neg();
    u32: |x| x, x, x, x;
    i64: |x| x.abs(), -x, x.wrapping_abs(), x.wrapping_neg();
    u64: |x| x, x, x, x;
}
