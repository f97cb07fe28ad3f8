//! The closure of a loop changes a variable that all participants share.

use anabranch_par::prelude::*;

fn main() {
    let mut sum = 0;
    (0..10).par().for_each(|i| sum += i); //~ E0594: cannot assign to `sum`, as it is a captured variable in a `Fn` closure
    println!("{sum}");
}
