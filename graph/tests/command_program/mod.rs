//! Short programs for tests of rules: one node's graph over two buffers of one dimension.

// Each test uses a part of this.
#![allow(dead_code)]

use anabranch_graph::{BufferId, Effect, Mode, ObjectId, Order, TaskId, command::*};
use anabranch_grid::*;

pub const U: BufferId = BufferId(1);
pub const V: BufferId = BufferId(2);

pub fn access(buffer: BufferId, mode: Mode, mapper: Mapper) -> BufferAccess {
    BufferAccess { buffer, mode, mapper }
}

pub fn points(n: usize) -> Mapper {
    erase::<1, 1>(one_to_one(), Extent([n]))
}

pub fn everything(n: usize) -> Mapper {
    erase::<1, 1>(all(), Extent([n]))
}

pub fn near(radius: usize, n: usize) -> Mapper {
    erase::<1, 1>(neighborhood([radius]), Extent([n]))
}

pub fn kernel(n: usize) -> Work {
    Work::Kernel { space: GridBox::full([n, 1, 1]) }
}

pub fn line(min: usize, max: usize) -> Region<3> {
    GridBox::new([min, 0, 0], [max, 1, 1]).into()
}

/// One node's graph over two buffers of `n` elements.
pub struct Program {
    pub graph: CommandGraph,
    pub n: usize,
    pub tasks: u64,
}

impl Program {
    pub fn new(node: u16, nodes: u16, n: usize, initialised: bool) -> Self {
        let mut graph = CommandGraph::new(NodeId(node), nodes);
        graph.create_buffer(U, Extent([n, 1, 1]), initialised);
        graph.create_buffer(V, Extent([n, 1, 1]), initialised);
        Self { graph, n, tasks: 0 }
    }

    pub fn launch(&mut self, work: Work, accesses: &[BufferAccess]) -> Result<Vec<Command>, CommandError> {
        self.launch_with(work, Hints::default(), accesses)
    }

    pub fn launch_with(
        &mut self,
        work: Work,
        hints: Hints,
        accesses: &[BufferAccess],
    ) -> Result<Vec<Command>, CommandError> {
        self.tasks += 1;
        let launch = Launch { accesses, hints, ..Launch::new(TaskId(self.tasks), work) };
        self.graph.launch(&launch).map(|commands| commands.to_vec())
    }

    pub fn kernel(&mut self, accesses: &[BufferAccess]) -> Vec<Command> {
        self.launch(kernel(self.n), accesses).expect("a valid launch")
    }

    pub fn effect(&mut self, object: ObjectId, order: Order) -> Command {
        self.tasks += 1;
        let effects = [Effect { object, order }];
        let launch = Launch { effects: &effects, ..Launch::new(TaskId(self.tasks), Work::HostOnce) };
        self.graph.launch(&launch).expect("a valid launch")[0].clone()
    }
}

/// The commands that a command depends on.
pub fn on(command: &Command) -> Vec<CommandId> {
    command.dependencies.iter().map(|d| d.on).collect()
}

pub fn targets(command: &Command) -> Vec<(u16, String)> {
    match &command.kind {
        CommandKind::Push { targets, .. } => {
            targets.iter().map(|t| (t.node.0, t.region.to_string())).collect()
        }
        _ => Vec::new(),
    }
}
