//! Scratch memory is taken from an outer scope while an inner one is open. The end of the inner scope would
//! free it.

use anabranch_par::scratch;

fn main() {
    scratch::scope(|outer| {
        outer.scope(|_inner| { //~ E0502: cannot borrow `*outer` as mutable because it is also borrowed as immutable
            outer.filled(8, 0_u8);
        });
    });
}
