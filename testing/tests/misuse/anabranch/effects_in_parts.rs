//! A host object of the whole cluster is on one node, so tasks in parts do not share it.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let log = rt.cluster_object(0, Vec::new)?;
    rt.task("once").once().effect(&log, exclusive()).host(|(log,)| log.push(1))?;
    rt.task("all").collective().effect(&log, sequential()).host(|_, (log,)| log.push(2))?; //~ E0599: no method named `push` found for enum `Option<
    rt.task("parts").over([2]).effect(&log, relaxed()); //~ E0308: expected `Sequential`, found `Relaxed`
    rt.task("kernel").over([2]).effect(&log, sequential()).kernel(|_, _| ())?; //~ E0277: a kernel runs on several threads at once
    Ok(())
}
