//! The traits of accesses and captures are sealed.

use anabranch::{
    interface::{Captures, Copies, KernelAccess},
    prelude::*,
};

struct Mine;

impl KernelAccess for Mine {} //~ E0277: `Mine` cannot implement this trait, which is sealed

fn captured<C: Captures<Copies>>(rt: &Runtime, captures: C) {
    let _ = rt.barrier_with(captures);
}

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    captured(&rt, Mine); //~ E0277: capture a buffer or a host object by `.capture()`
    let text = rt.host_object(String::new());
    rt.fence(text)?; //~ E0277: `HostObject<String>` cannot be copied by a fence
    Ok(())
}
