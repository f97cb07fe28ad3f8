//! Where the values of chains are in machine code: in vector registers, as long as the processor has some,
//! and then in memory.

use super::assembler::{Set, Vector};
use crate::steps::{Chains, Link, Scaled};

/// Which vector registers have which values. What is computed for several vectors at once has as many
/// registers, one after the other.
#[derive(Debug)]
pub(super) struct Placement {
    /// The number of vectors that a step of the loop computes.
    pub(super) width: u8,
    /// The results so far of a chain whose result goes to memory.
    pub(super) so_far: Vector,
    /// For a short time: a product, or the first operand of a difference.
    pub(super) temporary: Vector,
    /// With AVX2, for a short time: a number. It has no instructions that compute with a number in memory.
    pub(super) number: Option<Vector>,
    /// The numbers that have a register during the whole loop: the first one of them, and how many.
    pub(super) numbers: (Vector, usize),
    /// The registers of the program that the chains use, in ascending order.
    pub(super) registers: Vec<Placed>,
    /// The registers of each load that links take more than once.
    pub(super) loads: Vec<Option<Vector>>,
}

/// A register of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) register: u32,
    /// Its vector registers; `None` if it is only in memory.
    pub(super) vector: Option<Vector>,
}

impl Placement {
    pub(super) fn new(chains: &Chains, set: Set) -> Self {
        let stored = registers(chains, written);
        let all = usize::from(set.registers());
        // So far, and temporary.
        let fits = |width: usize| width * (2 + stored.len()) + 1 + chains.numbers.len() <= all;
        let width = if fits(2) { 2 } else { 1 };
        let mut free = Free { next: 0, end: set.registers() };
        let [so_far, temporary] = [(); 2].map(|()| free.take(width).expect("a set has more registers"));
        let number = if set == Set::Avx2 { free.take(1) } else { None };
        // What an earlier step has computed stays in memory.
        let mut place = |register| stored.binary_search(&register).ok().and_then(|_| free.take(width));
        let used = registers(chains, |link| link.reads().or(written(link)));
        let registers =
            used.into_iter().map(|register| Placed { register, vector: place(register) }).collect();
        let numbers = chains.numbers.len().min(usize::from(free.end - free.next));
        let numbers =
            (free.take(numbers as u8).expect("the count was limited to the free registers"), numbers);
        let mut loads = vec![None; chains.loads.len()];
        let uses = uses(chains);
        let mut often: Vec<usize> = (0..loads.len()).filter(|&load| uses[load] > 1).collect();
        often.sort_by_key(|&load| std::cmp::Reverse(uses[load]));
        often.into_iter().for_each(|load| loads[load] = free.take(width));
        Self { width, so_far, temporary, number, numbers, registers, loads }
    }

    /// The registers of the program that have to be in memory.
    pub(super) fn in_memory(&self, chains: &Chains) -> Vec<u32> {
        let needs_memory = |placed: &&Placed| !chains.are_alone || placed.vector.is_none();
        self.registers.iter().filter(needs_memory).map(|placed| placed.register).collect()
    }

    /// The vector registers of a register of the program.
    pub(super) fn vector(&self, register: u32) -> Option<Vector> {
        let at = self.registers.binary_search_by_key(&register, |placed| placed.register);
        self.registers[at.expect("the chains use it")].vector
    }
}

impl Link {
    /// The register of the program that it reads.
    pub(super) fn reads(&self) -> Option<u32> {
        match *self {
            Self::TakeRegister(at)
            | Self::AddRegister(at)
            | Self::SubRegister(at)
            | Self::SubFromRegister(at)
            | Self::MulRegister(at) => Some(at),
            _ => None,
        }
    }
}

/// The vector registers that have no value.
struct Free {
    next: u8,
    end: u8,
}

impl Free {
    /// Takes `count` registers, one after the other; `None` if fewer are free.
    fn take(&mut self, count: u8) -> Option<Vector> {
        let first = self.next;
        (count <= self.end - first).then(|| {
            self.next += count;
            Vector(first)
        })
    }
}

/// The registers of the program that links use in this way, in ascending order.
fn registers(chains: &Chains, used: impl Fn(&Link) -> Option<u32>) -> Vec<u32> {
    let mut registers: Vec<u32> = chains.links.iter().filter_map(used).collect();
    registers.sort_unstable();
    registers.dedup();
    registers
}

/// The register of the program that a link writes.
fn written(link: &Link) -> Option<u32> {
    if let Link::Store(register) = *link { Some(register) } else { None }
}

/// How often links take each load.
fn uses(chains: &Chains) -> Vec<u32> {
    let mut uses = vec![0; chains.loads.len()];
    for link in &chains.links {
        match *link {
            Link::TakeLoad(at)
            | Link::AddLoad(at)
            | Link::SubLoad(at)
            | Link::SubFromLoad(at)
            | Link::MulLoad(at)
            | Link::AddScaled(Scaled { load: at, .. })
            | Link::SubScaled(Scaled { load: at, .. }) => uses[at as usize] += 1,
            Link::TakeLoads(both) | Link::AddLoads(both) => {
                both.into_iter().for_each(|at| uses[at as usize] += 1);
            }
            _ => {}
        }
    }
    uses
}
