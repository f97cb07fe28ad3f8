//! Launching a task: from its declaration and its bound accesses to its node.

use super::{access_list::AccessList, declaration::Declaration};
use crate::{
    error::Error,
    execute::{Body, Node, Place, Submission},
};

/// Says that the executor calls a closure once.
const ONCE: &str = "a task has one node";

/// Submits a task with these bound accesses. `body` makes its body from the accesses with their memory attached, or from the
/// error of an access that gets no memory. `observes` is explained at [`Submission::observes`].
///
/// # Errors
/// If the graph refuses the accesses. Nothing is submitted then.
pub(super) fn launch<const K: usize, L: AccessList<K>, B: Body>(
    declaration: &Declaration<'_, K>,
    bound: L::Bound,
    place: Place,
    observes: bool,
    body: impl FnOnce(Result<L::Bound, Box<Error>>) -> B,
) -> Result<Node, Error> {
    let (mut bound, mut body) = (Some(bound), Some(body));
    let task = Submission {
        label: declaration.task,
        accesses: &declaration.accesses,
        effects: &declaration.effects,
        priority: declaration.priority,
        place,
        observes,
        record: declaration.record.as_deref(),
    };
    let node = declaration.core.submit(&task, &mut |head, versions| {
        let attached = L::attach(bound.as_mut().expect(ONCE), &mut versions.iter().copied());
        // Refused accesses stay in `bound`, to be dropped outside the lock: they may have the last handle to a buffer.
        let bound = attached.map(|()| bound.take().expect(ONCE)).map_err(Box::new);
        Node::new(head, body.take().expect(ONCE)(bound))
    });
    node.map_err(|error| declaration.explain(error, &L::labels(bound.as_ref().expect("there is no node"))))
}
