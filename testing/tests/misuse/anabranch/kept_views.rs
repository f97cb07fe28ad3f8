//! A view ends with the call that gets it.

use anabranch::{ReadView, prelude::*};

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let u = rt.buffer_from(&[1.0, 2.0])?;
    let mut kept: Option<&ReadView<f64, 1>> = None;
    rt.task("keep").once().read(&u, all()).host(move |(u,)| kept = Some(u))?; //~ E0521: borrowed data escapes
    let mut row: &mut [f64] = &mut [];
    rt.task("keep").once().update(&u, all()).host(move |(u,)| row = u.run_mut([0]))?; //~ E0521: borrowed data escapes
    let mut first: Option<&mut WriteView<'_, f64, 1>> = None;
    rt.task("keep").once().write(&u, all()).host(move |(u,)| first = Some(u))?; //~ E0521: borrowed data escapes
    Ok(())
}
