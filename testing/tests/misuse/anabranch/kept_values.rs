//! A symbolic value is part of one recording, and cannot leave its closure.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let (u, v) = (rt.buffer_from(&[1.0_f32])?, rt.buffer::<f32, 1>([1]));
    let mut kept = None;
    let task = || rt.task("t").over([1]).read(&u, one_to_one()).write(&v, one_to_one());
    task().each(|(u, v)| {
        kept = Some(u.here()); //~ E0521: borrowed data escapes
        v.set(1.0);
    })?;
    task().each(|(_, v)| v.set(kept.unwrap()))?;
    Ok(())
}
