//! Decisions of all nodes: values and errors that one node has, and all must know.

use crate::{
    data::element::Element,
    error::{Error, message},
    runtime::Runtime,
};
use anabranch_wire::NOTE;
use bytemuck::checked::pod_read_unaligned;
use std::{error::Error as StdError, sync::Arc};

impl Runtime {
    /// Tells a value to all nodes, and returns the values of all of them, in the order of the nodes.
    ///
    /// Every node must submit the same tasks. What only one of them knows (the first lines of a file, a
    /// signal, a measured time) can differ, so a program must not decide by it. It decides by what this
    /// returns, which is the same on every node:
    ///
    /// ```
    /// use anabranch::{local_nodes, prelude::*};
    ///
    /// let results = local_nodes(3).threads(1).run(|rt| {
    ///     let own = 10 + u32::from(rt.node()); // as if read from a file of this node
    ///     let steps = rt.agree(own)?[0]; // the value of node 0
    ///     let shortest = rt.agree(1.0 / f64::from(own))?.into_iter().fold(f64::INFINITY, f64::min);
    ///     let interrupted = rt.node() == 2; // as if a signal had come to this node only
    ///     let stop = rt.agree(interrupted)?.contains(&true);
    ///     Ok((steps, shortest, stop))
    /// });
    /// assert!(results.into_iter().all(|result| result.unwrap() == (10, 1.0 / 12.0, true)));
    /// ```
    ///
    /// All nodes must call it at the same point of the program, and meet there, which takes some
    /// microseconds. No node waits for tasks. On one node it costs nothing and returns the one value.
    ///
    /// # Errors
    /// With [several nodes](crate::guide::nodes), if the run has ended or if this thread may not submit.
    pub fn agree<T: Element>(&self, value: T) -> Result<Vec<T>, Error> {
        const CALL: &str = "Runtime::agree";
        let nodes = usize::from(self.nodes());
        let own = bytemuck::bytes_of(&value);
        let mut all = vec![Vec::with_capacity(own.len()); nodes];
        // One meeting also for a value without bytes.
        let mut rest = Some(own);
        while let Some(bytes) = rest {
            let (part, more) = bytes.split_at(bytes.len().min(NOTE));
            rest = Some(more).filter(|more| !more.is_empty());
            for said in self.core.tell(CALL, Some(part.to_vec()))? {
                all[usize::from(said.node)].extend(said.note);
            }
        }
        if let Some(node) = all.iter().position(|bytes| bytes.len() != own.len()) {
            return Err(self.core.differs_from(node as u16, CALL));
        }
        Ok(all.iter().map(|bytes| pod_read_unaligned(bytes)).collect())
    }

    /// Makes one result of the results of all nodes: if any of them is an error, all nodes return the error
    /// of the first such node, and otherwise each one what it has.
    ///
    /// So a `?` does not part the nodes, for an operation that may fail on one of them:
    ///
    /// ```
    /// use anabranch::{local_nodes, prelude::*};
    ///
    /// let results = local_nodes(3).threads(1).run(|rt| {
    ///     // As if only node 1 could not open its file.
    ///     let opened = if rt.node() == 1 { Err("no such file") } else { Ok("a file") };
    ///     let _file = rt.agree_result(opened)?;
    ///     unreachable!("no node goes on without the others")
    /// });
    /// for result in results {
    ///     let error: Error = result.map(|()| ()).unwrap_err();
    ///     assert_eq!(error.to_string(), "no such file (on node 1)");
    /// }
    /// ```
    ///
    /// All nodes must call it at the same point of the program, and meet there: see [`agree`](Self::agree).
    /// It also makes one decision of what concerns this node's part only, such as
    /// [`TaskHandle::wait`](crate::TaskHandle::wait).
    ///
    /// # Errors
    /// [`Error::Agreed`]. With [several nodes](crate::guide::nodes), if the run has ended or if this thread
    /// may not submit.
    pub fn agree_result<T, E>(&self, result: Result<T, E>) -> Result<T, Error>
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        const CALL: &str = "Runtime::agree_result";
        let result = result.map_err(|error| Arc::<dyn StdError + Send + Sync>::from(error.into()));
        let own = result.as_ref().err().map(|error| message::error_to_bytes(&**error));
        let said = self.core.tell(CALL, own)?;
        let Some(first) = said.first() else {
            return result.map_err(|error| Error::Agreed { node: None, error });
        };
        let node = (self.nodes() > 1).then_some(first.node);
        match result {
            Err(error) if first.node == self.node() => Err(Error::Agreed { node, error }),
            _ => match message::error_from_bytes(&first.note) {
                Some(error) => Err(Error::Agreed { node, error }),
                None => Err(self.core.differs_from(first.node, CALL)),
            },
        }
    }
}
