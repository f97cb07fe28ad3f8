//! Random programs. Any sequence of bytes is a program, so that random numbers and fuzzers make programs. Each record of
//! [`RECORD`] bytes is a step; removing a record removes that step.

use anabranch::{
    Operator,
    grid::{Chunk, Extent, GridBox, Point, RangeMapper, Region, split_1d},
    prelude::*,
};

/// The number of bytes of a step. The first record describes the initial buffers.
pub const RECORD: usize = 18;
/// The rank of each buffer slot. Host tasks write buffers of one dimension.
pub const RANKS: [usize; 6] = [0, 1, 1, 2, 2, 3];
/// The number of host objects that programs use. One more, at index `NEST`, orders tasks that submit tasks.
pub const OBJECTS: usize = 2;
pub const NEST: usize = OBJECTS;
pub const GROUPS: usize = 2;

/// The arguments with which a buffer is created.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub rank: usize,
    pub extent: [usize; 3],
    pub versions: usize,
    pub initialised: bool,
}

impl Shape {
    pub fn whole(&self) -> GridBox<3> {
        GridBox::full(self.extent)
    }
}

/// How an index space is split.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    pub chunks: Option<usize>,
    pub granularity: usize,
    pub tiles: Option<[usize; 2]>,
}

impl Split {
    /// The chunks of a reduction over an index space of this rank.
    pub fn chunks(&self, rank: usize, space: &GridBox<3>) -> Vec<GridBox<3>> {
        // Chunks of a reduction are rows. The height of a tile says how many rows stay together.
        let granularity = self.tiles.filter(|_| rank >= 2).map_or(self.granularity, |[rows, _]| rows);
        split_1d(space, self.chunks.unwrap_or(64), granularity)
    }
}

/// The elements that a kernel reads.
#[derive(Clone, Copy, Debug)]
pub enum ReadPattern {
    All,
    Even,
    Corner,
    /// Elements around the chunk, by a custom mapper. The patterns below do the same if the ranks differ.
    Near(usize),
    Same,
    Box(usize),
    Cross(usize),
    Torus(usize),
    Slice(usize),
    Reversed,
}

impl<const K: usize, const B: usize> RangeMapper<K, B> for ReadPattern {
    fn map(&self, chunk: &Chunk<K>, buffer: Extent<B>) -> Region<B> {
        fn same<const K: usize, const B: usize>(
            mapper: &dyn RangeMapper<K, K>,
            chunk: &Chunk<K>,
            buffer: Extent<B>,
        ) -> Region<B> {
            mapper.map(chunk, buffer.cast()).cast()
        }
        match *self {
            Self::All => all().map(chunk, buffer),
            Self::Even => even_split().map(chunk, buffer),
            Self::Corner => GridBox::full(buffer.0.map(|n| n.min(2))).into(),
            Self::Near(radius) => near(chunk, buffer, radius),
            _ if K != B => near(chunk, buffer, 1),
            Self::Same => same(&one_to_one(), chunk, buffer),
            Self::Box(r) => same(&neighborhood([r; K]), chunk, buffer),
            Self::Cross(r) => same(&neighborhood([r; K]).along_axes(), chunk, buffer),
            Self::Torus(r) => same(&neighborhood([r; K]).periodic(), chunk, buffer),
            Self::Slice(_) if K == 0 => same(&all(), chunk, buffer),
            Self::Slice(dim) => same(&slice(dim % K), chunk, buffer),
            Self::Reversed => same(&permuted(std::array::from_fn::<_, K, _>(|d| K - 1 - d)), chunk, buffer),
        }
    }
}

fn near<const K: usize, const B: usize>(chunk: &Chunk<K>, buffer: Extent<B>, radius: usize) -> Region<B> {
    if chunk.range.is_empty() && B > 0 {
        return Region::empty();
    }
    let interval = |d: usize| match d < K {
        true => (chunk.range.min()[d].saturating_sub(radius), chunk.range.max()[d] + radius),
        false => (0, buffer[d]),
    };
    let min: [usize; B] = std::array::from_fn(|d| interval(d).0.min(buffer[d]));
    let max: [usize; B] = std::array::from_fn(|d| interval(d).1.min(buffer[d]));
    GridBox::new(min, max).into()
}

/// The element that a kernel writes for a point of its index space.
#[derive(Clone, Copy, Debug)]
pub enum WritePattern {
    Same,
    Reversed,
    /// The index space is shifted by this much along the first dimension.
    Shifted(usize),
}

impl WritePattern {
    pub fn point<const K: usize>(self, p: [usize; K]) -> [usize; K] {
        match self {
            Self::Same => p,
            Self::Reversed => std::array::from_fn(|d| p[K - 1 - d]),
            Self::Shifted(by) => std::array::from_fn(|d| if d == 0 { p[d] - by } else { p[d] }),
        }
    }

    /// The index space of `rank` dimensions whose points are mapped to `target`.
    pub fn index_space(self, rank: usize, target: &GridBox<3>) -> GridBox<3> {
        if target.is_empty() || rank == 0 {
            return *target;
        }
        let back = |p: Point<3>| {
            let mut q = p.0;
            match self {
                Self::Same => {}
                Self::Reversed => q[..rank].reverse(),
                Self::Shifted(by) => q[0] += by,
            }
            q
        };
        GridBox::new(back(target.min()), back(target.max()))
    }
}

impl<const K: usize> RangeMapper<K, K> for WritePattern {
    fn map(&self, chunk: &Chunk<K>, _: Extent<K>) -> Region<K> {
        if chunk.range.is_empty() {
            return Region::empty();
        }
        GridBox::new(self.point(chunk.range.min().0), self.point(chunk.range.max().0)).into()
    }
}

/// Operators of reductions. The results of the last two depend on the order of the operands and on the shape of the tree.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Sum,
    /// A sum of floating-point numbers, which are stored as their bits.
    FloatSum,
    /// Neither commutative nor associative. The identity is 0.
    Tree,
}

impl Operator<u64> for Op {
    fn identity(&self) -> u64 {
        if let Self::FloatSum = self { (-0.0_f64).to_bits() } else { 0 }
    }

    fn combine(&self, a: u64, b: u64) -> u64 {
        match (self, a, b) {
            (Self::Sum, ..) => a.wrapping_add(b),
            (Self::FloatSum, ..) => {
                // A buffer may hold any bits, and the bits of a NaN result are unspecified.
                let number = |bits| Some(f64::from_bits(bits)).filter(|x| x.is_finite()).unwrap_or(1.0);
                (number(a) + number(b)).to_bits()
            }
            (Self::Tree, 0, x) | (Self::Tree, x, 0) => x,
            (Self::Tree, ..) => mix(a.rotate_left(1), b) | 1,
        }
    }
}

impl Op {
    /// The value to combine for an element.
    pub fn value(self, seed: usize, element: u64) -> u64 {
        let x = mix(seed as u64, element);
        match self {
            Self::FloatSum => ((x % 2000) as f64 * 0.1 - 100.0).to_bits(),
            Self::Sum | Self::Tree => x | 1,
        }
    }
}

/// How a task fails on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fail {
    Panic,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    Sequential,
    Exclusive,
    Relaxed,
}

/// The captures of a fence or a barrier: boxes of buffers, and objects.
#[derive(Clone, Debug)]
pub enum CaptureSet {
    Nothing,
    Part(usize, GridBox<3>),
    Parts([(usize, GridBox<3>); 2]),
    Object(usize),
    Objects,
    Both(usize, GridBox<3>, usize),
}

impl CaptureSet {
    pub fn parts(&self) -> Vec<(usize, GridBox<3>)> {
        match self {
            Self::Part(slot, part) | Self::Both(slot, part, _) => vec![(*slot, *part)],
            Self::Parts(parts) => parts.to_vec(),
            _ => Vec::new(),
        }
    }

    pub fn objects(&self) -> Vec<usize> {
        match self {
            Self::Object(object) | Self::Both(_, _, object) => vec![*object],
            Self::Objects => vec![0, 1],
            _ => Vec::new(),
        }
    }
}

/// A kernel from one buffer to another.
#[derive(Clone, Copy, Debug)]
pub struct Compute {
    pub from: usize,
    pub read_pattern: ReadPattern,
    pub to: usize,
    pub target: GridBox<3>,
    pub write_pattern: WritePattern,
    pub update: bool,
    pub split: Split,
    pub fail: bool,
}

/// A reduction of one buffer into another.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    pub from: usize,
    pub space: GridBox<3>,
    pub to: usize,
    pub op: Op,
    pub include: bool,
    pub split: Split,
    pub fail: bool,
}

/// Where a task calls something that waits: on its own thread, or on the threads that a construct of `par` uses.
#[derive(Clone, Copy, Debug)]
pub enum Construct {
    Task,
    Loop,
    LoopInLoop,
    Join,
    Scope,
    Job,
}

/// A call that waits.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Wait,
    Idle,
    Fence,
    Barrier,
}

#[derive(Clone, Debug)]
pub enum Step {
    Compute(Compute),
    Reduce(Reduction),
    /// A host task that reads a buffer, writes a part of a one-dimensional one and touches objects.
    Host {
        from: usize,
        to: usize,
        part: [usize; 2],
        update: bool,
        effects: Vec<(usize, Order)>,
        fail: Option<Fail>,
        slow: bool,
        priority: i32,
    },
    /// A host task that submits tasks.
    Nest {
        children: usize,
    },
    /// A host task that calls something that waits, on each thread of a construct of `par`. The answer must be an error.
    InnerWait {
        construct: Construct,
        call: Call,
    },
    /// A fence that is waited for here (`wait`), or at the end of the program.
    Fence {
        set: CaptureSet,
        wait: bool,
    },
    Barrier {
        set: CaptureSet,
        wait: bool,
    },
    Wait,
    /// Submits later steps to this group, or to none.
    Group(Option<usize>),
    /// Cancels a group, and makes a new one in its place. Later steps still go to the cancelled one until there is another `Group`.
    Cancel(usize),
    /// Cancels one of the last tasks.
    CancelTask {
        back: usize,
    },
    /// Drops a buffer and makes another one in its place.
    Replace(usize, Shape),
    ReplaceObject(usize),
    /// Reads the results of tasks that were submitted by tasks.
    NestResult,
    /// The failures that are left in all groups.
    GroupReports,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub buffers: [Shape; RANKS.len()],
    pub steps: Vec<Step>,
}

/// A record from which choices are drawn.
struct Choices<'b>(&'b [u8]);

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

    fn shape(&mut self, rank: usize) -> Shape {
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
        Shape { rank, extent, versions: 1 + bits % 3, initialised: !bits.is_multiple_of(7) }
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
        }
    }

    fn capture_set(&mut self, shapes: &[Shape]) -> CaptureSet {
        let part = |c: &mut Self| {
            let slot = c.below(shapes.len());
            (slot, c.part(&shapes[slot]))
        };
        match self.below(8) {
            0..3 => {
                let (slot, range) = part(self);
                CaptureSet::Part(slot, range)
            }
            3 => CaptureSet::Parts([part(self), part(self)]),
            4 => CaptureSet::Object(self.below(OBJECTS)),
            5 => CaptureSet::Objects,
            _ => {
                let (slot, range) = part(self);
                CaptureSet::Both(slot, range, self.below(OBJECTS))
            }
        }
    }

    fn step(&mut self, shapes: &mut [Shape]) -> Step {
        match self.below(32) {
            0..11 => {
                let (to, from) = self.two_different(shapes.len());
                let radius = self.below(3);
                let read_pattern = [
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
                ][self.below(10)];
                let write_pattern = [
                    WritePattern::Same,
                    WritePattern::Reversed,
                    WritePattern::Shifted(3),
                    WritePattern::Same,
                ][self.below(4)];
                let target = self.part(&shapes[to]);
                Step::Compute(Compute {
                    from,
                    read_pattern,
                    to,
                    target,
                    write_pattern,
                    update: self.flag(),
                    split: self.split(),
                    fail: self.rare(16),
                })
            }
            11..14 => {
                let (to, from) = self.two_different(shapes.len());
                let op = [Op::Tree, Op::Sum, Op::FloatSum][self.below(3)];
                let space = self.part(&shapes[from]);
                Step::Reduce(Reduction {
                    from,
                    space,
                    to,
                    op,
                    include: self.flag(),
                    split: self.split(),
                    fail: self.rare(16),
                })
            }
            14..20 => {
                let to = 1 + self.below(2);
                let from = (to + 1 + self.below(shapes.len() - 1)) % shapes.len();
                let part = self.part(&shapes[to]);
                let part = [part.min()[0], part.max()[0]];
                let effects = self.effects();
                let fail =
                    [None, None, None, None, None, None, Some(Fail::Panic), Some(Fail::Error)][self.below(8)];
                Step::Host {
                    from,
                    to,
                    part,
                    update: self.flag(),
                    effects,
                    fail,
                    slow: self.rare(4),
                    priority: self.below(3) as i32 - 1,
                }
            }
            20 => Step::Nest { children: 1 + self.below(3) },
            21 => Step::InnerWait {
                construct: [
                    Construct::Task,
                    Construct::Loop,
                    Construct::LoopInLoop,
                    Construct::Join,
                    Construct::Scope,
                    Construct::Job,
                ][self.below(6)],
                call: [Call::Wait, Call::Idle, Call::Fence, Call::Barrier][self.below(4)],
            },
            22..25 => Step::Fence { set: self.capture_set(shapes), wait: self.rare(4) },
            25 => Step::Barrier {
                set: if self.flag() { CaptureSet::Nothing } else { self.capture_set(shapes) },
                wait: self.rare(3),
            },
            26 => Step::Wait,
            27 => Step::Group([Some(0), None, Some(1)][self.below(3)]),
            28 => {
                if self.flag() {
                    Step::Cancel(self.below(GROUPS))
                } else {
                    Step::CancelTask { back: self.below(6) }
                }
            }
            29 => Step::CancelTask { back: self.below(3) },
            30 => {
                let slot = self.below(shapes.len());
                shapes[slot] = self.shape(RANKS[slot]);
                Step::Replace(slot, shapes[slot])
            }
            _ => Step::ReplaceObject(self.below(OBJECTS)),
        }
    }

    fn two_different(&mut self, bound: usize) -> (usize, usize) {
        let first = self.below(bound);
        (first, (first + 1 + self.below(bound - 1)) % bound)
    }

    fn effects(&mut self) -> Vec<(usize, Order)> {
        let order = |c: &mut Self| [Order::Sequential, Order::Exclusive, Order::Relaxed][c.below(3)];
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

impl Program {
    /// Decodes a program.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut records = bytes.chunks(RECORD);
        let mut first = Choices(records.next().unwrap_or_default());
        let buffers = RANKS.map(|rank| first.shape(rank));
        let mut shapes = buffers;
        let mut steps: Vec<Step> = records.map(|record| Choices(record).step(&mut shapes)).collect();
        // At the end, the program reads all buffers and objects. The second wait is for tasks that were submitted by tasks.
        steps.extend([Step::Group(None), Step::Wait, Step::Wait, Step::GroupReports]);
        let part = |slot: usize| CaptureSet::Part(slot, shapes[slot].whole());
        let sets = (0..shapes.len()).map(part).chain((0..OBJECTS).map(CaptureSet::Object));
        steps.extend(sets.map(|set| Step::Fence { set, wait: true }));
        steps.extend([Step::NestResult, Step::Wait]);
        Self { buffers, steps }
    }
}

pub fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

/// The initial value of an element.
pub fn initial(slot: usize, at: usize) -> u64 {
    mix(slot as u64, at as u64)
}

/// The value that a kernel writes. It depends on the point, on the previous value (`before`), and on some of the elements
/// of `region`.
pub fn computed<const D: usize>(
    seed: usize,
    point: [usize; 3],
    before: u64,
    region: &Region<D>,
    read: impl Fn([usize; D]) -> u64,
) -> u64 {
    let begin = point.iter().fold(mix(seed as u64, before), |hash, i| mix(hash, *i as u64));
    let stride = region.len() / 12 + 1;
    let points = region.boxes().iter().flat_map(|range| range.points());
    points.step_by(stride).fold(begin, |hash, p| mix(hash, read(p.0)))
}

/// The point, extended with zeros to three dimensions.
pub fn padded<const D: usize>(point: [usize; D]) -> [usize; 3] {
    std::array::from_fn(|d| if d < D { point[d] } else { 0 })
}

/// The index of the element, in a buffer of `len` elements, into which the element at `point` is reduced.
pub fn reduced_into(point: [usize; 3], len: usize) -> usize {
    (7 * point[0] + 3 * point[1] + point[2]) % len.max(1)
}
