//! Decoding: which steps the bytes of a record stand for.

use super::{
    CLUSTER_OBJECTS, Call, CaptureSet, Compute, Construct, Fail, GROUPS, Host, OBJECTS, OnCluster, Op, Order,
    Parts, RANKS, ReadPattern, Reduction, Replays, Runs, Shape, Split, Step, Subset, WaitFor, When,
    WritePattern, pair,
};
use anabranch::grid::GridBox;

/// A record from which choices are drawn.
pub(super) struct Choices<'b>(pub(super) &'b [u8]);

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                usize::from(*first) % bound.max(1)
            }
            [] => 0,
        }
    }

    fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// True in one of `times` cases.
    fn rare(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub(super) fn shape(&mut self, rank: usize) -> Shape {
        let sizes: &[usize] = match rank {
            1 => &[7, 1, 4, 12, 100, 9, 0, 70],
            2 => &[4, 1, 6, 5, 2, 7, 3, 0],
            _ => &[3, 1, 2, 4, 3, 5, 2, 0],
        };
        let packed = self.below(256);
        // Only the first dimension can have size 0.
        let size =
            |d: usize| if d < rank { sizes[(packed >> (3 * d)) & if d == 0 { 7 } else { 3 }] } else { 1 };
        let extent = std::array::from_fn(size);
        let bits = self.below(256);
        let versions = [1, 1, 2, 3][bits / 7 % 4];
        Shape { rank, extent, versions, initialised: !bits.is_multiple_of(7) }
    }

    /// A box in a buffer, in half of the cases the whole buffer.
    fn part(&mut self, shape: &Shape) -> GridBox<3> {
        let bits = self.below(256);
        if bits.is_multiple_of(2) {
            return shape.whole();
        }
        let min: [usize; 3] =
            std::array::from_fn(
                |d| if d < shape.rank { (bits >> (1 + d)) % shape.extent[d].max(1) } else { 0 },
            );
        let more = self.below(256);
        let max: [usize; 3] = std::array::from_fn(|d| {
            if d < shape.rank {
                shape.extent[d] - (more >> (2 * d)) % (shape.extent[d] - min[d]).max(1)
            } else {
                1
            }
        });
        GridBox::new(min, max)
    }

    fn split(&mut self) -> Split {
        let bits = self.below(256);
        Split {
            chunks: (!bits.is_multiple_of(3)).then_some(1 + bits % 9),
            granularity: 1 + (bits >> 4) % 3,
            tiles: (bits % 5 == 1).then_some([1 + bits % 2, 1 + (bits >> 5) % 2]),
            pieces: 1 + (bits >> 2) % 7,
        }
    }

    /// How a task fails, in one of `times` cases: like one of these, or by a wrong write if it writes.
    fn fail(&mut self, times: usize, others: &[Fail], writes: bool) -> Option<Fail> {
        let (drawn, kind) = (self.below(times), self.below(4));
        let wrong = [Fail::Unwritten, Fail::ReadFirst];
        match (times - 1).checked_sub(drawn) {
            Some(0) => Some(others[kind % others.len()]),
            Some(1) if writes => Some(wrong[kind % wrong.len()]),
            _ => None,
        }
    }

    pub(super) fn capture_set(&mut self, shapes: &[Shape]) -> CaptureSet {
        let part = |c: &mut Self| {
            let slot = c.below(shapes.len());
            (slot, c.part(&shapes[slot]))
        };
        match self.below(14) {
            0..3 => {
                let (slot, range) = part(self);
                CaptureSet::Part(slot, range)
            }
            3 => CaptureSet::Parts([part(self), part(self)]),
            4 => CaptureSet::Object(self.below(OBJECTS)),
            5 => CaptureSet::Objects,
            8 | 9 => CaptureSet::Cluster(self.below(CLUSTER_OBJECTS)),
            10 => {
                let (slot, range) = part(self);
                CaptureSet::ClusterAndPart(self.below(CLUSTER_OBJECTS), slot, range)
            }
            11 | 12 => {
                let (slot, first) = part(self);
                CaptureSet::OfNodes(slot, [first, self.part(&shapes[slot]), self.part(&shapes[slot])])
            }
            13 => CaptureSet::On(self.below(shapes.len()), self.below(16) as u16),
            _ => {
                let (slot, range) = part(self);
                CaptureSet::Both(self.below(OBJECTS), slot, range)
            }
        }
    }

    fn when(&mut self) -> When {
        self.one_of(&[
            When::Later,
            When::Now,
            When::Later,
            When::Never,
            When::Later,
            When::Awaited,
            When::Later,
            When::Polled,
        ])
    }

    /// The steps of the record.
    pub(super) fn steps(&mut self, shapes: &mut [Shape]) -> Vec<Step> {
        match self.below(54) {
            0..14 => vec![Step::Compute(self.compute(shapes))],
            14..17 => vec![Step::Reduce(self.reduction(shapes))],
            17..24 => vec![Step::Host(self.host(shapes))],
            24 => self.overwrites(shapes),
            40 | 41 => vec![Step::Parts(self.parts())],
            42 | 43 => vec![Step::Weights(self.below(256) as u8)],
            44..48 => vec![Step::OnCluster(self.on_cluster())],
            48 => vec![Step::ReplaceCluster(self.below(CLUSTER_OBJECTS), self.below(16) as u16)],
            50 | 51 => self.repeats(shapes),
            52.. => self.replays(shapes),
            kind => vec![self.other(kind, shapes)],
        }
    }

    /// A step that is neither a kernel nor an ordinary host task.
    fn other(&mut self, kind: usize, shapes: &mut [Shape]) -> Step {
        match kind {
            25 => Step::Nest { children: 1 + self.below(3), in_callback: self.flag() },
            26 => self.inner_wait(),
            27..30 => Step::Fence { set: self.capture_set(shapes), when: self.when() },
            30 => Step::Barrier {
                set: if self.flag() { CaptureSet::Nothing } else { self.capture_set(shapes) },
                when: self.when(),
            },
            31 => Step::Wait(self.one_of(&[WaitFor::Wait, WaitFor::Idle, WaitFor::Awaited])),
            32 => Step::WaitForTask { back: self.below(6) },
            33 | 34 => Step::Group(self.one_of(&[Some(0), None, Some(1), Some(2), Some(3)])),
            35 if self.flag() => Step::Cancel(self.below(GROUPS.len()), self.subset()),
            35 | 36 => Step::CancelTask { back: self.below(6), on: self.subset() },
            37 => Step::GroupDone { group: self.below(GROUPS.len()), wait: self.flag() },
            38 => {
                let slot = self.below(shapes.len());
                if self.rare(3) {
                    return Step::Discard(slot);
                }
                shapes[slot] = self.shape(RANKS[slot]);
                Step::Replace(slot, shapes[slot])
            }
            _ => Step::ReplaceObject(self.below(OBJECTS)),
        }
    }

    fn subset(&mut self) -> Subset {
        Subset(self.below(256) as u8)
    }

    fn compute(&mut self, shapes: &[Shape]) -> Compute {
        let (to, from) = self.two_different(shapes.len());
        let radius = self.below(3);
        let read_pattern = self.one_of(&[
            ReadPattern::Box(radius),
            ReadPattern::Near(radius),
            ReadPattern::All,
            ReadPattern::Even,
            ReadPattern::Corner,
            ReadPattern::Cross(radius),
            ReadPattern::Torus(3 * radius),
            ReadPattern::Slice(radius),
            ReadPattern::Same,
            ReadPattern::Reversed,
        ]);
        let write_pattern = self.one_of(&[
            WritePattern::Same,
            WritePattern::Reversed,
            WritePattern::Shifted(3),
            WritePattern::Same,
        ]);
        let target = self.part(&shapes[to]);
        let (update, split) = (self.flag(), self.split());
        let fail = self.fail(16, &[Fail::Panic], !update);
        let (node, built_in, place) = (self.node(), self.flag(), self.below(256));
        Compute { from, read_pattern, to, target, write_pattern, built_in, update, split, node, fail, place }
    }

    fn reduction(&mut self, shapes: &[Shape]) -> Reduction {
        let (to, from) = self.two_different(shapes.len());
        let op = self.one_of(&[Op::Tree, Op::Sum, Op::FloatSum]);
        let space = self.part(&shapes[from]);
        let (include, split, fail) = (self.flag(), self.split(), self.rare(16));
        let (node, place) = (self.node(), self.below(256));
        Reduction { from, space, to, op, include, split, node, fail, place }
    }

    /// The node of a kernel that does not run on all of them.
    fn node(&mut self) -> Option<u16> {
        self.rare(6).then(|| self.below(16) as u16)
    }

    fn host(&mut self, shapes: &[Shape]) -> Host {
        let to = 1 + self.below(2);
        let from = (to + 1 + self.below(shapes.len() - 1)) % shapes.len();
        let part = self.part(&shapes[to]);
        let update = self.flag();
        Host {
            from,
            to,
            part: [part.min()[0], part.max()[0]],
            update,
            effects: self.effects(),
            fail: self.fail(8, &[Fail::Panic, Fail::Error], !update),
            slow: self.rare(4),
            blocking: self.rare(3),
            priority: self.below(3) as i32 - 1,
            callback_panics: self.rare(16),
            node: self.below(16) as u16,
        }
    }

    fn parts(&mut self) -> Parts {
        let to = 1 + self.below(2);
        let rows = self.flag().then(|| 1 + self.below(20));
        let update = self.flag();
        let order = self.one_of(&[Order::Sequential, Order::Exclusive, Order::Relaxed]);
        let effect = (!self.rare(4)).then(|| (self.below(OBJECTS), order));
        Parts { from: 3 - to, to, rows, update, effect, slow: self.rare(4) }
    }

    fn on_cluster(&mut self) -> OnCluster {
        let runs = match self.below(8) {
            0..3 => Runs::Once(self.one_of(&[Order::Sequential, Order::Exclusive, Order::Relaxed])),
            3..5 => Runs::Collective,
            _ => {
                let node = self.rare(3).then(|| self.below(16) as u16);
                Runs::Over { rows: 1 + self.below(20), node }
            }
        };
        let (object, to) = (self.below(CLUSTER_OBJECTS), 1 + self.below(2));
        let (both, update, slow) = (self.rare(4), self.flag(), self.rare(4));
        let fail = self.rare(6).then(|| self.below(16) as u16);
        OnCluster { object, both, runs, from: 3 - to, to, update, slow, fail }
    }

    /// A slow reader of a buffer, and tasks that overwrite the whole buffer meanwhile.
    fn overwrites(&mut self, shapes: &[Shape]) -> Vec<Step> {
        let (slot, other) = self.two_different(shapes.len());
        let target = shapes[slot].whole();
        let reader = match self.below(3) {
            0 => {
                let to = if slot == 1 { 2 } else { 1 };
                let part = [0, shapes[to].extent[0]];
                let (effects, fail, priority, node) = (Vec::new(), None, 0, self.below(16) as u16);
                let (slow, blocking, callback_panics) = (true, self.flag(), false);
                let from = slot;
                Step::Host(Host {
                    from,
                    to,
                    part,
                    update: false,
                    effects,
                    fail,
                    slow,
                    blocking,
                    priority,
                    callback_panics,
                    node,
                })
            }
            _ => Step::Fence { set: CaptureSet::Both(self.below(OBJECTS), slot, target), when: When::Later },
        };
        let write = Compute {
            from: other,
            read_pattern: self.one_of(&[ReadPattern::Corner, ReadPattern::All]),
            to: slot,
            target,
            write_pattern: WritePattern::Same,
            built_in: self.flag(),
            update: false,
            split: self.split(),
            node: None,
            fail: None,
            place: self.below(256),
        };
        let times = 1 + self.below(3);
        std::iter::once(reader).chain(std::iter::repeat_n(Step::Compute(write), times)).collect()
    }

    /// A loop whose steps repeat each other, as those of real programs do. The runtime derives their commands
    /// from those of earlier ones. The weights of the nodes change between some of them.
    fn repeats(&mut self, shapes: &[Shape]) -> Vec<Step> {
        let (a, b) = self.two_different(shapes.len());
        let kernel = |c: &mut Self, from: usize, to: usize| {
            let patterns = [ReadPattern::All, ReadPattern::Near(1), ReadPattern::Same, ReadPattern::Box(1)];
            Step::Compute(Compute {
                from,
                read_pattern: c.one_of(&patterns),
                to,
                target: shapes[to].whole(),
                write_pattern: WritePattern::Same,
                built_in: true,
                update: c.rare(3),
                split: c.split(),
                node: None,
                fail: None,
                place: c.below(256),
            })
        };
        let mut body = vec![kernel(self, a, b), kernel(self, b, a)];
        if self.flag() {
            body.push(Step::Parts(self.parts()));
        }
        let (rounds, changes) = (3 + self.below(4), self.below(256));
        let weights = |round: usize| Step::Weights((changes + 3 * round) as u8);
        let round = |round: usize| {
            let weights = (changes >> round & 1 == 1).then(|| weights(round));
            weights.into_iter().chain(body.clone())
        };
        (0..rounds).flat_map(round).collect()
    }

    /// A sequence of kernels from one buffer to another and back.
    fn replays(&mut self, shapes: &[Shape]) -> Vec<Step> {
        let (a, b) = self.two_different(4);
        // The slots of buffers with one or two dimensions.
        let slots = [1 + a, 1 + b];
        // Of all kernels: the bytes of a record end before the last ones.
        let places = self.below(256);
        let count = 1 + self.below(4);
        let replays = self.one_of(&[1, 2, 3, 5, 17, 40]);
        let fails = self.rare(6).then(|| self.below(256));
        let effects = self.flag().then(|| (self.below(OBJECTS), Order::Sequential));
        let mut body: Vec<_> = (0..count)
            .map(|at| Compute {
                place: (places + 37 * at) % 256,
                ..self.replayed(slots[at % 2], slots[(at + 1) % 2], shapes)
            })
            .collect();
        body.retain(|kernel| !kernel.target.is_empty());
        if body.is_empty() {
            return Vec::new();
        }
        // In the last case of each kernel, the replay does not come.
        let fails = fails.map(|bits| (bits % body.len(), (bits / 8) as u64 % (replays + 1)));
        let sum = self.flag().then(|| self.replayed_sum(slots[0], shapes));
        vec![Step::Replays(Replays { body, replays, fails, sum, effects: effects.into_iter().collect() })]
    }

    fn replayed(&mut self, from: usize, to: usize, shapes: &[Shape]) -> Compute {
        let patterns = [
            ReadPattern::Near(1),
            ReadPattern::Same,
            ReadPattern::All,
            ReadPattern::Box(1),
            ReadPattern::Cross(2),
            ReadPattern::Torus(1),
            ReadPattern::Reversed,
        ];
        let part = self.part(&shapes[to]);
        // A recorded kernel reads at the points that it writes, in the other buffer of the same rank.
        let common = part.intersection(&shapes[pair(to)].whole());
        Compute {
            from,
            read_pattern: self.one_of(&patterns),
            to,
            target: if self.flag() { part } else { common },
            write_pattern: self.one_of(&[WritePattern::Same, WritePattern::Same, WritePattern::Reversed]),
            built_in: false,
            update: self.flag(),
            split: self.split(),
            node: None,
            fail: None,
            place: 0,
        }
    }

    /// A reduction to the one element of the first slot.
    fn replayed_sum(&mut self, from: usize, shapes: &[Shape]) -> Reduction {
        Reduction {
            from,
            space: self.part(&shapes[from]),
            to: 0,
            op: self.one_of(&[Op::Sum, Op::FloatSum, Op::Tree]),
            include: self.flag(),
            split: self.split(),
            node: None,
            fail: false,
            place: 0,
        }
    }

    fn inner_wait(&mut self) -> Step {
        Step::InnerWait {
            construct: self.one_of(&[
                Construct::Task,
                Construct::Loop,
                Construct::LoopInLoop,
                Construct::Join,
                Construct::Scope,
                Construct::Job,
                Construct::Callback,
                Construct::Waker,
            ]),
            call: self.one_of(&[
                Call::Wait,
                Call::Idle,
                Call::Fence,
                Call::Barrier,
                Call::GroupWait,
                Call::GroupIdle,
                Call::Handle,
            ]),
        }
    }

    fn two_different(&mut self, bound: usize) -> (usize, usize) {
        let first = self.below(bound);
        (first, (first + 1 + self.below(bound - 1)) % bound)
    }

    fn effects(&mut self) -> Vec<(usize, Order)> {
        let order = |c: &mut Self| c.one_of(&[Order::Sequential, Order::Exclusive, Order::Relaxed]);
        match self.below(4) {
            0 => vec![],
            1 => vec![(self.below(OBJECTS), order(self))],
            _ => {
                let first = self.below(OBJECTS);
                vec![(first, order(self)), (1 - first, order(self))]
            }
        }
    }
}
