//! A task may run after the function that submitted it has returned, so its closure borrows nothing.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let u = rt.buffer_from(&[1.0, 2.0])?;
    let factor = 2.0;
    rt.task("scale").over([2]).update(&u, one_to_one()).kernel(|_, (u,)| u.fill(factor))?; //~ E0373: `factor`
    let mut sum = 0.0;
    rt.task("sum").once().read(&u, all()).host(|(u,)| sum += u[[0]])?; //~ E0373: `sum`
    println!("{sum}"); //~ E0502: `sum`
    Ok(())
}
