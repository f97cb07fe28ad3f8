//! The arrays that rows work with, and the row of one operation on them.

use anabranch::Runtime;
use anabranch_array::{Array, ArrayError, Arrays, Numeric, Random};

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    row::Row,
};

/// An operation that is timed until it is done.
pub type Operation = Box<dyn FnMut() -> Result<(), ArrayError>>;

/// A place for arrays, and the lengths of the axes.
pub struct Bed {
    pub arrays: Arrays,
    pub random: Random,
    /// 1000 × 512.
    pub matrix: [usize; 2],
    /// 1,000,000 × 3.
    pub long: [usize; 2],
    /// 1536 × 3072.
    pub large: [usize; 2],
}

/// A runtime on the best GPU, or on the host if there is none.
pub fn runtime(context: &Context) -> Result<Runtime, Failure> {
    let builder = Runtime::builder().threads(context.threads);
    #[cfg(feature = "gpu")]
    if let Some(gpu) = anabranch_gpu::by_name("auto")? {
        return Ok(builder.device(&gpu).build()?);
    }
    Ok(builder.build()?)
}

impl Bed {
    fn new(context: &Context) -> Result<Self, Failure> {
        let arrays = Arrays::new(&runtime(context)?);
        let random = arrays.random(1);
        Ok(Self {
            arrays,
            random,
            matrix: context.pick([1000, 512], [20, 16]),
            long: [context.pick(1_000_000, 100), 3],
            large: context.pick([1536, 3072], [24, 48]),
        })
    }

    /// The number of elements of the matrix.
    pub fn len(&self) -> usize {
        self.matrix[0] * self.matrix[1]
    }

    /// Random numbers.
    ///
    /// # Errors
    /// See [`Random::uniform`].
    pub fn drawn<T: Numeric, const D: usize>(
        &mut self,
        shape: [usize; D],
    ) -> Result<Array<T, D>, ArrayError> {
        self.random.uniform(shape)
    }

    /// Integers from -10 to 10.
    ///
    /// # Errors
    /// See [`Random::uniform`].
    pub fn integers<const D: usize>(&mut self, shape: [usize; D]) -> Result<Array<i64, D>, ArrayError> {
        // On the host: not every device has these numbers.
        let drawn = self.random.uniform::<u32, D>(shape)?.on_host();
        drawn.map(|x| (x % 21).convert::<i64>() - 10)?.copy_to(&self.arrays)
    }

    /// Ones and zeros, as `Bool` is there.
    ///
    /// # Errors
    /// See [`Random::uniform`].
    pub fn booleans<const D: usize>(&mut self, shape: [usize; D]) -> Result<Array<u32, D>, ArrayError> {
        self.random.uniform::<u32, D>(shape)?.mask(|x| (x & 1).equals(1))
    }
}

/// A row that times an operation, which `prepare` makes.
pub fn row(
    name: &'static str,
    about: &'static str,
    prepare: impl Fn(&mut Bed) -> Result<Operation, ArrayError> + 'static,
) -> Row {
    Row::lower(name, "us", about, move |context| measure(context, &prepare))
}

fn measure(
    context: &Context,
    prepare: &dyn Fn(&mut Bed) -> Result<Operation, ArrayError>,
) -> Result<Outcome, Failure> {
    let mut bed = Bed::new(context)?;
    let mut operation = prepare(&mut bed)?;
    bed.arrays.wait()?;
    let load = Load::back_to_back(context.pick(20, 1), context.pick(5, 1));
    Contest::ours(|| Ok(load.try_time(&mut operation)?.into_iter().map(|nanos| nanos / 1e3).collect()))
        .run(context, context.pick(5, 1))
}
