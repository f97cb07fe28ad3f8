//! What cannot be recorded does not compile.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let (u, v) = (rt.buffer_from(&[1.0_f32])?, rt.buffer::<f32, 1>([1]));
    let (bools, square) = (rt.buffer_from(&[true])?, rt.buffer::<f32, 2>([1, 1]));
    let task = || rt.task("t").over([1]).read(&u, one_to_one()).write(&v, one_to_one());
    task().each(|(u, v)| v.set(if u.here() < 1.0 { 1.0 } else { 2.0 }))?; //~ E0369: binary operation `<` cannot be applied
    task().each(|(u, v)| v.set(f32::from(u.here())))?; //~ E0277: the trait bound `f32: From<
    task().each(|(u, v)| v.set(u.here() + 1.0_f64))?; //~ E0277: cannot add `f64` to
    task().each(|(u, v)| u.set(v.here()))?; //~ E0599: no method named `set` found
    rt.task("t").over([1]).read(&bools, one_to_one()).write(&v, one_to_one()).each(|_| ())?; //~ E0277: a recorded kernel cannot compute with `bool`
    rt.task("t").over([1]).read(&u, all()).write(&square, all()).each(|_| ())?; //~ E0277: cannot have the access
    rt.task("t").over([1]).read(&square, all()).write(&v, one_to_one()).each(|(s, v)| v.set(s.here()))?; //~ E0599: no method named `here` found
    task().each(|(_, v)| v.set(v.fold(0..3, "zero", |sum, _| sum)))?; //~ E0277: a recorded kernel cannot compute with `&str`
    task().each(|(_, v)| v.set(v.fold(0..3, (0.0, "zero"), |(sum, _), _| (sum, sum)).0))?; //~ E0277: a fold cannot begin with
    let (total, own) = (rt.buffer::<f32, 0>([]), operator(0.0_f32, |a, b| a + b));
    rt.task("t").over([1]).reduce(&total, own).each(|_| ())?; //~ E0277: a recorded kernel cannot combine numbers of type `f32` by
    rt.task("t").over([1]).reduce(&v, sum()).each(|_| ())?; //~ E0277: cannot have the access
    Ok(())
}
