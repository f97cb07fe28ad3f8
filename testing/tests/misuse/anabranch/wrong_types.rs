//! Values that a task cannot have.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let u = rt.buffer::<String, 1>([3]); //~ E0277: elements are numbers, arrays of numbers, `bool`, and structures
    let v = rt.buffer::<f64, 2>([3, 3]);
    let total = rt.buffer::<(), 0>([]);
    rt.task("order").once().effect(&rt.host_object(1), 7).host(|_| ())?; //~ E0277: `effect(&object, order)` takes `sequential()`, `exclusive()` or `relaxed()`
    rt.task("result").once().read(&v, all()).host(|(v,)| v[[0, 0]])?; //~ E0277: return nothing, or `Result<(), E>`
    rt.task("space").over(3.0); //~ E0277: an index space is an extent such as `[rows, cols]`
    rt.task("operator").over([3]).reduce(&total, sum()); //~ E0277: `operator(identity, |a, b| …)` makes an operator from a closure
    rt.buffer_from(&"text")?; //~ E0277: a buffer is made from a slice, an array or a `Vec`
    Ok(())
}
