//! A loop and a loop inside it use scratch from the same `WorkerLocal`.

use anabranch_par::{prelude::*, scratch::WorkerLocal};

fn main() {
    let mut local = WorkerLocal::new();
    (0..10).par().scratch_in(&mut local, || 0).for_each(|outer, _| {
        (0..10).par().scratch_in(&mut local, || 0).for_each(|inner, _| *inner += *outer);
    });
}
