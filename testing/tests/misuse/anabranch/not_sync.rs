//! A relaxed effect shares the object.

use anabranch::prelude::*;
use std::cell::Cell;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let count = rt.host_object(Cell::new(0));
    rt.task("one").once().effect(&count, exclusive()).host(|(count,)| count.set(1))?;
    rt.task("two")
        .once()
        .effect(&count, relaxed()) //~ E0277: `relaxed()` lets several tasks use `&T` at once, so `T` must be `Sync`: declare `exclusive()`
        .host(|(count,)| count.set(2))?; //~ E0277: a task cannot have the access
    Ok(())
}
