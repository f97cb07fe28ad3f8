//! Launching a task: from its declaration and its bound accesses to its node.

pub(in crate::submit) mod body;
pub(crate) mod declaration;
pub(in crate::submit) mod leaves;

use self::declaration::{Declaration, Piece};
use super::access::list::AccessList;
use crate::{
    error::Error,
    execute::{
        Body, Node, Place, Refused, Submission,
        devices::{OnDevice, Slot},
    },
    observe::TaskRecord,
};
use smallvec::SmallVec;
use std::{iter, mem, ops::Range, sync::Arc};

/// Submits a task with these bound accesses. `body` makes its body from the accesses with their memory
/// attached, or from the error of an access that gets no memory. `observes` is explained at
/// [`Submission::observes`].
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
        let bodies = |bound, _| iter::once(body(Ok(bound)));
        let mut nodes = launch_on_nodes::<K, L, B, _>(declaration, bound, place, observes, None, bodies)?;
        return Ok(nodes.pop().expect("a task has a node"));
    }
    let record = declaration.record.take().map(Arc::from);
    let task = submission(declaration, place, observes, record.as_ref());
    // Refused accesses are dropped outside the lock that `accepted` holds: they may have the last handle to a
    // buffer.
    let _refused;
    let accepted = declaration.core.accept(&task);
    let accepted = accepted.map_err(|error| declaration.explain(*error, &L::labels(&bound)))?;
    let bound = match L::attach(&mut bound, &mut accepted.versions().iter().copied()) {
        Ok(()) => Ok(bound),
        Err(error) => {
            _refused = bound;
            Err(Box::new(error))
        }
    };
    let node = Node::new(|| accepted.head(), || body(bound));
    Ok(accepted.insert(node))
}

/// Submits a task in pieces with these bound accesses: a kernel, or a batch of host tasks. `bodies` makes,
/// from the accesses with their memory attached or from the error of an access that gets no memory, the
/// function that makes the body of the piece with these chunks. Returns the nodes of the pieces.
///
/// # Errors
/// See [`launch`].
pub(super) fn launch_pieces<const K: usize, L: AccessList<K>, B: Body, M: FnMut(Range<usize>) -> B>(
    declaration: &mut Declaration<'_, K>,
    mut bound: L::Bound,
    place: Place,
    bodies: impl FnOnce(Result<L::Bound, Box<Error>>) -> M,
) -> Result<SmallVec<[Node; 1]>, Error> {
    declaration.core.id().check_process("submit")?;
    if declaration.core.several_nodes().is_some() {
        let chunks: Vec<_> = declaration.pieces.iter().map(|piece| piece.chunks.clone()).collect();
        let bodies = |bound, _| chunks.into_iter().map(bodies(Ok(bound)));
        return launch_on_nodes::<K, L, B, _>(declaration, bound, place, false, None, bodies);
    }
    let record = declaration.record.take().map(Arc::from);
    let task = submission(declaration, place, false, record.as_ref());
    // As in `launch`, and a body that no piece has.
    let (_refused, _unused);
    let accepted = declaration.core.accept_pieces(&task, &declaration.pieces);
    let mut accepted = accepted.map_err(|error| declaration.explain(*error, &L::labels(&bound)))?;
    let bound = match L::attach(&mut bound, &mut accepted.versions().iter().copied()) {
        Ok(()) => Ok(bound),
        Err(error) => {
            _refused = bound;
            Err(Box::new(error))
        }
    };
    let mut body = bodies(bound);
    let mut nodes = SmallVec::with_capacity(declaration.pieces.len());
    for (at, piece) in declaration.pieces.iter().enumerate() {
        nodes.push(Node::new(|| accepted.head(at), || body(piece.chunks.clone())));
    }
    // From here on the pieces alone have the function of the program: it is dropped as a part of the last of
    // them.
    _unused = nodes.is_empty().then_some(body);
    accepted.insert(&nodes);
    Ok(nodes)
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
        device: None,
    }
}

/// Submits a task with several nodes: see [`launch`] and [`launch_pieces`]. `bodies` makes the body of each
/// piece of this node's part of it: one if it has no pieces. It gets the places of the buffers on the device
/// of the task.
#[cold]
pub(super) fn launch_on_nodes<const K: usize, L: AccessList<K>, B: Body, I: Iterator<Item = B>>(
    declaration: &mut Declaration<'_, K>,
    mut bound: L::Bound,
    place: Place,
    observes: bool,
    device: Option<OnDevice<'_>>,
    bodies: impl FnOnce(L::Bound, SmallVec<[Arc<Slot>; 4]>) -> I,
) -> Result<SmallVec<[Node; 1]>, Error> {
    let core = declaration.core;
    let mut record = declaration.record.take().expect("with several nodes, every task has a record");
    let mut shared = mem::take(&mut record.shared);
    shared.touches.extend(declaration.pieces.iter().map(Piece::touches));
    let record = Arc::from(record);
    let task = Submission { device, ..submission(declaration, place, observes, Some(&record)) };
    let planned = core.plan(&task).map_err(|refused| match refused {
        Refused::Graph(error) => core.refuse(declaration.explain(*error, &L::labels(&bound))),
        Refused::Command(error) => core.refuse(declaration.explain_command(&error, &L::labels(&bound))),
        Refused::Other(error) => error,
    })?;
    let attached = L::attach(&mut bound, &mut planned.versions().iter().copied());
    attached.map_err(|error| core.give_up(error))?;
    let slots = planned.slots();
    Ok(planned.insert(shared, bodies(bound, slots)))
}
