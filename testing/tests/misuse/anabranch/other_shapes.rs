//! A function for views of one shape does not take a view of another one.

use anabranch::{ReadView, prelude::*};

fn sum_of_row(u: &ReadView<f64, 2>) -> f64 {
    u.row(1).iter().sum()
}

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let u = rt.buffer_from(&anabranch::ndarray::Array2::<f64>::zeros((3, 3)))?;
    let cross = neighborhood([1, 1]).along_axes();
    let task = rt.task("sum").over([3, 3]).read(&u, cross);
    task.kernel(|_, (u,)| assert!(sum_of_row(u) < 1.0))?; //~ E0308: expected `&ReadView<f64, 2>`, found `&ReadView<f64, 2, Cross<2>>`
    Ok(())
}
