//! The mapper, the index space and the buffer have ranks that fit.

use anabranch::prelude::*;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    let plate = rt.buffer::<f64, 2>([3, 3]);
    rt.task("rows")
        .over([3])
        .write(&plate, one_to_one()) //~ E0277: `all()`, `fixed(…)`, `even_split()` and `mapper(|chunk, extent| …)` map between any
        .kernel(|tile, (plate,)| tile.rows().for_each(|y| plate.row_mut(y).fill(0.0)))?; //~ E0277: the trait `RangeMapper<1, 2>` is not implemented for `OneToOne`
    rt.task("point").once().update(&plate, all()).host(|(plate,)| plate[[0]] = 1.0)?; //~ E0308: mismatched types
    Ok(())
}
