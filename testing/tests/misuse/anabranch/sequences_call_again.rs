//! The functions of a sequence are called in each replay, so they cannot give away what they hold.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let names = rt.host_object(Vec::new());
    let name = String::from("given away");
    rt.record("once", |body| {
        body.task("note").once().effect(&names, sequential()).host(move |_, (names,)| names.push(name)) //~ E0507: cannot move out of `name`
    })?;
    Ok(())
}
