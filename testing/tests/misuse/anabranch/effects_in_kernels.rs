//! A kernel runs on several threads at once, so it has no `&mut` to a host object, and no shared state
//! without a lock.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let (u, log) = (rt.buffer_from(&[1.0, 2.0])?, rt.host_object(Vec::new()));
    rt.task("note")
        .over([2])
        .read(&u, one_to_one())
        .effect(&log, sequential())
        .kernel(|tile, (u, log)| tile.points().for_each(|p| log.push(u[p])))?; //~ E0277: a kernel runs on several threads at once, so effects on host objects are for host tasks
    Ok(())
}
