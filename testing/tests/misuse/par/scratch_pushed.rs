//! A slice of scratch memory leaves its scope in a vector that lives longer.

use anabranch_par::scratch;

fn main() {
    let mut kept: Vec<&mut [u8]> = Vec::new();
    scratch::scope(|scope| kept.push(scope.filled(8, 0))); //~ E0521: borrowed data escapes outside of closure
    kept[0][0] = 1;
}
