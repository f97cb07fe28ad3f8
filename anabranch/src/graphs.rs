//! The recorded graphs of a runtime, as drawings.

use crate::{observe::Recorder, runtime::Runtime};
use anabranch_graph::print::Drawing;

impl Runtime {
    /// The task graph so far, if the graphs of this runtime are [recorded](crate::Builder::record_graphs).
    ///
    /// ```
    /// use anabranch::{graph::print::Format, prelude::*};
    ///
    /// let rt = Runtime::builder().record_graphs(true).build()?;
    /// let u = rt.buffer::<f32, 1>([8]).named("u");
    /// rt.task("fill").over([8]).write(&u, one_to_one()).kernel(|_, (u,)| u.fill(1.0))?;
    /// let drawing = rt.task_graph().expect("graphs are recorded");
    /// assert!(drawing.render(Format::Dot).contains("fill"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn task_graph(&self) -> Option<Drawing> {
        self.core.recorder().map(Recorder::tasks)
    }

    /// The command graphs of all nodes so far, in a [dry run](crate::Builder::dry_run). Without one, but on
    /// [several nodes](crate::guide::nodes): the commands that this node executes, if graphs are
    /// [recorded](crate::Builder::record_graphs). They are those of the dry run for as many nodes, with the
    /// copies between the memory of this node and that of its devices.
    pub fn command_graph(&self) -> Option<Drawing> {
        self.core.recorder().and_then(Recorder::commands)
    }
}
