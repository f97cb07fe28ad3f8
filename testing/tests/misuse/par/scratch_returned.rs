//! A slice of scratch memory is returned from its scope.

use anabranch_par::scratch;

fn main() {
    let kept = scratch::scope(|scope| scope.filled(8, 0_u8)); //~ none: lifetime may not live long enough
    kept[0] = 1;
}
