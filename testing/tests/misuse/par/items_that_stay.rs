//! A loop over items that are not `Send`.

use anabranch_par::prelude::*;
use std::rc::Rc;

fn main() {
    let mut counters = vec![Rc::new(1), Rc::new(2)];
    counters.par_mut().for_each(|counter| drop(Rc::clone(counter))); //~ E0277: cannot be sent between threads safely
}
