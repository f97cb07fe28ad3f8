//! Settings of a task graph: when it makes horizons, whether it derives conflict edges, and whether it makes
//! epochs.

/// Options of a task graph beyond deriving dependencies; see [`TaskGraph::with`](crate::TaskGraph::with).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// When the graph makes horizons; `None` for never.
    ///
    /// With horizons, the size of the graph and the number of dependencies of a task stay bounded, whatever
    /// is submitted, and the same submissions give the same graph everywhere, as dry runs and several nodes
    /// need. Without them, the graph stays bounded by forgetting tasks that the caller reports as done. That
    /// suits a runtime: a horizon makes later work wait for slow tasks before it, even unrelated ones.
    pub horizons: Option<Horizons>,
    /// Whether the graph derives conflict edges: see [`Submitted::conflicts`](crate::Submitted::conflicts).
    /// Printed graphs show them. A runtime that schedules by objects does not need them, and command graphs
    /// derive their own.
    pub conflicts: bool,
    /// Whether the graph may be asked for [epochs](crate::TaskGraph::epoch), as it may by default. A graph
    /// with neither epochs nor horizons need not know which tasks have no successor yet, which saves time for
    /// each task.
    pub epochs: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { horizons: None, conflicts: false, epochs: true }
    }
}

/// When a graph makes a horizon: as soon as the depth or the breadth is reached. 0 counts as 1.
///
/// A graph also makes a horizon after `depth * breadth` tasks, so that the number of tasks between two
/// horizons is bounded, whatever the shape of the graph.
///
/// ```
/// # use anabranch_graph::Horizons;
/// assert_eq!(Horizons::default(), Horizons { depth: 4, breadth: 64 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizons {
    /// The length of the longest dependency path since the last horizon.
    pub depth: u32,
    /// The size of the execution front: the number of tasks that no other task depends on yet.
    pub breadth: usize,
}

impl Default for Horizons {
    fn default() -> Self {
        Self { depth: 4, breadth: 64 }
    }
}

impl Horizons {
    /// Whether a horizon is due, `tasks` tasks after the last one.
    pub(crate) fn is_due(self, depth: u32, breadth: usize, tasks: u64) -> bool {
        let (most_depth, most_breadth) = (self.depth.max(1), self.breadth.max(1));
        depth >= most_depth
            || breadth >= most_breadth
            || tasks >= u64::from(most_depth).saturating_mul(most_breadth as u64)
    }
}
