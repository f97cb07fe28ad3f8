//! Random programs: from a list of random choices to valid launches and their results in the model.

use super::{
    mappers::{Picks, reading, writing},
    model::*,
};
use anabranch_graph::{command::*, *};
use anabranch_grid::{Chunk, Extent, GridBox, Region, split_1d};

/// A task, and the contents of the memory before it.
pub struct Task {
    pub id: TaskId,
    pub work: Work,
    pub hints: Hints,
    pub accesses: Vec<BufferAccess>,
    pub reductions: Vec<Reduction>,
    pub effects: Vec<Effect>,
    /// The leaves of the reduction tree.
    pub leaves: Vec<GridBox<3>>,
    pub before: Memory,
    pub words: String,
}

impl Task {
    pub fn launch(&self) -> Launch<'_> {
        Launch {
            task: self.id,
            work: self.work,
            hints: self.hints,
            accesses: &self.accesses,
            reductions: &self.reductions,
            effects: &self.effects,
        }
    }

    /// The index space of a snapshot on this node.
    pub fn snapshot(&self, node: NodeId, nodes: u16) -> Chunk<3> {
        let global = self.space(nodes);
        let range = match self.hints.own_regions {
            Some(_) => GridBox::new([node.0.into(), 0, 0], [usize::from(node.0) + 1, 1, 1]),
            None => global,
        };
        Chunk { range, global }
    }

    /// The index space.
    fn space(&self, nodes: u16) -> GridBox<3> {
        match self.work {
            Work::Kernel { space } | Work::HostChunks { space } => space,
            Work::Collective => GridBox::full([nodes as usize, 1, 1]),
            _ if self.hints.own_regions.is_some() => GridBox::full([nodes as usize, 1, 1]),
            _ => GridBox::full([1, 1, 1]),
        }
    }

    fn again(&self) -> Self {
        Self {
            accesses: self.accesses.clone(),
            reductions: self.reductions.clone(),
            effects: self.effects.clone(),
            leaves: self.leaves.clone(),
            before: Memory::new(),
            words: self.words.clone(),
            ..*self
        }
    }

    /// The regions that a chunk reads, also for a reduction.
    pub fn reads(&self, chunk: &Chunk<3>) -> Vec<(BufferId, Region<3>)> {
        let reading = self.accesses.iter().filter(|a| a.mode.reads());
        let mut found: Vec<_> = reading.map(|a| (a.buffer, a.mapper.map(chunk))).collect();
        if chunk.range.min() == chunk.global.min() {
            let current = self.reductions.iter().filter(|r| r.include_current);
            found.extend(current.map(|r| (r.buffer, GridBox::full(self.before[&r.buffer].extent).into())));
        }
        found
    }
}

pub enum Action {
    CreateBuffer { buffer: BufferId, extent: Extent<3>, initialised: bool, versions: usize },
    Discard(BufferId),
    SetWeights(Weights),
    RemoveBuffer(BufferId),
    CreateObject(ObjectId),
    Launch(Box<Task>),
}

/// Builds a program and runs it in the model.
pub struct Builder {
    nodes: u16,
    names: u64,
    tasks: u64,
    memory: Memory,
    objects: Vec<ObjectId>,
    pub actions: Vec<Action>,
}

impl Builder {
    /// The actions of a random program, and the contents of the memory at the end.
    pub fn program(nodes: u16, steps: &[Vec<u16>]) -> (Vec<Action>, Memory) {
        let mut builder = Self::new(nodes);
        for step in steps {
            builder.step(&mut Picks(step));
        }
        builder.end()
    }

    /// The same, of a program that repeats its first tasks again and again, in random orders, and now and
    /// then does something else. Most of its launches are recognised.
    pub fn repetitive_program(nodes: u16, first: &[Vec<u16>], orders: &[u16]) -> (Vec<Action>, Memory) {
        let mut builder = Self::new(nodes);
        for step in first {
            builder.step(&mut Picks(step));
        }
        let repeated = builder.actions.len();
        let mut steps = first.iter().cycle();
        for &order in orders {
            match order % 16 {
                0 => builder.snapshot(Work::Horizon, &mut Picks(&[0]), false),
                1 => builder.step(&mut Picks(&steps.next().expect("a step")[1..])),
                _ => builder.repeat_one(usize::from(order / 16) % repeated),
            }
        }
        builder.end()
    }

    fn new(nodes: u16) -> Self {
        let mut builder = Self {
            nodes,
            names: 0,
            tasks: 0,
            memory: Memory::new(),
            objects: Vec::new(),
            actions: Vec::new(),
        };
        for _ in 0..2 {
            builder.create_object();
        }
        builder
    }

    fn end(mut self) -> (Vec<Action>, Memory) {
        self.snapshot(Work::Epoch, &mut Picks(&[]), true);
        (self.actions, self.memory)
    }

    fn step(&mut self, picks: &mut Picks) {
        if self.memory.len() < 2 {
            self.create_buffer(picks);
        }
        match picks.below(24) {
            0..11 => self.kernel(picks),
            11 | 12 => self.host_once(picks),
            13 => self.collective(picks),
            14 => self.create_buffer(picks),
            15 => {
                let at = picks.below(self.memory.len());
                let buffer = *self.memory.keys().nth(at).unwrap();
                self.memory.remove(&buffer);
                self.actions.push(Action::RemoveBuffer(buffer));
            }
            16 => self.snapshot(Work::Fence, picks, false),
            17 => self.repeat(picks),
            18 => self.snapshot(Work::Epoch, picks, false),
            19 => self.discard(picks),
            20 | 21 => self.set_weights(picks),
            _ => self.snapshot(Work::Horizon, &mut Picks(&[0]), false),
        }
    }

    /// Repeats the last tasks with the same mappers, like a loop.
    fn repeat(&mut self, picks: &mut Picks) {
        let launches = self.actions.iter().filter_map(|action| match action {
            Action::Launch(task) => Some(task),
            _ => None,
        });
        let body = launches.rev().take(1 + picks.below(5)).map(|task| task.again());
        let body: Vec<_> = body.collect();
        for _ in 0..1 + picks.below(8) {
            for task in body.iter().rev() {
                self.submit_again(task);
            }
        }
    }

    /// Repeats the action at a position, if it was a task.
    fn repeat_one(&mut self, at: usize) {
        if let Action::Launch(task) = &self.actions[at] {
            let task = task.again();
            self.submit_again(&task);
        }
    }

    /// Submits a task once more, if its buffers still hold what it reads.
    fn submit_again(&mut self, task: &Task) {
        let accessed = task.accesses.iter().map(|a| a.buffer);
        let mut buffers = accessed.chain(task.reductions.iter().map(|r| r.buffer));
        if buffers.all(|buffer| self.memory.contains_key(&buffer)) && self.can_read(task) {
            self.tasks += 1;
            self.submit(Task { id: TaskId(self.tasks), ..task.again() });
        }
    }

    /// Whether what a task reads was written, and not discarded since.
    fn can_read(&self, task: &Task) -> bool {
        let whole = Chunk::whole(task.space(self.nodes));
        let mut reads = task.accesses.iter().filter(|access| access.mode.reads());
        let written = |buffer| self.memory[buffer].written();
        let mut current = task.reductions.iter().filter(|reduction| reduction.include_current);
        reads.all(|access| written(&access.buffer).contains(&access.mapper.map(&whole)))
            && current.all(|reduction| self.memory[&reduction.buffer].elements.iter().all(Option::is_some))
    }

    fn create_object(&mut self) {
        self.names += 1;
        self.objects.push(ObjectId(self.names));
        self.actions.push(Action::CreateObject(ObjectId(self.names)));
    }

    fn create_buffer(&mut self, picks: &mut Picks) {
        if self.memory.len() >= 4 {
            return;
        }
        self.names += 1;
        let buffer = BufferId(self.names);
        let extent = Extent(match picks.below(4) {
            0 => [1, 1, 1],
            1 => [1 + picks.below(24), 1, 1],
            2 => [1 + picks.below(9), 1 + picks.below(9), 1],
            _ => [1 + picks.below(5), 1 + picks.below(4), 1 + picks.below(3)],
        });
        let initialised = picks.chance(40);
        let array = if initialised { initial(extent, buffer) } else { Array::new(extent) };
        self.memory.insert(buffer, array);
        let versions = 1 + picks.below(3);
        self.actions.push(Action::CreateBuffer { buffer, extent, initialised, versions });
    }

    fn discard(&mut self, picks: &mut Picks) {
        let Some(buffer) = self.pick_buffer(picks) else { return };
        let array = &self.memory[&buffer];
        self.memory.insert(buffer, Array::new(array.extent));
        self.actions.push(Action::Discard(buffer));
    }

    /// Sets other weights for the following tasks, often with nodes that have none.
    fn set_weights(&mut self, picks: &mut Picks) {
        let weights: Vec<_> = (0..self.nodes).map(|_| [0.0, 1.0, 1.0, 0.3, 7.0][picks.below(5)]).collect();
        let weights = Weights::new(&weights).or_else(|| Weights::new(&vec![1.0; self.nodes.into()]));
        self.actions.push(Action::SetWeights(weights.expect("valid weights")));
    }

    fn pick_buffer(&self, picks: &mut Picks) -> Option<BufferId> {
        let at = picks.below(self.memory.len());
        self.memory.keys().nth(at).copied()
    }

    fn task(&mut self, work: Work, hints: Hints) -> Task {
        self.tasks += 1;
        Task {
            id: TaskId(self.tasks),
            work,
            hints,
            accesses: Vec::new(),
            reductions: Vec::new(),
            effects: Vec::new(),
            leaves: Vec::new(),
            before: Memory::new(),
            words: String::new(),
        }
    }

    fn kernel(&mut self, picks: &mut Picks) {
        let Some(like) = self.pick_buffer(picks) else { return };
        let mut bounds = GridBox::full(self.memory[&like].extent);
        if picks.chance(15) {
            bounds = GridBox::full([1 + picks.below(40), 1, 1]);
        }
        let space = picks.part_of(bounds);
        let hints = Hints {
            tiling: if picks.chance(40) { Tiling::Tiles } else { Tiling::Rows },
            granularity: [1 + picks.below(3), 1 + picks.below(3)],
            pieces: [1, 1, 2, 3, 8][picks.below(5)],
            node: picks.chance(10).then(|| NodeId(picks.below(self.nodes as usize) as u16)),
            leaves: [None, Some(5), Some(16), Some(1)][picks.below(4)],
            own_regions: None,
        };
        let work = if picks.chance(20) { Work::HostChunks { space } } else { Work::Kernel { space } };
        let mut task = self.task(work, hints);
        if picks.chance(20) {
            self.add_reduction(&mut task, space, picks);
        }
        let rows = hints.tiling == Tiling::Rows || !task.reductions.is_empty();
        self.add_accesses(&mut task, space, rows, picks);
        if matches!(work, Work::HostChunks { .. }) {
            self.add_effects(&mut task, picks);
        }
        self.submit(task);
    }

    fn host_once(&mut self, picks: &mut Picks) {
        let node = picks.chance(50).then(|| NodeId(picks.below(self.nodes as usize) as u16));
        let mut task = self.task(Work::HostOnce, Hints { node, ..Hints::default() });
        self.add_accesses(&mut task, GridBox::full([1, 1, 1]), true, picks);
        self.add_effects(&mut task, picks);
        self.submit(task);
    }

    fn collective(&mut self, picks: &mut Picks) {
        let mut task = self.task(Work::Collective, Hints::default());
        let space = GridBox::full([self.nodes as usize, 1, 1]);
        if picks.chance(20) {
            self.add_reduction(&mut task, space, picks);
        }
        self.add_accesses(&mut task, space, true, picks);
        self.add_effects(&mut task, picks);
        self.submit(task);
    }

    /// Adds a snapshot of everything if `all`, and of random buffers otherwise, perhaps of other regions on
    /// each node.
    fn snapshot(&mut self, work: Work, picks: &mut Picks, all: bool) {
        let own_regions = (!all && work != Work::Horizon && picks.chance(40)).then_some(7);
        let mut task = self.task(work, Hints { own_regions, ..Hints::default() });
        let names: Vec<_> = self.memory.keys().copied().collect();
        for buffer in names {
            let written = self.memory[&buffer].written();
            if !all && work != Work::Horizon && picks.chance(40) {
                let (mapper, name) = reading(picks, self.memory[&buffer].extent, &written);
                task.words += &format!(" reads {buffer:?} {name}");
                task.accesses.push(BufferAccess { buffer, mode: Mode::Read, mapper });
            } else if all {
                let mapper = Mapper::new(move |_| written.clone());
                task.accesses.push(BufferAccess { buffer, mode: Mode::Read, mapper });
            }
        }
        if work == Work::Fence {
            self.add_effects(&mut task, picks);
        }
        self.submit(task);
    }

    fn add_reduction(&mut self, task: &mut Task, space: GridBox<3>, picks: &mut Picks) {
        let Some(buffer) = self.pick_buffer(picks) else { return };
        let array = &self.memory[&buffer];
        let whole = array.elements.iter().all(Option::is_some);
        let include_current = whole && picks.chance(40);
        task.reductions.push(Reduction { buffer, include_current });
        task.words += &format!(" reduces to {buffer:?}, current {include_current}");
        task.leaves = match task.work {
            Work::Collective => split_1d(&space, space.extent()[0], 1),
            _ => split_1d(&space, task.hints.leaves.unwrap_or(64), task.hints.granularity[0]),
        };
    }

    fn add_accesses(&mut self, task: &mut Task, space: GridBox<3>, rows: bool, picks: &mut Picks) {
        for _ in 0..1 + picks.below(3) {
            let Some(buffer) = self.pick_buffer(picks) else { return };
            let extent = self.memory[&buffer].extent;
            let written = self.memory[&buffer].written();
            let mode = [Mode::Write, Mode::Read, Mode::Read, Mode::Update][picks.below(4)];
            let (mapper, name) = match mode {
                Mode::Read => reading(picks, extent, &written),
                // Sometimes only one half, so that another access can have the other half.
                Mode::Write => {
                    let half = picks.part_of(GridBox::full(extent));
                    writing(picks, extent, rows, half.into())
                }
                Mode::Update => writing(picks, extent, rows, written),
            };
            let whole = Chunk::whole(space);
            let region = mapper.map(&whole);
            let reduced = task.reductions.iter().any(|r| r.buffer == buffer);
            let overlaps = task.accesses.iter().any(|other| {
                other.buffer == buffer
                    && (other.mode.writes() || mode.writes())
                    && other.mapper.map(&whole).intersects(&region)
            });
            if !reduced && !overlaps {
                task.words += &format!(" {mode:?} {buffer:?} {name}: {region};");
                task.accesses.push(BufferAccess { buffer, mode, mapper });
            }
        }
    }

    fn add_effects(&mut self, task: &mut Task, picks: &mut Picks) {
        for object in &self.objects {
            if picks.chance(40) {
                let order = [Order::Sequential, Order::Exclusive, Order::Relaxed][picks.below(3)];
                task.effects.push(Effect { object: *object, order });
            }
        }
    }

    /// Runs the task in the model.
    fn submit(&mut self, mut task: Task) {
        task.before = self.memory.clone();
        let space = task.space(self.nodes);
        for access in task.accesses.iter().filter(|a| a.mode.writes()) {
            let array = self.memory.get_mut(&access.buffer).unwrap();
            for p in access.mapper.map(&Chunk::whole(space)).boxes().iter().flat_map(|b| b.points()) {
                let old = array.get(p).filter(|_| access.mode.reads());
                array.set(p, result(task.id, access.buffer, p, old));
            }
        }
        for reduction in &task.reductions {
            let array = self.memory.get_mut(&reduction.buffer).unwrap();
            for p in array.points() {
                let old = array.get(p).filter(|_| reduction.include_current);
                let value = tree(0..task.leaves.len() as u32, &|leaf| {
                    let own = contribution(task.id, leaf, p);
                    old.filter(|_| leaf == 0).map_or(own, |old| join(old.value, own))
                });
                array.set(p, Element { value, stamp: task.id });
            }
        }
        self.actions.push(Action::Launch(Box::new(task)));
    }
}
