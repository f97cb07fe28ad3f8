//! A slice of scratch memory leaves an inner scope for an outer one.

use anabranch_par::scratch;

fn main() {
    scratch::scope(|outer| {
        let kept = outer.scope(|inner| inner.filled(8, 0_u8));
        kept[0] = 1;
    });
}
