//! A sequence decides once in which order its tasks run, and a condition is true or false.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let log = rt.host_object(Vec::new());
    rt.record("in any order", |body| {
        body.task("note").once().effect(&log, exclusive()).host(|_, (log,)| log.push(1)) //~ E0308: expected `Sequential`, found `Exclusive`
    })?;
    let u = rt.buffer::<f64, 0>([]);
    rt.record("nothing", |_| Ok(()))?.replay_until(3, &u, |u| u[[]])?; //~ E0308: expected `bool`, found `f64`
    Ok(())
}
