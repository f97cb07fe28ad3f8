//! The view of a write cannot be read.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let u = rt.buffer_from(&[1.0, 2.0])?;
    rt.task("update").once().update(&u, all()).host(|(u,)| u[[0]] += u[[1]])?;
    rt.task("sum").once().write(&u, all()).host(|(u,)| {
        u[[0]] += 1.0; //~ E0608: cannot index
        let first = u[[0]]; //~ E0608: cannot index
        u.set([1], first);
        u.as_read(); //~ E0599: as_read
    })?;
    Ok(())
}
