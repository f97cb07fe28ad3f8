//! Launching a task: from its declaration and its bound accesses to its node.

use super::{access_list::AccessList, declaration::Declaration};
use crate::{
    error::Error,
    execute::{Body, Node, Place, Refused, Submission},
    observe::TaskRecord,
};
use std::{mem, sync::Arc};

/// Submits a task with these bound accesses. `body` makes its body from the accesses with their memory attached, or from the
/// error of an access that gets no memory. `observes` is explained at [`Submission::observes`].
///
/// # Errors
/// If the graph refuses the accesses. Nothing is submitted then.
#[inline]
pub(super) fn launch<const K: usize, L: AccessList<K>, B: Body>(
    declaration: &mut Declaration<'_, K>,
    mut bound: L::Bound,
    place: Place,
    observes: bool,
    body: impl FnOnce(Result<L::Bound, Box<Error>>) -> B,
) -> Result<Node, Error> {
    declaration.core.id().check_process("submit")?;
    if declaration.core.several_nodes().is_some() {
        return launch_on_nodes::<K, L, B>(declaration, bound, place, observes, body);
    }
    let record = declaration.record.take().map(Arc::from);
    let task = submission(declaration, place, observes, record.as_ref());
    // Refused accesses are dropped outside the lock that `accepted` holds: they may have the last handle to a buffer.
    let _refused;
    let accepted = declaration.core.accept(&task);
    let accepted = accepted.map_err(|error| declaration.explain(*error, &L::labels(&bound)))?;
    let attached = L::attach(&mut bound, &mut accepted.versions().iter().copied());
    let body = match attached {
        Ok(()) => body(Ok(bound)),
        Err(error) => {
            _refused = bound;
            body(Err(Box::new(error)))
        }
    };
    let node = Node::new(accepted.head(), body);
    Ok(accepted.insert(node))
}

/// The task without its types.
#[inline]
fn submission<'a, const K: usize>(
    declaration: &'a Declaration<'_, K>,
    place: Place,
    observes: bool,
    record: Option<&'a Arc<TaskRecord>>,
) -> Submission<'a> {
    Submission {
        label: declaration.task,
        group: declaration.group.map(|group| &**group),
        accesses: &declaration.accesses,
        effects: &declaration.effects,
        priority: declaration.priority,
        place,
        observes,
        record,
    }
}

/// Submits a task with several nodes: see [`launch`].
#[cold]
fn launch_on_nodes<const K: usize, L: AccessList<K>, B: Body>(
    declaration: &mut Declaration<'_, K>,
    mut bound: L::Bound,
    place: Place,
    observes: bool,
    body: impl FnOnce(Result<L::Bound, Box<Error>>) -> B,
) -> Result<Node, Error> {
    let core = declaration.core;
    let mut record = declaration.record.take().expect("with several nodes, every task has a record");
    let shared = mem::take(&mut record.shared);
    let record = Arc::from(record);
    let task = submission(declaration, place, observes, Some(&record));
    let planned = core.plan(&task).map_err(|refused| match refused {
        Refused::Graph(error) => core.refuse(declaration.explain(*error, &L::labels(&bound))),
        Refused::Command(error) => core.refuse(declaration.explain_command(&error, &L::labels(&bound))),
        Refused::Other(error) => error,
    })?;
    let attached = L::attach(&mut bound, &mut planned.versions().iter().copied());
    attached.map_err(|error| core.give_up(error))?;
    Ok(planned.insert(shared, body(Ok(bound))))
}
