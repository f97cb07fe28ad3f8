//! Units of repeated tasks, executed in random orders that keep what [`Repeat::orders`] says, against a plain
//! loop.

use anabranch_graph::{
    Access, BufferId, Effect, Mode, ObjectId, Order,
    repeat::{Repeat, Unit, UnitOrder, check},
};
use anabranch_grid::GridBox;
use proptest::prelude::*;

const BUFFERS: u64 = 3;
const OBJECTS: u64 = 2;
const LEN: usize = 12;

/// What a unit computes: its accesses to one-dimensional buffers, and its effects.
#[derive(Clone, Debug)]
struct Work {
    accesses: Vec<(u64, usize, usize, Mode)>,
    effects: Vec<u64>,
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Read), Just(Mode::Write), Just(Mode::Update)]
}

fn work() -> impl Strategy<Value = Work> {
    let access = (0..BUFFERS, 0..LEN, 1..=4_usize, mode())
        .prop_map(|(buffer, from, len, mode)| (buffer, from, (from + len).min(LEN), mode));
    let effects = prop::collection::btree_set(0..OBJECTS, 0..=2).prop_map(|set| set.into_iter().collect());
    (prop::collection::vec(access, 0..4), prop_oneof![3 => Just(Vec::new()), 1 => effects])
        .prop_map(|(accesses, effects)| Work { accesses, effects })
        .prop_filter("accesses that overlap", |work| check(&unit(work).accesses).is_ok())
}

fn unit(work: &Work) -> Unit {
    let accesses = work.accesses.iter().map(|&(buffer, from, to, mode)| Access {
        buffer: BufferId(buffer),
        region: GridBox::new([from, 0, 0], [to, 1, 1]).into(),
        mode,
    });
    let effect = |&object: &u64| Effect { object: ObjectId(object), order: Order::Sequential };
    Unit { effects: work.effects.iter().map(effect).collect(), ..Unit::of(accesses) }
}

/// All values that a program can see.
#[derive(Clone, Debug, PartialEq)]
struct State {
    buffers: Vec<[u64; LEN]>,
    objects: Vec<u64>,
}

impl State {
    fn new() -> Self {
        let buffers = (0..BUFFERS).map(|b| std::array::from_fn(|i| b * 100 + i as u64)).collect();
        Self { buffers, objects: (0..OBJECTS).collect() }
    }

    /// Mixes all that the unit reads with its number, and writes the result.
    fn run(&mut self, number: usize, repetition: u64, work: &Work) {
        let mix = |hash: u64, value: u64| (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        let mut hash = mix(number as u64, repetition);
        for &(buffer, from, to, mode) in &work.accesses {
            if mode.reads() {
                hash = self.buffers[buffer as usize][from..to]
                    .iter()
                    .fold(hash, |hash, &value| mix(hash, value));
            }
        }
        for &object in &work.effects {
            hash = mix(hash, self.objects[object as usize]);
        }
        for &(buffer, from, to, mode) in &work.accesses {
            if mode.writes() {
                let values = &mut self.buffers[buffer as usize][from..to];
                values.iter_mut().enumerate().for_each(|(i, value)| *value = mix(hash, i as u64));
            }
        }
        work.effects.iter().for_each(|&object| self.objects[object as usize] = hash);
    }
}

/// Executes all repetitions in an order that `draw` chooses among the units that may begin.
fn execute(
    works: &[Work],
    orders: &[UnitOrder],
    repetitions: u64,
    mut draw: impl FnMut(usize) -> usize,
) -> State {
    let mut state = State::new();
    let mut done = vec![0; works.len()];
    loop {
        let may_begin = |unit: &usize| {
            let next: u64 = done[*unit];
            next < repetitions
                && orders[*unit].within.iter().all(|&before| done[before] > next)
                && orders[*unit].across.iter().all(|&before| done[before] >= next)
        };
        let ready: Vec<usize> = (0..works.len()).filter(may_begin).collect();
        if ready.is_empty() {
            assert!(done.iter().all(|&done| done == repetitions), "no unit may begin");
            return state;
        }
        let unit = ready[draw(ready.len())];
        state.run(unit, done[unit], &works[unit]);
        done[unit] += 1;
    }
}

proptest! {
    #[test]
    fn any_order_gives_the_results_of_a_loop(
        works in prop::collection::vec(work(), 1..10),
        repetitions in 1..6_u64,
        seed in any::<u64>(),
    ) {
        let mut repeat = Repeat::default();
        works.iter().for_each(|work| { repeat.push(unit(work)); });
        let orders = repeat.orders();
        let mut expected = State::new();
        for repetition in 0..repetitions {
            works.iter().enumerate().for_each(|(number, work)| expected.run(number, repetition, work));
        }
        let mut random = seed | 1;
        let drawn = execute(&works, &orders, repetitions, |count| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % count
        });
        prop_assert_eq!(&drawn, &expected);
        // The extremes: each unit as early as possible, and as late as possible.
        prop_assert_eq!(&execute(&works, &orders, repetitions, |_| 0), &expected);
        prop_assert_eq!(&execute(&works, &orders, repetitions, |count| count - 1), &expected);
    }

    #[test]
    fn the_accesses_of_all_are_those_of_one_task(works in prop::collection::vec(work(), 1..10)) {
        let mut repeat = Repeat::default();
        works.iter().for_each(|work| { repeat.push(unit(work)); });
        let all = repeat.accesses();
        prop_assert!(check(&all).is_ok(), "{:?}", all);
        for buffer in 0..BUFFERS {
            for at in 0..LEN {
                // Of one element: whether it is read before it is written, and whether it is written.
                let uses = works.iter().flat_map(|work| {
                    let here: Vec<Mode> = work.accesses.iter()
                        .filter(|&&(of, from, to, _)| of == buffer && (from..to).contains(&at))
                        .map(|access| access.3)
                        .collect();
                    here
                });
                let uses: Vec<Mode> = uses.collect();
                let written = uses.iter().any(|mode| mode.writes());
                let first = uses.iter().position(|mode| mode.writes()).unwrap_or(uses.len());
                let needed = uses[..first].iter().any(|mode| mode.reads()) || uses.get(first).is_some_and(|mode| mode.reads());
                let expected = match (needed, written) {
                    (true, true) => Some(Mode::Update),
                    (true, false) => Some(Mode::Read),
                    (false, true) => Some(Mode::Write),
                    (false, false) => None,
                };
                let found: Vec<Mode> = all.iter()
                    .filter(|access| access.buffer == BufferId(buffer) && access.region.contains_point([at, 0, 0]))
                    .map(|access| access.mode)
                    .collect();
                prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "element {} of {}", at, buffer);
            }
        }
    }
}

/// A unit that ends a task holds its chunks back until it has run.
#[test]
fn a_unit_may_hold_others_back() {
    let mut repeat = Repeat::default();
    let chunks: Vec<usize> = (0..3).map(|_| repeat.push(Unit::default())).collect();
    let end = Unit { after: chunks.clone(), holds_back: true, ..Unit::default() };
    repeat.push(end);
    let orders = repeat.orders();
    assert_eq!(orders[3], UnitOrder { within: chunks.clone(), across: vec![] });
    chunks.iter().for_each(|&chunk| assert_eq!(orders[chunk], UnitOrder { within: vec![], across: vec![3] }));
}
