//! Host objects of the whole cluster: state that exists once, on one of several nodes.

use super::host_object::{HostObject, ObjectInner};
use anabranch_graph::ObjectId;
use std::{any::Any, fmt, sync::Arc};

/// A handle to a value that exists once among all nodes, on its *home*, and that only tasks, fences and
/// captures can reach: one log, one solver. See [`Runtime::cluster_object`](crate::Runtime::cluster_object).
///
/// The effects on it are ordered over all nodes: every part of a task, on whatever node, comes after all
/// parts of the last task with an effect on the object.
///
/// | task | runs | order of its effect | the task gets |
/// |---|---|---|---|
/// | `once` | on the home | [`sequential()`](crate::sequential), [`exclusive()`](crate::exclusive), [`relaxed()`](crate::relaxed) | `&mut T`; `&T` if it is relaxed |
/// | host task over an index space, or `collective` | on each node, its part | [`sequential()`](crate::sequential) | `Option<&mut T>`: `Some` on the home |
///
/// On one node it is like any [`HostObject`].
///
/// ```
/// use anabranch::{local_nodes, prelude::*};
///
/// let logs = local_nodes(3).threads(1).run(|rt| {
///     let log = rt.cluster_object(0, || vec!["begin".to_string()])?;
///     let node = rt.node();
///     // Each node writes its part of a file, say, and node 0 notes it.
///     rt.task("write").over([30]).effect(&log, sequential()).host(|_, (log,)| {
///         log.into_iter().for_each(|log| log.push("written".into()));
///     })?;
///     // On node 0, when all nodes have written.
///     rt.task("check").once().effect(&log, sequential()).host(move |(log,)| log.push(format!("checked on {node}")))?;
///     rt.drain(log.capture())
/// });
/// let logs: Vec<_> = logs.into_iter().map(Result::unwrap).collect();
/// let log = ["begin", "written", "checked on 0"].map(String::from);
/// assert_eq!(logs, [Some(log.to_vec()), None, None]);
/// ```
pub struct ClusterObject<T> {
    /// The object on this node, which has the value on the home only.
    pub(crate) local: HostObject<T>,
}

impl<T> Clone for ClusterObject<T> {
    fn clone(&self) -> Self {
        Self { local: self.local.clone() }
    }
}

impl<T: Send + 'static> ClusterObject<T> {
    /// Names the object, for messages and printed graphs. Only the first call has an effect.
    pub fn named(self, name: impl fmt::Display) -> Self {
        Self { local: self.local.named(name) }
    }

    /// The node that has the value.
    pub fn home(&self) -> u16 {
        self.local.inner.home.unwrap_or(0)
    }

    /// The value after all tasks submitted so far, on the home, and `None` on the other nodes: itself for
    /// [`drain`](crate::Runtime::drain), a clone for [`barrier_with`](crate::Runtime::barrier_with). If a
    /// task with an effect on the object has failed, all nodes get this failure.
    pub fn capture(&self) -> ClusterCapture<T> {
        ClusterCapture { object: self.clone() }
    }

    /// Takes the value back on the home, if no task and no other handle uses it: to save the value when
    /// `drain` has reported an error. `None` on the other nodes.
    ///
    /// # Errors
    /// The handle, if the value is in use or was already moved out.
    pub fn into_inner(self) -> Result<Option<T>, Self> {
        if !self.local.inner.is_here {
            return Ok(None);
        }
        self.local.into_inner().map(Some).map_err(|local| Self { local })
    }
}

impl<T> fmt::Debug for ClusterObject<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.local.fmt(f)
    }
}

/// A host object of the whole cluster, to be captured: see [`ClusterObject::capture`].
#[derive(Debug)]
pub struct ClusterCapture<T> {
    pub(crate) object: ClusterObject<T>,
}

/// A host object of the whole cluster, whatever its type is. It stays as long as a step passes its turn on.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) id: ObjectId,
    pub(crate) object: Arc<dyn Any + Send + Sync>,
}

impl Kept {
    pub(crate) fn new<T: Send + 'static>(object: &Arc<ObjectInner<T>>) -> Self {
        Self { id: object.id, object: Arc::<ObjectInner<T>>::clone(object) }
    }
}
