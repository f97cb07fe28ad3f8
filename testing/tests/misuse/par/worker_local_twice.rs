//! A loop and a loop inside it use scratch from the same `WorkerLocal`.

use anabranch_par::{prelude::*, scratch::WorkerLocal};

fn main() {
    let mut local = WorkerLocal::new();
    (0..10).par().scratch_in(&mut local, || 0).for_each(|outer, _| { //~ E0499: cannot borrow `local` as mutable more than once at a time
        (0..10).par().scratch_in(&mut local, || 0).for_each(|inner, _| *inner += *outer); //~ E0596: cannot borrow `local` as mutable
    });
}
