//! Horizons: when the graph makes one by itself.

/// What a graph does beyond deriving dependencies; see [`TaskGraph::with`](crate::TaskGraph::with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether the graph makes horizons, and when. `None`: never.
    ///
    /// With them, what the graph keeps and the number of dependencies of a task stay bounded for ever, whatever is
    /// submitted, and the graph is the same wherever the same is submitted: what dry runs and several nodes need.
    /// Without them the graph is bounded by forgetting tasks that are done, which it is told. That suits a runtime
    /// that knows what has finished: a horizon would make later work wait for a slow task that has nothing to do
    /// with it.
    pub horizons: Option<Horizons>,
    /// Whether conflict edges are derived: see [`Submitted::conflicts`](crate::Submitted::conflicts). A runtime that
    /// schedules by objects has no need of them, and command graphs derive their own; printed graphs show them.
    pub conflicts: bool,
}

/// When a horizon is made: as soon as one of these is reached. Both are at least 1; 0 counts as 1.
///
/// So that the number of tasks between two horizons is bounded, whatever the shape of the graph, one is also made
/// after `depth * breadth` tasks.
///
/// ```
/// # use anabranch_graph::Horizons;
/// assert_eq!(Horizons::default(), Horizons { depth: 4, breadth: 64 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizons {
    /// The length of the longest dependency path since the last horizon.
    pub depth: u32,
    /// The size of the execution front: how many tasks nobody depends on yet.
    pub breadth: usize,
}

impl Default for Horizons {
    fn default() -> Self {
        Self { depth: 4, breadth: 64 }
    }
}

impl Horizons {
    /// Whether it is time for a horizon, so many tasks after the last one.
    pub(crate) fn is_due(self, depth: u32, breadth: usize, tasks: u64) -> bool {
        let (most_depth, most_breadth) = (self.depth.max(1), self.breadth.max(1));
        depth >= most_depth
            || breadth >= most_breadth
            || tasks >= u64::from(most_depth).saturating_mul(most_breadth as u64)
    }
}
