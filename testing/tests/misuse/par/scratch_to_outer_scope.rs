//! A slice of scratch memory is returned from an inner scope to an outer one.

use anabranch_par::scratch;

fn main() {
    scratch::scope(|outer| {
        let kept = outer.scope(|inner| inner.filled(8, 0_u8)); //~ none: lifetime may not live long enough
        kept[0] = 1;
    });
}
