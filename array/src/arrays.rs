//! A place for arrays, on the host or on a device. The functions that make arrays are in
//! [`new_arrays`](crate::new_arrays).

use crate::{error::ArrayError, place::Place};
use anabranch::{Runtime, TaskGroup, device::Device};
use std::sync::Arc;

/// Makes arrays in one place: on the host, or on a device.
///
/// It is a [group](TaskGroup) of tasks of a runtime. Clones are handles to the same group, also [in other
/// places](Self::on).
///
/// ```
/// use anabranch::Runtime;
/// use anabranch_array::Arrays;
///
/// let arrays = Arrays::new(&Runtime::new()?);
/// let a = arrays.from_slice([2, 3], &[1.0_f32, 4.0, 9.0, 16.0, 25.0, 36.0])?;
/// let roots = a.map(|x| x.sqrt() + 1.0)?;
/// assert_eq!(roots.to_vec()?, [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
/// # Ok::<(), anabranch_array::ArrayError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arrays {
    group: TaskGroup,
    place: Place,
}

impl Arrays {
    /// Arrays on the device of a runtime, or on the host if it has none. What that device cannot run, for
    /// lack of 64-bit floating-point numbers for example, runs on the host. With several nodes the arrays are
    /// on the host.
    ///
    /// The arrays keep the runtime running: its threads end when the runtime and all arrays are dropped.
    pub fn new(rt: &Runtime) -> Self {
        let place = match rt.device() {
            Some(device) if rt.nodes() == 1 => Place::Default(Arc::clone(device)),
            _ => Place::Host,
        };
        Self { group: rt.group("arrays"), place }
    }

    /// Arrays of the same group on a device. An operation that the device cannot run is an error of its call.
    /// With several nodes, so are reductions, scans, searches and sorting.
    ///
    /// ```
    /// use anabranch::{
    ///     Runtime,
    ///     device::{Device, Simulated},
    /// };
    /// use anabranch_array::Arrays;
    /// use std::sync::Arc;
    ///
    /// // For a GPU: `anabranch_gpu::open(None)?`. This device is for tests.
    /// let device: Arc<dyn Device> = Arc::new(Simulated::new());
    /// let arrays = Arrays::new(&Runtime::new()?).on(&device);
    /// let squares = arrays.generate([5], |[i]| i * i)?;
    /// assert_eq!(squares.to_vec()?, [0, 1, 4, 9, 16]);
    /// # Ok::<(), anabranch_array::ArrayError>(())
    /// ```
    pub fn on(&self, device: &Arc<dyn Device>) -> Self {
        Self { group: self.group.clone(), place: Place::Device(Arc::clone(device)) }
    }

    /// Arrays of the same group on the host.
    pub fn on_host(&self) -> Self {
        Self { group: self.group.clone(), place: Place::Host }
    }

    /// The device that the arrays are on; `None` for the host.
    pub fn device(&self) -> Option<&Arc<dyn Device>> {
        self.place.device()
    }

    /// The group of the tasks that the operations are. Programs submit tasks of their own here, which use the
    /// [buffers](crate::Array::buffer) of arrays.
    pub fn group(&self) -> &TaskGroup {
        &self.group
    }

    /// Waits until all operations submitted so far are done.
    ///
    /// # Errors
    /// All failures since the last synchronisation: see [`TaskGroup::wait`].
    pub fn wait(&self) -> Result<(), ArrayError> {
        Ok(self.group.wait()?)
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}
