//! Calls of MPI are made by all nodes in one order, so a communicator is for collective tasks with sequential
//! effects.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::builder().communicators(true).build()?;
    let comm = rt.communicator()?;
    rt.task("all").collective().effect(&comm, sequential()).host(|_, (_comm,)| ())?;
    rt.task("any order").collective().effect(&comm, exclusive()); //~ E0308: expected `Sequential`, found `Exclusive`
    rt.task("once").once().effect(&comm, sequential()); //~ E0277: a task cannot have an effect on `Communicator`
    rt.task("parts").over([2]).effect(&comm, sequential()); //~ E0277: a task cannot have an effect on `Communicator`
    Ok(())
}
